//! One process of pagelab from its start to its end, with what happens to it on the way.

use std::{
    fs::{self, File},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    clock::Watch,
    family::{self, Member, Target, has, strike},
    machine,
};
use crate::storm::draw::Draw;

/// What no run of a storm takes, also on a machine that stands still for minutes.
const LIFE_MAX: Duration = Duration::from_secs(1800);
/// Between two looks at a process.
const PAUSE: Duration = Duration::from_micros(500);
/// A moment of the life of a part that was waited for is drawn from so long.
const PART_MAX: Duration = Duration::from_millis(50);
/// How a run says that somebody else has the machine.
const HELD: &str = "holds the machine's knobs";

/// A kill that hit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    /// What was killed.
    pub(super) target: Target,
    /// Whether something of the machine was changed at that moment.
    pub(super) changed: bool,
}

/// A process that has ended.
#[derive(Debug)]
pub(super) struct Life {
    /// Its number.
    pub(super) pid: u32,
    /// How it ended.
    pub(super) status: ExitStatus,
    /// The kills that hit it.
    pub(super) hits: Vec<Hit>,
    /// Everything that descended from it when it was hit.
    pub(super) members: Vec<Member>,
    /// Since the last hit, or since its end.
    pub(super) since: Watch,
    /// From its start to its end.
    pub(super) took: Duration,
    /// Whether it had to be ended because it did not.
    pub(super) hung: bool,
    said: PathBuf,
}

/// When to kill what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blow {
    /// After the one before, or the start.
    pub(super) after: Duration,
    /// What.
    pub(super) target: Target,
}

impl Life {
    /// Starts a command and deals blows, each only while it goes on after the one before.
    /// `look` is called just before each.
    pub(super) fn lived(
        command: &mut Command,
        said: &Path,
        blows: &[Blow],
        draw: &mut Draw,
        look: &mut dyn FnMut(),
    ) -> Result<Self> {
        let file = |name: &str| {
            let path = said.with_extension(name);
            File::create(&path).with_context(|| path.display().to_string())
        };
        command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?);
        let watch = Watch::start();
        let mut child = command.process_group(0).spawn().context("starting pagelab")?;
        let (mut hits, mut members) = (Vec::new(), Vec::new());
        let mut since = watch;
        for blow in blows {
            if ended_by(&mut child, blow.after)?.is_some() || !comes(&mut child, blow, draw)? {
                break;
            }
            look();
            let changed = machine::is_changed();
            members.extend(family::family(child.id()));
            since = Watch::start();
            hits.extend(strike(&child, blow.target, draw).map(|target| Hit { target, changed }));
        }
        let ended = ended_by(&mut child, LIFE_MAX)?;
        let hung = ended.is_none();
        if hung {
            strike(&child, Target::Tree, draw);
        }
        let status = ended.map_or_else(|| child.wait().context("waiting for pagelab"), Ok)?;
        let took = watch.passed();
        if hits.is_empty() {
            since = Watch::start();
        }
        let said = said.with_extension("stderr");
        Ok(Self { pid: child.id(), status, hits, members, since, took, hung, said })
    }

    /// Whether it was the kill that ended it.
    pub(super) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// Whether nobody is left who could put settings back.
    pub(super) fn lost_its_watchdog(&self) -> bool {
        self.hits.iter().any(|hit| matches!(hit.target, Target::Watchdog | Target::Tree))
    }

    /// Whether it did not begin because somebody else had the machine.
    pub(super) fn was_refused(&self) -> bool {
        self.status.code() == Some(3) && self.said().contains(HELD)
    }

    /// The records that it said were finished: `[2/6] fault/latency …`.
    pub(super) fn told(&self) -> usize {
        self.said().lines().filter(|line| tells(line)).count()
    }

    /// All that it said beside results.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.said).unwrap_or_default()).into_owned()
    }
}

/// Waits for a part of the run that is not there at this moment, and then for a moment of its
/// life; false where the run ends first.
fn comes(child: &mut Child, blow: &Blow, draw: &mut Draw) -> Result<bool> {
    if has(child, blow.target) {
        return Ok(true);
    }
    while !has(child, blow.target) {
        if ended_by(child, PAUSE)?.is_some() {
            return Ok(false);
        }
    }
    Ok(ended_by(child, draw.moment(PART_MAX))?.is_none())
}

/// Waits so long for its end, and says how it ended if it did.
fn ended_by(child: &mut Child, wait: Duration) -> Result<Option<ExitStatus>> {
    let watch = Watch::start();
    loop {
        if let Some(status) = child.try_wait().context("waiting for pagelab")? {
            return Ok(Some(status));
        }
        let Some(left) = wait.checked_sub(watch.passed()).filter(|left| !left.is_zero()) else {
            return Ok(None);
        };
        thread::sleep(left.min(PAUSE));
    }
}

/// Whether a whole line says that a record is finished.
fn tells(line: &str) -> bool {
    let inside = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let numbers = inside.and_then(|(numbers, _)| numbers.split_once('/'));
    numbers.is_some_and(|(index, all)| {
        [index, all].iter().all(|number| number.parse::<usize>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_tells_of_a_record_is_known() {
        assert!(tells("[2/6] fault/latency page=4k: measured"));
        assert!(!tells("[vm] 2/6") && !tells("report: a/report.html") && !tells("[1/"));
    }

    #[test]
    fn a_life_that_is_cut_short_says_by_what() {
        let folder = std::env::temp_dir().join(format!("xtask-life-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo '[1/2] a: measured' >&2; sleep 1000"]);
        let said = folder.join("life");
        let blow = Blow { after: Duration::from_millis(100), target: Target::Group };
        let mut looks = 0;
        let life = Life::lived(&mut command, &said, &[blow], &mut Draw::of(1, 1), &mut || {
            looks += 1;
        });
        let life = life.unwrap();
        assert!(life.was_killed() && !life.was_refused() && !life.lost_its_watchdog());
        assert_eq!((looks, life.hits[0].target), (1, Target::Group));
        // One that ends by itself is not hit.
        let mut command = Command::new("true");
        let late = Blow { after: LIFE_MAX, target: Target::Tree };
        let life = Life::lived(&mut command, &said, &[late], &mut Draw::of(1, 1), &mut || ());
        let life = life.unwrap();
        assert!(life.hits.is_empty() && life.status.success() && life.told() == 0);
        fs::remove_dir_all(folder).unwrap();
    }
}
