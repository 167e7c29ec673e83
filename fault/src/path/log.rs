//! What the plugin wrote: a line of JSON for each path, sample and message.
//!
//! The one idea: a log is whole or it is refused. A line that is torn, a sample of a path that was
//! never told, or samples outside of any repetition are an error with the line's number.

use pagelab_bench::Error;
use pagelab_record::{Outcome, Record};
use serde::Deserialize;

use super::symbols::Symbols;

/// Instructions that lie one behind the other, as they were executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "[u64; 9]")]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) counts: Counts,
    pub(super) end: End,
    /// The stack that its call pushed to, by a number from 1; 0 where it calls nothing.
    pub(super) stack: u64,
}

/// How the last instruction of a run goes elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// Not at all, or by a jump, a return, an exception.
    Plain,
    Calls,
    /// Back to what an interrupt or an exception came into.
    Resumes,
}

/// Bytes of a run at most: no code goes on for longer without a jump.
const RUN_BYTES_MAX: u64 = 1 << 20;

impl TryFrom<[u64; 9]> for Run {
    type Error = String;

    fn try_from(row: [u64; 9]) -> Result<Self, String> {
        let [start, bytes, instructions, loads, stores, locked, string, end, stack] = row;
        let counts = Counts { instructions, loads, stores, locked, string };
        let end = match end {
            0 => End::Plain,
            1 => End::Calls,
            2 => End::Resumes,
            _ => return Err(format!("a run that ends with {end}")),
        };
        if bytes > RUN_BYTES_MAX {
            return Err(format!("a run of {bytes} bytes"));
        }
        Ok(Self { start, bytes, counts, end, stack })
    }
}

/// What some instructions did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(super) struct Counts {
    pub(super) instructions: u64,
    pub(super) loads: u64,
    pub(super) stores: u64,
    pub(super) locked: u64,
    /// Bytes that string instructions stored.
    pub(super) string: u64,
}

impl Counts {
    pub(super) const NAMES: [&'static str; 5] =
        ["instructions", "loads", "stores", "locked", "bytes"];

    pub(super) fn row(self) -> [u64; 5] {
        [self.instructions, self.loads, self.stores, self.locked, self.string]
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.loads = self.loads.saturating_add(other.loads);
        self.stores = self.stores.saturating_add(other.stores);
        self.locked = self.locked.saturating_add(other.locked);
        self.string = self.string.saturating_add(other.string);
    }
}

/// Sorts of memory: distinct lines and pages of each.
pub(super) const PLACES: [&str; 6] =
    ["user", "page-structs", "per-cpu", "stack", "kernel-data", "other"];
pub(super) type Places = [[u64; 2]; PLACES.len()];

/// A window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Sample {
    /// The number of its path.
    pub(super) path: usize,
    pub(super) places: Places,
    /// Its place among all windows of the machine.
    #[serde(skip)]
    pub(super) place: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Path { number: usize, runs: Vec<Run> },
    Sample(Sample),
    Say(Said),
    Unheard(serde::de::IgnoredAny),
    End { is_open: bool },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Kernel(Kernel),
    Symbols(String),
    Repetition { arm: String, number: Option<u32> },
    Record(Box<Record>),
    Failed(String),
}

/// The kernel of the machine, as it says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) command: String,
}

/// The windows of a repetition of an arm; without a number it warmed up.
#[derive(Debug)]
struct Repetition {
    arm: String,
    number: Option<u32>,
    samples: Vec<Sample>,
}

/// A log, read.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) kernel: Kernel,
    pub(super) symbols: Symbols,
    /// What the case came to inside.
    pub(super) record: Option<Box<Record>>,
    pub(super) paths: Vec<Vec<Run>>,
    /// The path of each window, in the order of the machine.
    pub(super) windows: Vec<usize>,
    /// Whether a window was open when the machine ended.
    pub(super) is_open: bool,
    repetitions: Vec<Repetition>,
    failed: Option<String>,
}

