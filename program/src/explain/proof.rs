//! What makes the record of a program true, and what to know about it.
//!
//! The claims: what was told and what was lost is what perf counted; every fault that was told is
//! in one group; no program of the tree was one that the kernel let nobody watch, and of a single
//! process `wait4` counted no fewer.

use std::path::Path;

use pagelab_record::{Claim, Measured, Signed, vocabulary::Check};
use pagelab_sys::counts::perf::Told;

use super::{frame::Frame, watch::Watched};

/// Adds what was proven.
pub(super) fn claims(watched: &Watched, measured: &mut Measured) {
    let Ok([minor, major, _]) = &watched.told else { return };
    let is_whole = watched.seen.stretches == 0;
    let mut claim = |check: Check, expected: u64, observed: u64| {
        let claim = Claim::check(check, "program", expected.signed(), observed.signed(), 0);
        measured.witness.push(claim);
    };
    for (check, told) in [(Check::MinorTold, minor), (Check::MajorTold, major)] {
        claim(check, told.counted, told.samples + lost(told, is_whole));
    }
    let groups: u64 = watched.seen.groups.values().map(|count| count.faults).sum();
    let told = (minor.samples + major.samples).saturating_sub(watched.seen.doubled);
    claim(Check::ToldGrouped, told, groups);
    let hidden = watched.seen.hidden.len() as u64;
    claim(Check::ProgramsHidden, 0, hidden);
    // The kernel's other account also has what was populated inside calls, so it is at least as
    // large; of more than one process it has only those that were waited for.
    if watched.ended.is_some() && watched.seen.processes <= 1 {
        // What was told both ways is counted both ways, told or lost.
        let told = if is_whole {
            minor.counted
        } else {
            minor.samples.saturating_sub(watched.seen.doubled)
        };
        let counted = told + watched.before_exec;
        claim(Check::MinorByWait4, counted, watched.counted.0.min(counted));
        claim(Check::MajorByWait4, major.counted, watched.counted.1.min(major.counted));
    }
}

/// What a ring had no room for, as the kernel says; kernels before 6.0 say it only in passing.
/// Where the telling changed, an event may have been counted and lost to both.
fn lost(told: &Told, is_whole: bool) -> u64 {
    let missing = told.counted.saturating_sub(told.samples);
    let in_passing = if told.lost_told <= missing { missing } else { told.lost_told };
    told.lost.filter(|_| is_whole).unwrap_or(in_passing)
}

/// That only the address was told of some of so many faults.
fn in_brief(watched: &Watched, of: u64) -> Option<String> {
    let brief: u64 = watched.seen.groups.values().map(|count| count.brief).sum();
    (brief > 0).then(|| {
        format!(
            "faults came so fast that {brief} of {of} were told in brief, so that watching does \
             not slow the program down: what they allocated and their call sites are taken to be \
             those of the last ones in the same mapping ({} stretches told in full)",
            watched.seen.stretches
        )
    })
}

/// What code is to be compiled with so that its callers are found, where they were not of a tenth
/// of the stacks.
fn without_callers(watched: &Watched) -> Option<String> {
    let callers = &watched.seen.callers;
    let lost: u64 = callers.lost.values().sum();
    let (file, most) = callers.lost.iter().max_by_key(|(_, count)| **count)?;
    let is_made = Frame { file: file.clone(), at: 0 }.is_made();
    let of = match Path::new(&**file).file_name() {
        Some(name) if !is_made => name.to_string_lossy().into_owned(),
        _ => "code that the program made itself".to_owned(),
    };
    (lost.saturating_mul(10) >= callers.unwound).then(|| {
        format!(
            "of {lost} of {} stacks looked at not all callers were found, {most} of them those of \
             {of}: compile it with -fno-omit-frame-pointer, or with unwind tables \
             (-fasynchronous-unwind-tables)",
            callers.unwound
        )
    })
}

/// Adds what to know about what was seen.
pub(super) fn warnings(watched: &Watched, measured: &mut Measured) {
    measured.warnings.extend(without_callers(watched));
    let mut warn = |text: String| measured.warnings.push(text);
    match &watched.told {
        Err(why) => warn(format!(
            "perf is not allowed, so only totals are known: {why} (sysctl \
             kernel.perf_event_paranoid=2, or run as root; in a container: allow perf_event_open \
             in its seccomp profile)"
        )),
        Ok([minor, major, mappings]) => {
            let is_whole = watched.seen.stretches == 0;
            let lost = lost(minor, is_whole) + lost(major, is_whole);
            if lost > 0 {
                warn(format!(
                    "{lost} of {} faults came faster than they were read; their kinds are taken \
                     to be those of the others",
                    minor.counted + major.counted
                ));
            }
            in_brief(watched, minor.counted + major.counted).into_iter().for_each(&mut warn);
            if mappings.lost_told > 0 {
                warn(format!(
                    "{} records of mappings, names and ends came faster than they were read, so \
                     places and names may be wrong",
                    mappings.lost_told
                ));
            }
            if let Some(first) = watched.seen.hidden.first() {
                let others = match watched.seen.hidden.len() - 1 {
                    0 => String::new(),
                    others => format!(" and {others} more"),
                };
                warn(format!(
                    "the kernel ends the watching when a user starts a program that is setuid or \
                     not readable: {first}{others} and what it started were not seen (run as root)"
                ));
            }
            let sight = watched.sight;
            if !sight.kernel {
                warn(
                    "faults inside system calls are not seen (run as root, or sysctl \
                     kernel.perf_event_paranoid=1)"
                        .to_owned(),
                );
            }
            if !(sight.exceptions && sight.allocations) {
                warn(
                    "tracepoints are not allowed, so kinds are known only as far as the page \
                     table shows them soon after (Linux 6.7); the others are unknown (run as \
                     root, or with CAP_PERFMON and tracefs mounted readable)"
                        .to_owned(),
                );
            }
        }
    }
    if watched.seen.threads > 1 && !watched.sight.exceptions {
        warn(format!(
            "{} threads of one process took faults; which of them at the same time is not known \
             without tracepoints, so contention is not in the prices",
            watched.seen.threads
        ));
    }
    if let Some(Err(why)) = &watched.walks {
        warn(format!(
            "translation was not sampled: the accessed bits of its pages may not be cleared: {why} \
             (run as root or as the owner of the process, on a kernel with \
             CONFIG_PROC_PAGE_MONITOR)"
        ));
    }
    let cut_short = "the watching was interrupted before the program ended";
    measured.warnings.extend(watched.cut_short.then(|| cut_short.to_owned()));
}
