//! A program and all that it started: who they are, and how they are ended.
//!
//! The one idea: whoever waits for orphans (`PR_SET_CHILD_SUBREAPER`, Linux 3.4) loses sight of
//! none of them: a process whose parent has ended becomes our child, so all that is below us by
//! `/proc/PID/task/TID/children` (`CONFIG_PROC_CHILDREN`) is ours, and nothing else is.

use std::{collections::BTreeSet, io, os::fd::OwnedFd, time::Duration};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, set_child_subreaper,
        waitpid,
    },
};

use crate::{
    machine::proc::{self, Stat},
    time::monotonic_raw_ns,
};

/// Processes that are looked at, at most: somebody's tree may grow without an end.
const MOST: usize = 10_000;
/// Readings of the children of a process that starts and ends some all the time.
const READINGS: u32 = 8;
/// So long may those take to die that were killed.
const INSISTED: Duration = Duration::from_secs(60);
/// Between two looks at whether they have ended.
const WAIT: Duration = Duration::from_millis(5);

/// Makes orphans of what this process starts its own children, for good.
pub fn adopt_orphans() {
    // An old kernel has none: then orphans are not found, and stay where they are.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
}

/// All processes below this one, the nearest first.
pub fn below_us() -> Vec<u32> {
    below_us_but(&[])
}

/// All processes below one, the nearest first.
pub fn below(pid: u32) -> Vec<u32> {
    below_but(pid, &[])
}

/// All processes below this one but for some and what these started, the nearest first.
pub fn below_us_but(but: &[u32]) -> Vec<u32> {
    let mut found = below_but(std::process::id(), but);
    found.retain(|pid| !is_zombie(*pid));
    found
}

fn below_but(pid: u32, but: &[u32]) -> Vec<u32> {
    let known = |pid: u32| children(pid).into_iter().filter(|child| !but.contains(child));
    let mut found: Vec<u32> = known(pid).collect();
    let mut at = 0;
    while let Some(pid) = found.get(at).copied().filter(|_| found.len() < MOST) {
        found.extend(known(pid));
        at += 1;
    }
    found
}

/// The children of a process. A list that is read while a child is reaped may leave out another
/// (`get_children_pid` of `fs/proc/array.c`), so it is read until two readings agree.
fn children(pid: u32) -> Vec<u32> {
    let mut before = children_once(pid);
    for _ in 0..READINGS {
        let now = children_once(pid);
        if now == before {
            break;
        }
        before = now;
    }
    before
}

fn children_once(pid: u32) -> Vec<u32> {
    let threads = proc::threads(pid).into_iter().flatten();
    let lists =
        threads.filter_map(|tid| proc::text(format_args!("{pid}/task/{tid}"), "children").ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn is_zombie(pid: u32) -> bool {
    Stat::of(pid).and_then(|stat| stat.state()).is_none_or(|state| "ZX".contains(state))
}

/// Ends what is left below us, but for some and what these started: asks first, insists after
/// `patience`, and gives up where that helps nothing for a minute. How many there were in any look.
pub fn end_below_us(but: &[u32], patience: Duration) -> usize {
    let mut seen: BTreeSet<u32> = below_us_but(but).into_iter().collect();
    let mut asked = None;
    loop {
        reap(but);
        let left = below_us_but(but);
        seen.extend(&left);
        let since = |since: u64| Duration::from_nanos(monotonic_raw_ns() - since);
        let waited = asked.map(since);
        if left.is_empty() || waited.is_some_and(|waited| waited > patience + INSISTED) {
            // Who died since the last time.
            reap(but);
            return seen.len();
        }
        let insist = waited.is_some_and(|waited| waited >= patience);
        if asked.is_none() || insist {
            let signal = if insist { Signal::KILL } else { Signal::TERM };
            for pid in left.into_iter().filter_map(number) {
                // It may have ended meanwhile; its number is not given away before we reap it.
                let _ = kill_process(pid, signal);
            }
            asked.get_or_insert_with(monotonic_raw_ns);
        }
        std::thread::sleep(WAIT);
    }
}

/// Takes leave of the dead among our children, but for some that somebody else waits for.
fn reap(but: &[u32]) {
    for pid in children(std::process::id()) {
        if !but.contains(&pid)
            && is_zombie(pid)
            && let Some(pid) = number(pid)
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// The number of a process, where it may be one.
pub(crate) fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// A descriptor of a process.
///
/// # Errors
/// `ESRCH` where there is no such process, `ENOSYS` before Linux 5.3.
pub(crate) fn descriptor(pid: u32) -> io::Result<OwnedFd> {
    let pid = number(pid).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_shell_and_what_it_started_are_below_us_and_are_ended() {
        let _alone = crate::alone();
        let mut command = Command::new("sh");
        let script = "sleep 100000 & trap '' TERM; echo; read x; wait";
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let mut byte = [0];
        let mut said = shell.stdout.take().unwrap();
        io::Read::read_exact(&mut said, &mut byte).unwrap();
        assert_eq!(below(shell.id()).len(), 1);
        let others: Vec<u32> = below_us();
        assert!(others.contains(&shell.id()));
        // Who is left out is so with what it started.
        let spared = below_us_but(&[shell.id()]);
        assert!(below(shell.id()).iter().all(|pid| !spared.contains(pid)));
        // What other tests of this process started is none of ours.
        let mine: Vec<u32> = std::iter::once(shell.id()).chain(below(shell.id())).collect();
        let but: Vec<u32> = others.into_iter().filter(|pid| !mine.contains(pid)).collect();
        end_below_us(&but, Duration::from_millis(30));
        assert!(below(shell.id()).is_empty());
        // Whoever ended it has taken leave of it as well.
        assert!(shell.wait().is_err());
    }

    #[test]
    fn who_has_no_children_has_nobody_below() {
        assert_eq!(below(u32::MAX), Vec::<u32>::new());
        assert_eq!(numbers("1 22 x 3\n"), [1, 22, 3]);
    }
}
