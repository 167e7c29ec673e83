#![expect(unsafe_code, reason = "real-time scheduling has no safe wrapper")]
//! Where and how the measuring thread runs: its CPU, and `SCHED_FIFO` in short bursts.
//!
//! Both are guards: dropping one puts the thread back as it was.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::{Called, SysError};

/// The thread bound to one CPU; its former affinity returns on drop.
#[derive(Debug)]
pub struct Pinned {
    former: CpuSet,
}

impl Pinned {
    /// Binds the calling thread to `cpu`.
    ///
    /// # Errors
    /// When the CPU is offline or not allowed to this process.
    pub fn to(cpu: usize) -> Result<Self, SysError> {
        Self::within(&[cpu], &format!("CPU {cpu}"))
    }

    /// Leaves the calling thread free among some CPUs.
    ///
    /// # Errors
    /// When none of them is online and allowed to this process.
    pub fn to_any(cpus: &[usize]) -> Result<Self, SysError> {
        Self::within(cpus, &format!("CPUs {cpus:?}"))
    }

    /// No kernel has a CPU beyond the set's last; an empty set is refused like one that is offline.
    fn within(cpus: &[usize], on: &str) -> Result<Self, SysError> {
        let former = sched_getaffinity(None).called("sched_setaffinity", on)?;
        let mut set = CpuSet::new();
        for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
            set.set(*cpu);
        }
        sched_setaffinity(None, &set).called("sched_setaffinity", on)?;
        Ok(Self { former })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The former set was in force a moment ago; if a CPU went away there is nothing better.
        let _ = sched_setaffinity(None, &self.former);
    }
}

/// The CPU that the calling thread is on.
pub fn current_cpu() -> usize {
    sched_getcpu()
}

/// The number of the calling thread, by which the kernel's events name it.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The calling thread under `SCHED_FIFO` at the lowest priority; an ordinary thread again on drop.
///
/// Real-time throttling stays on, so a burst longer than `sched_rt_runtime_us` (0.95 s) is cut.
#[derive(Debug)]
pub struct Fifo(());

impl Fifo {
    /// Enters `SCHED_FIFO`.
    ///
    /// # Errors
    /// Without `CAP_SYS_NICE` and without an `RLIMIT_RTPRIO`.
    pub fn enter() -> Result<Self, SysError> {
        set_policy(libc::SCHED_FIFO, 1).map(Self)
    }

    /// Enters `SCHED_FIFO` one priority above [`Fifo::enter`]: who is woken takes the CPU from who
    /// woke it.
    ///
    /// # Errors
    /// As [`Fifo::enter`], and with an `RLIMIT_RTPRIO` of 1.
    pub fn enter_above() -> Result<Self, SysError> {
        set_policy(libc::SCHED_FIFO, 2).map(Self)
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        // Leaving real-time needs no privilege.
        let _ = be_ordinary();
    }
}

/// The calling thread under the ordinary scheduler, whatever it inherited.
pub(crate) fn be_ordinary() -> Result<(), SysError> {
    set_policy(libc::SCHED_OTHER, 0)
}

fn set_policy(policy: i32, priority: i32) -> Result<(), SysError> {
    // By the raw call: musl's sched_setscheduler refuses, because POSIX means processes by it.
    // SAFETY: the kernel reads one sched_param, whose first and only used field is the priority.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    let on = format_args!("policy {policy}, priority {priority}");
    SysError::checked(result, "sched_setscheduler", on).map(drop)
}

/// Keeps transparent huge pages out of the whole process, whatever its mappings are told.
///
/// # Errors
/// When the kernel was built without them.
pub fn disable_thp(disable: bool) -> Result<(), SysError> {
    // SAFETY: plain integers; the setting concerns this process only and dies with it.
    let result =
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(disable), 0, 0, 0) };
    SysError::checked(result, "prctl", "PR_SET_THP_DISABLE").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_on_its_cpu_and_is_free_again_afterwards() {
        let before = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap();
        let pinned = Pinned::to(cpu).unwrap();
        assert_eq!(current_cpu(), cpu);
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_by_number() {
        assert!(Pinned::to(100_000).unwrap_err().to_string().contains("CPU 100000"));
    }
}
