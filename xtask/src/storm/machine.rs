//! The machine that is shared with others: its lock, its settings, and when they are back.
//!
//! The one idea: settings are read only while nobody changes them, and that is while this process
//! holds the lock of pagelab's runs, for the moment that reading takes. Somebody else's run is
//! waited for, with a bound, and its time is not counted.

use std::{
    fs::{self, File, TryLockError},
    thread,
    time::Duration,
};

use anyhow::{Result, bail};

use super::{clock::Watch, family::Member, settings::Settings};

/// The lock of all runs on a machine, and their list of what is changed.
const LOCK: &str = "/run/pagelab/knobs.lock";
const CHANGES: &str = "/run/pagelab/knobs.jsonl";

/// How long others may have the machine.
const OTHERS_MAX: Duration = Duration::from_secs(3600);
/// How long what a killed run left may take to be back: so long that it is no question of speed.
const BACK_MAX: Duration = Duration::from_secs(600);
/// The same where the storm has found something already, and is not to take days.
const BACK_LATER_MAX: Duration = Duration::from_secs(15);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// What became of the settings after a kill.
#[derive(Debug, Default)]
pub(super) struct Back {
    /// Since the kill; `None` where somebody else had the machine meanwhile.
    pub(super) after: Option<Duration>,
    /// What is not as it was, in sentences.
    pub(super) left: Vec<String>,
}

/// The settings, once nobody has the machine.
pub(super) fn at_rest() -> Result<Settings> {
    let watch = Watch::start();
    while watch.passed() < OTHERS_MAX {
        if let Some(settings) = while_free()? {
            return Ok(settings);
        }
        thread::sleep(PAUSE);
    }
    bail!("{} has held the machine for {} s", holder(), OTHERS_MAX.as_secs())
}

/// How long something may take to be as before, in a storm that has found so much until now.
pub(super) const fn patience(found: usize) -> Duration {
    if found == 0 { BACK_MAX } else { BACK_LATER_MAX }
}

/// Waits until everything is as before, or has had the time for it.
pub(super) fn back(
    before: &Settings,
    ours: u32,
    since: &Watch,
    patience: Duration,
) -> Result<Back> {
    let mut others = None;
    let mut left = Vec::new();
    loop {
        if let Some(now) = while_free()? {
            left = before.left(&now);
            if left.is_empty() {
                let after = others.is_none().then(|| since.passed());
                return Ok(Back { after, left });
            }
        } else if pid_of_holder() != Some(ours) {
            let others = others.get_or_insert_with(Watch::start);
            if others.passed() > OTHERS_MAX {
                bail!("{} has held the machine for {} s", holder(), OTHERS_MAX.as_secs());
            }
            thread::sleep(PAUSE);
            continue;
        } else if left.is_empty() && since.passed() > patience {
            left.push(format!("{LOCK} is still held by {}", holder()));
        }
        if since.passed() > patience {
            return Ok(Back { after: None, left });
        }
        thread::sleep(PAUSE);
    }
}

/// Which of these processes are still there after they have had time to end.
pub(super) fn survivors(members: &[Member], since: &Watch, patience: Duration) -> Vec<String> {
    while members.iter().any(Member::is_alive) && since.passed() < patience {
        thread::sleep(PAUSE);
    }
    let alive = members.iter().filter(|member| member.is_alive());
    alive.map(|member| format!("{member} runs still")).collect()
}

/// Whether something is changed at this moment.
pub(super) fn is_changed() -> bool {
    fs::metadata(CHANGES).is_ok_and(|data| data.len() > 0)
}

/// The settings, where nobody has the lock; without its file nobody ever had.
fn while_free() -> Result<Option<Settings>> {
    let lock = File::open(LOCK).ok();
    match lock.as_ref().map(File::try_lock) {
        None | Some(Ok(())) => Ok(Some(Settings::now())),
        Some(Err(TryLockError::WouldBlock)) => Ok(None),
        Some(Err(TryLockError::Error(error))) => bail!("{LOCK}: {error}"),
    }
}

fn pid_of_holder() -> Option<u32> {
    let text = fs::read(LOCK).ok()?;
    let holder: serde_json::Value = serde_json::from_slice(&text).ok()?;
    u32::try_from(holder["pid"].as_u64()?).ok()
}

fn holder() -> String {
    pid_of_holder().map_or_else(|| "nobody known".into(), |pid| format!("process {pid}"))
}
