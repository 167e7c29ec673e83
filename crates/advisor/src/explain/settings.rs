//! The machine's settings while a program is watched: what changed meanwhile, and who holds them.
//!
//! A page that a program got under somebody else's setting says nothing of how the machine is set
//! up. Settings are read before and after; what changed and was changed back in between is known by
//! its holder, another run.

use pagelab_sys::{
    knobs::{Place, holder},
    machine::environment::{Class, facts},
};

/// The settings at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// By key, as JSON.
    values: Vec<(&'static str, String)>,
    /// Another run that may change them, and its process.
    held: Option<(u32, String)>,
}

impl Settings {
    /// Those of this machine, now.
    pub fn now() -> Self {
        let settings = facts().into_iter().filter(|fact| fact.class == Class::Setting);
        Self {
            values: settings.map(|fact| (fact.key, fact.value.to_string())).collect(),
            held: holder(&Place::machine()),
        }
    }

    /// What to know of what was seen between these settings and later ones.
    pub fn warnings(&self, later: &Self) -> Vec<String> {
        let pairs = self.values.iter().zip(&later.values);
        let changed = pairs.filter(|(before, after)| before != after).map(|(before, after)| {
            format!(
                "{} was {}, then {} while the program was watched: what came may be by either; \
                 watch it again",
                before.0, before.1, after.1
            )
        });
        let held = self.held.as_ref().or(later.held.as_ref()).map(|(pid, run)| {
            format!(
                "{run} (process {pid}) held settings of this machine while the program was \
                 watched: pages may have come by its settings; watch it again when that has ended"
            )
        });
        changed.chain(held).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_and_a_holder_are_told_and_nothing_else() {
        let of = |enabled: &str, held: Option<u32>| Settings {
            values: vec![("thp_enabled", enabled.to_owned()), ("swappiness", "60".to_owned())],
            held: held.map(|pid| (pid, "the run x".to_owned())),
        };
        let before = of("madvise", None);
        assert_eq!(before.warnings(&before), [""; 0]);
        let changed = before.warnings(&of("always", None));
        assert_eq!(changed.len(), 1);
        assert!(changed[0].starts_with("thp_enabled was madvise, then always"));
        let held = of("always", Some(7)).warnings(&of("always", None));
        assert!(held[0].starts_with("the run x (process 7) held settings"), "{held:?}");
        assert!(!Settings::now().values.is_empty());
    }
}
