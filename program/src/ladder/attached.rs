//! A process that runs already: what collapsing its memory from outside does to it under a load.
//!
//! The one idea: what was collapsed nobody splits again, so there is no going back and forth as on
//! the ladder. The client's load runs so many times before, the memory is collapsed, and the load
//! runs as many times after; whatever else changed between the two is in the difference too, which
//! a report says. The process is advised and looked at, never stopped, signalled or ended.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Seek},
    process::ExitStatus,
    thread,
    time::Duration,
};

use pagelab_record::{Case, Outcome, Record};
use pagelab_sys::{
    counts::Counters,
    machine::proc::Holding,
    process::{
        forget_interrupts, interrupted,
        launch::{Ended, Other},
        tree,
    },
    time::{Usage, monotonic_raw_ns},
};

use super::{
    attend::{ASK, stamped},
    load::{self, Score},
    look::{Expected, Eyes},
    maps,
    once::Once,
    outside::{Collapsed, Collapsing},
    rungs::{Offer, Outside},
    streams::{PATIENCE, last_words},
    tally::Tally,
};
use crate::stat::Stat;

/// A process that runs already, before and after.
#[derive(Debug)]
pub struct Attached {
    pid: u32,
    /// It and no other: its number may be somebody else's once it has ended.
    process: Other,
    line: String,
    client: OsString,
    scores: Vec<Score>,
    sides: [(Offer, Tally); 2],
    /// Nanoseconds that the load took the last time.
    usual_ns: Option<u64>,
}

/// What is told of the way.
#[derive(Debug)]
pub enum Step<'s> {
    /// The load ran once more on a rung, in so many nanoseconds.
    Ran(&'s str, u32, u64),
    /// So many bytes of it are in huge pages since, which took so many nanoseconds.
    Collapsed(u64, u64),
}

/// Why it ended early.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The process has ended.
    #[error("process {0} has ended")]
    Ended(u32),
    /// The load failed.
    #[error("{0}")]
    Load(String),
}

impl Attached {
    /// A process with what was offered for it: as it is, and collapsed.
    ///
    /// # Errors
    /// When there is none of that number, or it has no memory.
    pub fn to(
        pid: u32,
        offers: [Offer; 2],
        client: OsString,
        scores: Vec<Score>,
    ) -> io::Result<Self> {
        let (line, process) = (line(pid)?, Other::of(pid)?);
        let own = std::process::id();
        if pid == own || tree::below(pid).contains(&own) {
            return Err(io::Error::other("pagelab itself is below it, and would be measured too"));
        }
        let sides = offers.map(|offer| (offer, Tally::default()));
        Ok(Self { pid, process, line, client, scores, sides, usual_ns: None })
    }

