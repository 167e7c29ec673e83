//! The machine's settings while a program runs: what changed meanwhile, and who holds them.
//!
//! A page that a program got under somebody else's setting says nothing of how the machine is set
//! up. Settings are read before and after; what changed and was changed back in between is known by
//! its holder, another run.

use pagelab_record::{Claim, vocabulary::Check};
use pagelab_sys::{
    knobs::{Place, holder},
    machine::environment::settings_as_text,
};

/// The settings that decide which pages a fault brings, and which faults there are.
const DECIDE: [&str; 7] = [
    "thp_enabled",
    "thp_defrag",
    "thp_shmem_enabled",
    "thp_use_zero_page",
    "mthp_enabled",
    "mthp_shmem_enabled",
    "numa_balancing",
];

/// The settings at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// By key.
    values: Vec<(String, String)>,
    /// Another run that may change them, and its process.
    held: Option<(u32, String)>,
}

impl Settings {
    /// Those of this machine, now.
    pub fn now() -> Self {
        Self::of(None)
    }

    /// Of them those that decide what faults are.
    pub fn of_faults() -> Self {
        Self::of(Some(&DECIDE))
    }

    fn of(keys: Option<&[&str]>) -> Self {
        let held = holder(&Place::machine()).filter(|(pid, _)| *pid != std::process::id());
        Self { values: settings_as_text(keys), held }
    }

    /// The process of another run that held them then, or at a later time.
    pub fn held_by(&self, later: &Self) -> Option<u32> {
        self.holder(later).map(|(pid, _)| *pid)
    }

    fn holder<'s>(&'s self, later: &'s Self) -> Option<&'s (u32, String)> {
        self.held.as_ref().or(later.held.as_ref())
    }

    /// What changed, as `thp_enabled was madvise, then always`, of settings that decide what faults
    /// are and of others.
    fn changed<'s>(&'s self, later: &'s Self) -> impl Iterator<Item = (bool, String)> + 's {
        let pairs = self.values.iter().zip(&later.values);
        pairs.filter(|(before, after)| before != after).map(|((key, before), (_, after))| {
            let decides = DECIDE.contains(&key.split('.').next().unwrap_or_default());
            (decides, format!("{key} was {before}, then {after}"))
        })
    }

    /// What changed of what decides what faults are, and who held the settings; `None` where
    /// nothing did.
    pub fn disturbed(&self, later: &Self) -> Option<String> {
        let changed = self.changed(later).filter(|(decides, _)| *decides);
        let changed: Vec<String> = changed.map(|(_, change)| change).collect();
        let held = self.holder(later);
        let held = held.map(|(pid, run)| format!(", held by {run} (process {pid})"));
        let told = changed.join("; ") + &held.unwrap_or_default();
        (!changed.is_empty()).then_some(told)
    }

    /// That nothing changed that decides what faults are.
    pub fn claim(&self, later: &Self) -> Claim {
        let changed = self.changed(later).filter(|(decides, _)| *decides).count();
        let changed = i64::try_from(changed).unwrap_or(i64::MAX);
        Claim::check(Check::SettingsSteady, "program", 0, changed, 0)
    }

    /// What to know of what was seen between these settings and later ones.
    pub fn warnings(&self, later: &Self) -> Vec<String> {
        let changed = self.changed(later).map(|(decides, change)| {
            let so = if decides { "nothing is said of its faults" } else { "it may be by either" };
            format!("{change} while the program was watched: {so}; watch it again")
        });
        let held = self.holder(later).map(|(pid, run)| {
            format!(
                "{run} (process {pid}) held settings of this machine while the program was \
                 watched: pages may have come by its settings; watch it again when that has ended \
                 (--wait waits for it)"
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
        let of = |enabled: &str, swappiness: &str, held: Option<u32>| Settings {
            values: [("mthp_enabled.64kB", enabled), ("swappiness", swappiness)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            held: held.map(|pid| (pid, "the run x".to_owned())),
        };
        let before = of("never", "60", None);
        assert_eq!(before.warnings(&before), [""; 0]);
        assert!(before.claim(&before).holds && before.disturbed(&before).is_none());
        let later = of("always", "60", None);
        let changed = before.warnings(&later);
        assert_eq!(changed.len(), 1);
        assert!(changed[0].starts_with("mthp_enabled.64kB was never, then always"));
        assert!(!before.claim(&later).holds);
        let held = of("never", "60", Some(7));
        let told = held.disturbed(&later).unwrap();
        assert!(told.ends_with("then always, held by the run x (process 7)"), "{told}");
        assert_eq!((held.held_by(&later), before.held_by(&later)), (Some(7), None));
        assert!(held.warnings(&later)[1].starts_with("the run x (process 7) held settings"));
        // What decides nothing of faults is told and forbids nothing.
        let swapped = of("never", "10", None);
        assert!(before.warnings(&swapped)[0].contains("it may be by either"));
        assert!(before.claim(&swapped).holds && before.disturbed(&swapped).is_none());
        assert!(!Settings::now().values.is_empty() && !Settings::of_faults().values.is_empty());
    }
}
