#![expect(unsafe_code, reason = "memory policies have no safe wrapper")]
//! Having the kernel mark this process's memory for NUMA hint faults, and then leave it alone.
//!
//! The one idea: the kernel marks memory in the context of a thread that has run for a while
//! (`task_numa_work`), so a second thread runs, and the one that measures waits. The second one is
//! needed for another reason too: a page that lies on the node of the CPU is marked only where more
//! than one thread has the address space (`change_pte_range` and its `target_node` until Linux
//! 6.18, `folio_can_map_prot_numa` since; `mm/mprotect.c`, `mm/mempolicy.c`). With one thread only
//! far pages are, and their fault ends in a migration, which is another cost.
//!
//! Who measures must not mark: it would mark its own data while the clock runs. A thread whose
//! policy lacks `MPOL_F_MOF` skips every mapping without a policy of its own (`vma_policy_mof`),
//! and of the modes that any thread may choose `MPOL_LOCAL` alone allocates as no policy does. What
//! the fault itself does with a page that is where it should be, it does with either:
//! `mpol_misplaced` looks at the policy and leaves the page.
//!
//! It sets no knob: how long the kernel waits between two passes is `sched/numa_balancing` in
//! debugfs, and whether it passes at all is `kernel.numa_balancing`.
//!
//! Rule: the calls below change where memory will be allocated and nothing about its contents.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
};

use crate::{
    Called, SysError,
    memory::account::number_in,
    process::sched,
    time::{clock::thread_cpu_ns, monotonic_raw_ns},
};

/// Of the UAPI's `mempolicy.h`, which linux-raw-sys keeps behind another feature.
const MPOL_DEFAULT: i32 = 0;
const MPOL_LOCAL: i32 = 4;
const MPOL_MF_MOVE: i32 = 2;

/// Nanoseconds between two looks.
const LOOK_NS: u64 = 2_000_000;

/// Nanoseconds that a thread runs without a pass before another takes its place. A pass holds its
/// thread back for 32 times as long as it took (`task_numa_work`), for which a machine counts what
/// its host did meanwhile: 30 ms make a second. A new thread has nothing to make up for
/// (`init_numa_balancing`).
const TURN_NS: u64 = 500_000_000;

/// The calling thread, and those that it starts, mark nothing until this is dropped.
#[derive(Debug)]
pub struct Unmarking(());

impl Unmarking {
    /// Gives the thread the policy of allocating where it runs.
    ///
    /// # Errors
    /// When the kernel was built without NUMA.
    pub fn begin() -> Result<Self, SysError> {
        set_policy(MPOL_LOCAL).map(Self)
    }
}

impl Drop for Unmarking {
    fn drop(&mut self) {
        // Going back to no policy needs no privilege and no memory.
        let _ = set_policy(MPOL_DEFAULT);
    }
}

/// What came of waiting for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marking {
    /// Passes over the whole address space that ended meanwhile.
    pub passes: u64,
    /// Nanoseconds for which threads ran to be asked for them.
    pub ran_ns: u64,
}

/// Has another thread run until the kernel has been through the whole address space `passes` times,
/// or for `most_ns` nanoseconds. The calling thread sleeps meanwhile, so that every pass is one of
/// the other's; it is on the CPUs of the caller, under the ordinary scheduler.
///
/// # Errors
/// When there are too many threads, or the kernel does not count its passes (before Linux 6.15 that
/// takes `CONFIG_SCHED_DEBUG`).
pub fn await_passes(passes: u64, most_ns: u64) -> Result<Marking, SysError> {
    empty_batches();
    let deadline = monotonic_raw_ns() + most_ns;
    // It only is there: a clone by a process of one thread sets the count to 0
    // (`init_numa_balancing` in `kernel/sched/fair.c`, seen on 6.12 and 7.3).
    let (over, is_over) = mpsc::channel::<()>();
    let beside = started("is there", move || is_over.recv().is_ok())?;
    let begin = passes_so_far()?;
    let mut found = Marking { passes: 0, ran_ns: 0 };
    while found.passes < passes && monotonic_raw_ns() < deadline {
        let turn = started("marks", move || a_turn(begin, passes, deadline))?;
        let Marking { passes, ran_ns } = ended(turn)?;
        found = Marking { passes, ran_ns: found.ran_ns + ran_ns };
    }
    drop(over);
    ended(beside);
    Ok(found)
}