    /// Goes all the way: so many loads before and after, whose output goes to a file.
    ///
    /// # Errors
    /// When it ends early; what was seen until then stays.
    pub fn all(
        &mut self,
        rounds: u32,
        output: &mut File,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<(), Lost> {
        // The first load is nobody's: it warms up what the process keeps.
        self.block(output, Collapsed::default())?;
        for round in 0..rounds {
            let once = self.block(output, Collapsed::default())?;
            self.add(0, round, &once, tell);
        }
        if self.has_ended() {
            return Err(Lost::Ended(self.pid));
        }
        let mut collapsing = Collapsing::of(Outside::Anonymous);
        let before = self.huge();
        let begun = monotonic_raw_ns();
        collapsing.go_on(&self.processes());
        let gained = self.huge().saturating_sub(before);
        tell(Step::Collapsed(gained, monotonic_raw_ns() - begun));
        let mut told = Collapsed::default();
        if gained == 0 {
            self.sides[1].1.settled = Some(nothing_came(collapsing.came()));
        } else {
            for round in 0..rounds {
                // What it has filled since.
                collapsing.go_on(&self.processes());
                let more = collapsing.came().since(&told);
                told = collapsing.came().clone();
                let once = self.block(output, more)?;
                self.add(1, round, &once, tell);
            }
        }
        Ok(())
    }

    /// What each side has come to.
    pub fn records(&self, run: &str) -> Vec<Record> {
        let case = |rung: &str| Case::default().with("program", &self.line).with("rung", rung);
        let record = |(offer, tally): &(Offer, Tally)| tally.record(run, case(&offer.rung.name), 1);
        self.sides.iter().map(record).collect()
    }

    fn add(&mut self, side: usize, round: u32, once: &Once, tell: &mut dyn FnMut(Step<'_>)) {
        let (offer, tally) = &mut self.sides[side];
        tell(Step::Ran(&offer.rung.name, round, once.elapsed_ns));
        tally.add(offer, round, once, &self.scores);
    }

    fn has_ended(&self) -> bool {
        self.process.wait(Duration::ZERO)
    }

    /// It, and what it started.
    fn processes(&self) -> Vec<u32> {
        [self.pid].into_iter().chain(tree::below(self.pid)).collect()
    }

    /// Anonymous bytes in huge pages.
    fn huge(&self) -> u64 {
        let all = self.processes().into_iter().filter_map(Holding::of);
        all.map(|holding| holding.kinds()[0]).sum()
    }

    /// What it and what it started have spent; who has ended is not among them.
    fn spent(&self) -> Usage {
        let all = self.processes().into_iter().filter_map(Stat::of);
        all.fold(Usage::default(), |sum, stat| Usage {
            minor_faults: sum.minor_faults + stat.faults.0,
            major_faults: sum.major_faults + stat.faults.1,
            user_ns: sum.user_ns + stat.cpu_ns.0,
            system_ns: sum.system_ns + stat.cpu_ns.1,
            ..sum
        })
    }

    /// The load, once.
    fn block(&mut self, output: &mut File, collapsed: Collapsed) -> Result<Once, Lost> {
        let failed = |error: io::Error| Lost::Load(error.to_string());
        output.set_len(0).and_then(|()| output.rewind()).map_err(failed)?;
        let expected = Expected { whole_ns: self.usual_ns, ..Expected::default() };
        let mut eyes = Eyes::beside(self.pid, expected);
        let (spent, before) = (self.spent(), Counters::read(None));
        // It may be a child of ours: a shell that started it may have become this pagelab.
        let others = tree::below_us();
        let begun = monotonic_raw_ns();
        let child = load::shell(&self.client, output).map_err(failed)?;
        let waits = stamped(child).map_err(failed)?;
        while !waits.is_finished() {
            let is_over = self.has_ended();
            if is_over || interrupted() {
                forget_interrupts();
                tree::end_below_us(&others, PATIENCE);
                return Err(if is_over { Lost::Ended(self.pid) } else { Lost::Interrupted });
            }
            if eyes.rest_ns() == 0 {
                eyes.look();
            }
            thread::sleep(ASK);
        }
        let (at_ns, status) =
            waits.join().map_err(|_| Lost::Load("nobody waited for it".to_owned()))?;
        let elapsed_ns = at_ns.saturating_sub(begun);
        self.usual_ns = Some(elapsed_ns);
        eyes.look();
        let usage = since(self.spent(), spent);
        let counters = Counters::read(None).since(&before);
        tree::end_below_us(&others, PATIENCE);
        match status.map_err(failed)? {
            status if status.success() => (),
            status => {
                let words = last_words(output);
                return Err(Lost::Load(format!("its client failed ({status}){words}")));
            }
        }
        Ok(Once {
            elapsed_ns,
            scores: self.said(output)?,
            ended: Ended { status: ExitStatus::default(), usage, peak: 0, at_ns },
            seen: eyes.close(),
            counters,
            digest: 0,
            collapsed,
            counts: None,
            watched: None,
            logged: None,
            left: 0,
            before_exec: 0,
            group_peak: None,
        })
    }

    /// What the client said.
    fn said(&self, output: &mut File) -> Result<Vec<f64>, Lost> {
        let said = load::content(output).map_err(|error| Lost::Load(error.to_string()))?;
        let score = |score: &Score| {
            let none = || Lost::Load(format!("its client says no {} above 0", score.name));
            score.of(&said).ok_or_else(none)
        };
        self.scores.iter().map(score).collect()
    }
}

/// What was spent between two readings, of which the later lacks who has ended.
fn since(now: Usage, earlier: Usage) -> Usage {
    Usage {
        minor_faults: now.minor_faults.saturating_sub(earlier.minor_faults),
        major_faults: now.major_faults.saturating_sub(earlier.major_faults),
        user_ns: now.user_ns.saturating_sub(earlier.user_ns),
        system_ns: now.system_ns.saturating_sub(earlier.system_ns),
        ..Usage::default()
    }
}

/// What a process is called: its number and the words that started it.
fn line(pid: u32) -> io::Result<String> {
    if !maps::is_there(pid) {
        return Err(io::Error::other("there is no such process with memory of its own"));
    }
    let words = fs::read(format!("/proc/{pid}/cmdline"))?;
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    Ok(format!("process {pid} ({})", words.trim()))
}

/// Why there is no after.
fn nothing_came(came: &Collapsed) -> Outcome {
    let refused = came.why.filter(|_| came.refused > 0).map_or(String::new(), |errno| {
        format!("; the kernel refused {} blocks (error {errno})", came.refused)
    });
    Outcome::Skipped {
        need: format!("anonymous memory, dense and in base pages: none was collapsed{refused}"),
        cure: "look at AnonHugePages in /proc/PID/smaps: it may have huge pages already".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_line_and_one_without_memory_has_none() {
        let own = line(std::process::id()).unwrap();
        assert!(own.starts_with(&format!("process {} (", std::process::id())), "{own}");
        assert!(line(u32::MAX).is_err());
        // A thread of the kernel.
        assert!(line(2).is_err() || std::path::Path::new("/proc/2/exe").exists());
    }

    #[test]
    fn a_process_that_ended_meanwhile_takes_nothing_away() {
        let spent = Usage { minor_faults: 5, user_ns: 10, ..Usage::default() };
        assert_eq!(since(Usage::default(), spent), Usage::default());
        assert_eq!(since(spent, Usage::default()), spent);
    }
}
