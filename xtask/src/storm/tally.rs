//! The figures of a storm.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    family::{TARGETS, Target},
    judge::Judged,
};

/// What was killed and what came of it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    targets: BTreeMap<Target, usize>,
    commands: BTreeMap<&'static str, usize>,
    changed: usize,
    records: usize,
    /// In sentences.
    lost: Vec<String>,
    doubled: Vec<String>,
    /// Settings, things and processes.
    pub(super) left: Vec<String>,
    /// From a kill until everything was as before: by the watchdog, and by who came next.
    by_watchdog: Vec<Duration>,
    by_next: Vec<Duration>,
}

impl Tally {
    /// A kill has hit this.
    pub(super) fn kill(&mut self, command: &'static str, target: Target, changed: bool) {
        *self.targets.entry(target).or_default() += 1;
        *self.commands.entry(command).or_default() += 1;
        self.changed += usize::from(changed);
    }

    /// How many have hit.
    pub(super) fn kills(&self) -> usize {
        self.targets.values().sum()
    }

    /// Everything was as before.
    pub(super) fn back(&mut self, after: Duration, by_watchdog: bool) {
        if by_watchdog { self.by_watchdog.push(after) } else { self.by_next.push(after) }
    }

    /// What became of the records of a run.
    pub(super) fn judged(&mut self, judged: Judged) {
        self.records += judged.records;
        self.lost.extend(judged.lost);
        self.doubled.extend(judged.doubled);
    }

    /// Whether nothing was lost, doubled or left.
    pub(super) fn is_good(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.left.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, rows) in [("lost", &self.lost), ("doubled", &self.doubled), ("left", &self.left)]
        {
            rows.iter().try_for_each(|row| writeln!(f, "{what}: {row}"))?;
        }
        let count = |target: &Target| self.targets.get(target).copied().unwrap_or(0);
        let targets = TARGETS.iter().map(|target| format!("{target} {}", count(target)));
        let targets = targets.collect::<Vec<_>>().join(", ");
        writeln!(f, "kills     {} ({targets})", self.kills())?;
        let commands = self.commands.iter().map(|(name, count)| format!("{name} {count}"));
        writeln!(f, "          {}", commands.collect::<Vec<_>>().join(", "))?;
        writeln!(f, "          {} while something was changed", self.changed)?;
        let [lost, doubled, left] = [&self.lost, &self.doubled, &self.left].map(Vec::len);
        writeln!(f, "records   {}, lost {lost}, doubled {doubled}", self.records)?;
        writeln!(f, "settings  left {left}")?;
        writeln!(f, "restored  by the watchdog {}", times(&self.by_watchdog))?;
        writeln!(f, "          by doctor --restore or the next run {}", times(&self.by_next))
    }
}

/// `141 times, median 14 ms, max 33 ms`.
fn times(all: &[Duration]) -> String {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    match (sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(median), Some(max)) => {
            format!("{} times, median {:.1} ms, max {:.1} ms", all.len(), ms(median), ms(max))
        }
        _ => "never".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_lost_doubled_or_left_is_not_good() {
        assert!(Tally::default().is_good());
        let one = || vec!["x".to_owned()];
        for judged in [
            Judged { lost: one(), ..Judged::default() },
            Judged { doubled: one(), ..Judged::default() },
        ] {
            let mut tally = Tally::default();
            tally.judged(judged);
            assert!(!tally.is_good());
        }
        assert!(!Tally { left: one(), ..Tally::default() }.is_good());
    }

    #[test]
    fn the_summary_names_every_figure() {
        let mut tally = Tally::default();
        tally.kill("run", Target::Group, true);
        tally.kill("resume", Target::Tree, false);
        tally.back(Duration::from_millis(12), true);
        tally.judged(Judged { records: 3, ..Judged::default() });
        let text = tally.to_string();
        assert!(text.contains("kills     2 (main 0, group 1, child 0, watchdog 0, tree 1)"));
        assert!(text.contains("1 while something was changed"), "{text}");
        assert!(text.contains("records   3, lost 0, doubled 0\nsettings  left 0\n"), "{text}");
        assert!(text.contains("watchdog 1 times, median 12.0 ms, max 12.0 ms"), "{text}");
        assert!(text.contains("the next run never"), "{text}");
    }
}
