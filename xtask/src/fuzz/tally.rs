//! What a fuzzer says at its end, as numbers.
//!
//! The one idea: libFuzzer prints its statistics also when it found something, so they are read
//! from its lines instead of its exit code.

use std::fmt::Write;

/// What came of one target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Inputs that were tried.
    pub(super) executions: u64,
    /// Of these in a second.
    per_second: u64,
    /// Inputs that failed; the first ends a run.
    findings: u64,
    /// Branches of the code that were reached.
    pub(super) coverage: u64,
}

impl Tally {
    /// Reads a line; true when it is only about progress.
    pub(super) fn reads(&mut self, said: &str) -> bool {
        let number = |name: &str| -> Option<u64> {
            let rest = &said[said.find(name)? + name.len()..];
            rest.split_whitespace().next()?.parse().ok()
        };
        if said.starts_with('#') {
            self.coverage = number(" cov: ").unwrap_or(self.coverage);
            return true;
        }
        if said.contains("Test unit written to") {
            self.findings += 1;
        }
        self.executions = number("stat::number_of_executed_units:").unwrap_or(self.executions);
        self.per_second = number("stat::average_exec_per_sec:").unwrap_or(self.per_second);
        said.starts_with("INFO:") || said.starts_with("stat::")
    }

    fn seconds(&self) -> u64 {
        self.executions.checked_div(self.per_second).unwrap_or(0)
    }
}

/// A line for each target, and one for all.
pub(super) fn table(tallies: &[(&str, Tally)]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, cells: [&str; 4]| {
        let [executions, seconds, findings, coverage] = cells;
        let row = format!("{name:<8} {executions:>13} {seconds:>8} {findings:>9} {coverage:>9}");
        let _ = writeln!(text, "{}", row.trim_end());
    };
    line("target", ["executions", "seconds", "findings", "coverage"]);
    for (name, tally) in tallies {
        let numbers = [tally.executions, tally.seconds(), tally.findings, tally.coverage];
        line(name, numbers.map(|number| number.to_string()).each_ref().map(String::as_str));
    }
    let sum = |of: fn(&Tally) -> u64| -> String {
        tallies.iter().map(|(_, tally)| of(tally)).sum::<u64>().to_string()
    };
    let all = [sum(|one| one.executions), sum(Tally::seconds), sum(|one| one.findings)];
    line("all", [&all[0], &all[1], &all[2], ""]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
INFO: Running with entropic power schedule (0xFF, 100).
#2\tINITED cov: 171 ft: 394 corp: 107/3020b exec/s: 0 rss: 27Mb
#300000\tDONE   cov: 173 ft: 489 corp: 144/6508b lim: 128 exec/s: 150000 rss: 27Mb
thread panicked: half = is not half
Test unit written to ./crash-1
stat::number_of_executed_units: 300000
stat::average_exec_per_sec:     150000
stat::new_units_added:          201";

    fn read() -> (Tally, Vec<&'static str>) {
        let mut tally = Tally::default();
        let shown = SAID.lines().filter(|line| !tally.reads(line)).collect();
        (tally, shown)
    }

    #[test]
    fn executions_coverage_and_findings_are_read() {
        let expected =
            Tally { executions: 300_000, per_second: 150_000, findings: 1, coverage: 173 };
        assert_eq!(read().0, expected);
    }

    #[test]
    fn only_what_is_no_progress_is_shown() {
        let shown = ["thread panicked: half = is not half", "Test unit written to ./crash-1"];
        assert_eq!(read().1, shown);
    }

    #[test]
    fn the_table_ends_with_the_sum() {
        let text = table(&[("decode", read().0), ("image", read().0)]);
        assert!(text.ends_with("all             600000        4         2\n"), "{text}");
        assert!(text.contains("decode          300000        2         1       173\n"), "{text}");
    }

    #[test]
    fn a_target_that_never_ran_has_executed_nothing() {
        let text = table(&[("decode", Tally::default())]);
        assert!(text.contains("decode               0        0         0         0\n"), "{text}");
    }
}