/// Runs until there were so many passes since `begin`, or none for a while.
fn a_turn(begin: u64, passes: u64, deadline: u64) -> Result<Marking, SysError> {
    // Real-time threads are never asked to mark (`task_tick_fair` does that).
    sched::be_ordinary()?;
    set_policy(MPOL_DEFAULT)?;
    let (mut last, mut last_ns) = (0, 0);
    loop {
        spin(LOOK_NS);
        let so_far = passes_so_far()?.saturating_sub(begin);
        let ran_ns = thread_cpu_ns();
        if so_far > last {
            (last, last_ns) = (so_far, ran_ns);
        }
        let is_over = so_far >= passes || monotonic_raw_ns() >= deadline;
        if is_over || ran_ns - last_ns > TURN_NS {
            return Ok(Marking { passes: so_far, ran_ns });
        }
    }
}

fn started<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SysError> {
    thread::Builder::new().name(name.to_owned()).spawn(run).called("clone", "of another thread")
}

fn ended<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Times that the kernel has been through the whole address space of this process.
fn passes_so_far() -> Result<u64, SysError> {
    number_in("/proc/self/sched", "mm->numa_scan_seq")
}

/// Pages of other CPUs' and this one's batches go where they belong. A page that waits in one has a
/// second reference, and before Linux 6.10 such a page is not marked.
fn empty_batches() {
    let (page, node, mut status) = (std::ptr::null::<u8>(), 0_i32, -1_i32);
    let (one, flag) = (1_usize, MPOL_MF_MOVE);
    let (page, node, status) = (&raw const page, &raw const node, &raw mut status);
    // Nothing is mapped at 0, and so nothing moves; the batches are emptied first
    // (`do_pages_move`). A refusal changes nothing: what is not marked is seen by who counts.
    // SAFETY: each array has one entry and outlives the call.
    let _ = unsafe { libc::syscall(libc::SYS_move_pages, 0, one, page, node, status, flag) };
}

/// Runs for so long: the kernel marks the memory of what runs, not of what sleeps.
fn spin(ns: u64) {
    let end = monotonic_raw_ns() + ns;
    while monotonic_raw_ns() < end {
        std::hint::spin_loop();
    }
}

fn set_policy(mode: i32) -> Result<(), SysError> {
    let none = std::ptr::null::<libc::c_ulong>();
    // SAFETY: both modes are without nodes, so that the kernel reads no mask.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, none, 0_usize) };
    SysError::checked(result, "set_mempolicy", format_args!("mode {mode}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::proc;

    const SKIP: &str = "skipped: no NUMA in this kernel; to run it: CONFIG_NUMA_BALANCING=y";

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_policy_lasts_as_long_as_its_guard_and_threads_inherit_it() {
        let Ok(guard) = Unmarking::begin() else { return eprintln!("{SKIP}") };
        assert_eq!(policy(), "local");
        assert_eq!(thread::spawn(policy).join().unwrap(), "local");
        drop(guard);
        assert_eq!(policy(), "default");
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn waiting_ends_also_where_nothing_passes() {
        let Ok(found) = await_passes(u64::MAX, 20_000_000) else { return eprintln!("{SKIP}") };
        assert!(found.passes < u64::MAX);
    }

    /// The thread's policy, as `numa_maps` has it for its stack.
    fn policy() -> String {
        let text = proc::text("thread-self", "numa_maps").unwrap();
        let here = &raw const text as u64;
        let below = proc::placements(&text).take_while(|one| one.start <= here);
        below.last().unwrap().policy.to_owned()
    }
}
