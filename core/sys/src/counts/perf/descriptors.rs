//! File descriptors for a session: one for each source, CPU and thread.
//!
//! The one idea: what is needed is known before anything is opened, so that a limit is raised or
//! named, and what else the process opens meanwhile still finds one.

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::plan::{Plan, Target};
use crate::{SysError, machine::Topology};

/// Descriptors for everything else.
const SPARE: u64 = 64;

/// Raises the limit to what the plan takes; beyond the hard limit where that is allowed.
///
/// # Errors
/// When not even the required sources fit; the error names their number and the limit.
pub(super) fn raise(plan: &Plan) -> Result<(), SysError> {
    let threads = match &plan.target {
        Target::OnExec(_) => 1,
        Target::Threads(threads) => threads.len() as u64,
    };
    let each = threads * Topology::machine().cpus().online.len() as u64;
    let all = each * plan.sources.len() as u64 + SPARE;
    let required = plan.sources.iter().filter(|source| source.required).count() as u64;
    let least = each * required + SPARE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_short = |limit: Option<u64>, of: u64| limit.is_some_and(|limit| limit < of);
    if is_short(current, all) {
        let beyond = Rlimit { current: Some(all), maximum: maximum.map(|most| most.max(all)) };
        if setrlimit(Resource::Nofile, beyond).is_err() {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        }
    }
    let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < least) else {
        return Ok(());
    };
    let on = format!("{threads} threads take {least} file descriptors, and the limit is {limit}");
    Err(SysError::new("perf_event_open", on, Errno::MFILE))
}