impl Log {
    /// Reads it.
    ///
    /// # Errors
    /// Which line is none of a log's, or that it ends before its end.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut log = Self::default();
        let mut has_ended = false;
        for (index, line) in text.lines().enumerate() {
            let at = |why: &dyn std::fmt::Display| format!("line {} of the log: {why}", index + 1);
            let line: Line = serde_json::from_str(line).map_err(|error| at(&error))?;
            match line {
                Line::End { is_open } => (has_ended, log.is_open) = (true, is_open),
                other => log.add(other).map_err(|why| at(&why))?,
            }
        }
        if has_ended { Ok(log) } else { Err("the log ends before the machine did".to_owned()) }
    }

    fn add(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Path { number, runs } if number == self.paths.len() => self.paths.push(runs),
            Line::Path { number, .. } => return Err(format!("path {number} comes out of turn")),
            Line::Sample(mut sample) if sample.path < self.paths.len() => {
                sample.place = self.windows.len();
                self.windows.push(sample.path);
                let last = self.repetitions.last_mut();
                last.ok_or("a sample before any repetition")?.samples.push(sample);
            }
            Line::Sample(sample) => return Err(format!("path {} was never told", sample.path)),
            Line::Say(Said::Kernel(kernel)) => self.kernel = kernel,
            Line::Say(Said::Symbols(text)) => self.symbols = Symbols::read(&text),
            Line::Say(Said::Repetition { arm, number }) => {
                // One that is taken again is begun again.
                self.repetitions.retain(|one| (&one.arm, one.number) != (&arm, number));
                self.repetitions.push(Repetition { arm, number, samples: Vec::new() });
            }
            Line::Say(Said::Record(record)) => self.record = Some(record),
            Line::Say(Said::Failed(why)) => self.failed = Some(why),
            Line::Unheard(_) => return Err("a message of the guest could not be read".to_owned()),
            Line::End { .. } => (),
        }
        Ok(())
    }

    /// The windows of an arm, in the order in which they were taken, without those that warmed up.
    pub(super) fn samples<'l>(&'l self, arm: &'l str) -> impl Iterator<Item = &'l Sample> {
        let mine =
            self.repetitions.iter().filter(move |one| one.arm == arm && one.number.is_some());
        mine.flat_map(|one| &one.samples)
    }

    /// Why nothing was measured inside.
    pub(super) fn failure(&self) -> Option<Error> {
        let outcome = self.record.as_ref().map(|record| &record.outcome);
        let failed = |why: &String| Some(Error::Case(format!("in the machine: {why}")));
        match (&self.failed, outcome) {
            (Some(why), _) | (None, Some(Outcome::Failed { reason: why })) => failed(why),
            (None, Some(Outcome::Skipped { need, cure })) => {
                let need = format!("{need}, in the machine");
                Some(Error::Lacks { need, cure: cure.clone() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "{\"say\":{\"repetition\":{\"arm\":\"a\",\"number\":0}}}\n";
    const WARM: &str = "{\"say\":{\"repetition\":{\"arm\":\"a\",\"number\":null}}}\n";
    const PATH: &str = "{\"path\":{\"number\":0,\"runs\":[[1,2,3,4,5,6,7,1,1]]}}\n";
    const SAMPLE: &str =
        "{\"sample\":{\"path\":0,\"places\":[[1,1],[0,0],[0,0],[0,0],[0,0],[0,0]]}}\n";
    const END: &str = "{\"end\":{\"is_open\":false}}\n";

    #[test]
    fn what_warmed_up_or_was_taken_again_is_no_sample() {
        let text = [PATH, WARM, SAMPLE, BEGIN, SAMPLE, SAMPLE, BEGIN, SAMPLE, END].concat();
        let log = Log::read(&text).unwrap();
        assert_eq!((log.samples("a").count(), log.samples("b").count()), (1, 0));
        let run = log.paths[0][0];
        assert_eq!(
            (run.start, run.counts.instructions, run.counts.string, run.end),
            (1, 3, 7, End::Calls)
        );
    }

    #[test]
    fn a_log_that_is_not_whole_is_refused_with_its_line() {
        for (lines, why) in [
            (&[PATH, BEGIN, SAMPLE][..], "ends before"),
            (&[BEGIN, SAMPLE, END], "line 2 of the log: path 0 was never told"),
            (&[PATH, SAMPLE, END], "before any repetition"),
            (&[PATH, PATH, END], "line 2 of the log: path 0 comes out of turn"),
            (&["{\"path\":{\"number\":0,\"runs\":[[1]]}}\n", END], "line 1"),
            (&["{\"path\":{\"number\":0,\"runs\":[[1,2,3,4,5,6,7,9,0]]}}\n", END], "ends with 9"),
            (
                &["{\"path\":{\"number\":0,\"runs\":[[1,9999999,3,4,5,6,7,0,0]]}}\n", END],
                "9999999 bytes",
            ),
            (&["{\"unheard\":true}\n", END], "could not be read"),
            (&["\n", END], "line 1"),
        ] {
            let error = Log::read(&lines.concat()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_the_guest_gave_up_with_is_the_failure() {
        let text = ["{\"say\":{\"failed\":\"no /proc\"}}\n", END].concat();
        let failure = Log::read(&text).unwrap().failure().unwrap();
        assert_eq!(failure.to_string(), "in the machine: no /proc");
    }
}
