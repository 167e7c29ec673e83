//! The loop: an engine for each process, a pass of each in turn, until the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufWriter, Write},
    time::Duration,
};

use pagelab_live::{
    Engine, Options,
    board::Board,
    engine::{Ended, wait_until},
    source::Source,
    target::{self, Refused},
};
use pagelab_sys::{
    files::folder::{Made, Target},
    time::monotonic_raw_ns,
};

use super::{Promote, program::Started, refused, sum::Sum};
use pagelab_cli::exit::Failure;

/// A look at what was not used the last time comes twice as late, so often at most: a process that
/// does nothing costs a look in eight intervals.
const REST_MAX: u32 = 3;
/// A program that was just started has its memory soon.
const FIRST: Duration = Duration::from_millis(100);

impl Promote {
    /// Runs until the end; `started` is the program, where one was, and the first engine has the
    /// log.
    pub(super) fn follow(
        &self,
        source: &'static Source,
        options: &Options,
        mut started: Option<&mut Started>,
        mut log: Option<Target>,
    ) -> Result<Sum, Failure> {
        let begin = monotonic_raw_ns();
        let nanoseconds = |seconds: f64| {
            u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX)
        };
        let interval = nanoseconds(self.asked.interval.get());
        let end = self.duration.map(|length| begin.saturating_add(nanoseconds(length.get())));
        let mut engines: BTreeMap<u32, Engine> = BTreeMap::new();
        let mut known = BTreeSet::new();
        let mut sum = Sum::default();
        let board = Board::new().map_err(Failure::host)?;
        let (mut next, mut rest) = (begin, 0);
        if let Some(started) = &mut started {
            started.runs_for(FIRST)?;
        }
        loop {
            let pids = match self.pids(started.as_deref()) {
                Ok(pids) => pids,
                Err(why) if sum.passes == 0 => return Err(Failure::from(why)),
                Err(why) => {
                    sum.end(why);
                    break;
                }
            };
            let yard = started.as_deref().and_then(Started::yard);
            for &pid in pids.iter().filter(|pid| !known.contains(*pid)) {
                let is_first = started.as_deref().is_none_or(|program| program.pid() == pid);
                let kept = self.kept.clone().filter(|_| is_first).map(boxed);
                let (file, made) = match log.take_if(|_| is_first) {
                    Some(Target { file, made }) => (Some(boxed(BufWriter::new(file))), Some(made)),
                    None => (None, None),
                };
                match Engine::new(pid, source, yard, options.clone(), kept.or(file)) {
                    Ok(engine) => {
                        made.into_iter().for_each(Made::keep);
                        engines.insert(pid, engine);
                    }
                    Err(Ended::Target(why)) if self.pid.is_some() => return Err(refused(why)),
                    Err(Ended::Io(why)) => return Err(Failure::host(why)),
                    // One of several: the others go on.
                    Err(Ended::Target(why)) => sum.end(why.to_string()),
                }
            }
            known = pids;
            sum.passes += 1;
            let is_in_use = pass(&mut engines, &mut sum, &board, started.is_some())?;
            rest = if is_in_use { 0 } else { REST_MAX.min(rest + 1) };
            let is_last = self.passes.is_some_and(|passes| sum.passes >= passes);
            if is_last || engines.is_empty() && self.pid.is_some() {
                break;
            }
            next = next.saturating_add(interval.saturating_mul(1 << rest)).max(monotonic_raw_ns());
            let wake = end.map_or(next, |end| next.min(end));
            let goes_on = match &mut started {
                Some(started) => {
                    let left = wake.saturating_sub(monotonic_raw_ns());
                    started.runs_for(Duration::from_nanos(left))?
                }
                None => wait_until(wake),
            };
            if !goes_on || end.is_some_and(|end| monotonic_raw_ns() >= end) {
                break;
            }
        }
        for engine in engines.values() {
            sum.take(engine);
        }
        Ok(sum)
    }

    /// The processes that are there now.
    fn pids(&self, started: Option<&Started>) -> Result<BTreeSet<u32>, String> {
        match (&self.pid, &self.cgroup, started) {
            (Some(pid), _, _) => Ok(BTreeSet::from([*pid])),
            (None, Some(folder), _) => target::of_group(folder)
                .map(|pids| pids.into_iter().collect())
                .map_err(|why| format!("{}: {why}", folder.display())),
            (None, None, Some(started)) => started.pids(),
            (None, None, None) => Ok(BTreeSet::new()),
        }
    }
}

fn boxed(log: impl Write + 'static) -> Box<dyn Write> {
    Box::new(log)
}

/// A pass of each engine; whether any page was used, or it is not known yet.
///
/// Programs that were started end, and nothing is said of that; that a process ended which somebody
/// named is worth a word.
fn pass(
    engines: &mut BTreeMap<u32, Engine>,
    sum: &mut Sum,
    board: &Board,
    are_started: bool,
) -> Result<bool, Failure> {
    let (mut ended, mut is_in_use) = (Vec::new(), false);
    let mut shown = Vec::new();
    for (pid, engine) in &mut *engines {
        match engine.pass() {
            Ok(pass) => {
                is_in_use |= pass.used > 0 || pass.looks == 0;
                shown.push(engine.shown());
                sum.add(*pid, pass, engine);
            }
            Err(Ended::Target(why)) => ended.push((*pid, why)),
            Err(Ended::Io(why)) => return Err(Failure::host(why)),
        }
    }
    board.show(&shown).map_err(Failure::host)?;
    for (pid, why) in ended {
        if let Some(engine) = engines.remove(&pid) {
            sum.take(&engine);
        }
        if !are_started || !matches!(why, Refused::Gone(_) | Refused::Kernel(_)) {
            sum.end(why.to_string());
        }
    }
    // Where there is nobody yet, somebody may come.
    Ok(is_in_use || engines.is_empty())
}
