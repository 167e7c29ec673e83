//! A caller that does everything wrong, many at once, and is killed in the middle.
//!
//! The one idea: each generation is a few processes over the same open files; one has several
//! threads in one address space, one is ended by SIGKILL. Each worker rolls its calls from a seed
//! of its own, so that a run is repeated by its seed, up to the order among workers. What must
//! hold meanwhile is checked by the workers: a page is of the type that was asked for and holds
//! zeroes or what was written to that file, or is not there.

mod calls;
mod dice;
mod worker;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use pagelab_sys::{
    process::{Barrier, crew},
    time::monotonic_raw_ns,
    vm::hostile::{End, Ground, Tally, adopt_orphans, fork, wait_for_all},
};

use self::worker::{Shared, Worker};
use super::{
    super::boot::lockdep,
    abi::{Alloc, Device, EAGER, MIB, PAGE, RESERVED, UC_MINUS, WB, WC},
    frames::{all_back, free_kb},
    load,
};
use crate::{
    guest::{Guest, set, until},
    verdict::Verdict,
};

/// The first seed of a run.
const SEED: u64 = 0x7061_6765_6c61_6221;
/// Calls in the lane and in a soak, on each of the two machines of a kernel.
const CALLS: (u64, u64) = (50_000, 500_000);
/// Calls of one generation.
const GENERATION: u64 = 10_000;
/// Threads of each process of a generation.
const THREADS: [usize; 3] = [1, 1, 3];
/// Addresses that a process plays with.
const GROUND: usize = 8 * MIB;
/// What may be missing afterwards: tables of the direct map and caches that stay.
const NOISE_KB: u64 = 16 << 10;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let calls = if guest.soak() { CALLS.1 } else { CALLS.0 };
    // Children die of touches that must fail; a line of the log for each would push out the rest.
    set("/proc/sys/debug/exception-trace", "0")?;
    let loaded = load(guest, "limit_mb=512")?;
    let reserved = Device::open()?.info()?.reserved_bytes;
    let tally = Tally::new()?;
    adopt_orphans()?;
    // The first generation leaves what stays: tables of the direct map, caches of the allocator.
    let first = SEED ^ 1;
    generation(first, reserved, &tally).with_context(|| format!("generation {first:#x}"))?;
    let before = free_kb()?;
    let mut seed = SEED;
    let mut progress = Progress::begin(calls);
    while tally.get(worker::CALLED) < calls {
        generation(seed, reserved, &tally).with_context(|| format!("generation {seed:#x}"))?;
        all_back().with_context(|| format!("after generation {seed:#x}"))?;
        seed += 16;
        if let Some(text) = progress.after(tally.get(worker::CALLED)) {
            guest.progress(format!("kmod/hostile: {text}"));
        }
    }
    let mut after = free_kb()?;
    // The kernel gives some of it back later.
    let is_back = until(|| {
        after = free_kb()?;
        Ok(after + NOISE_KB >= before)
    })?;
    ensure!(is_back, "{before} kB were free, {after} kB are");
    loaded.unload()?;
    lockdep()?;
    for (index, name) in worker::COUNTED.iter().enumerate() {
        guest.note(format!("{:>8} {name}", tally.get(index)));
    }
    // A storm in which nothing ever succeeds would prove nothing.
    for index in
        [worker::ALLOCATIONS, worker::MAPPINGS, worker::PROVEN, worker::KILLED, worker::CUT]
    {
        ensure!(tally.get(index) > 0, "no {}", worker::COUNTED[index]);
    }
    let done = tally.get(worker::CALLED);
    Verdict::ok(format!("{done} calls, seeds {SEED:#x} to {seed:#x}"))
}

/// How far a run is, worth saying each 5 %.
#[derive(Debug)]
struct Progress {
    calls: u64,
    begun_ns: u64,
    said: u64,
}

impl Progress {
    /// Steps in which it is said.
    const STEPS: u64 = 20;

    fn begin(calls: u64) -> Self {
        Self { calls, begun_ns: monotonic_raw_ns(), said: 0 }
    }

    /// What to say after so many calls, if it is more than what was said last.
    fn after(&mut self, done: u64) -> Option<String> {
        let step = (done * Self::STEPS / self.calls).min(Self::STEPS);
        if step == self.said {
            return None;
        }
        self.said = step;
        let seconds = (monotonic_raw_ns() - self.begun_ns) / 1_000_000_000;
        let percent = step * 100 / Self::STEPS;
        Some(format!("{percent} % of {} calls in {seconds} s", self.calls))
    }
}

/// Some processes over the same files; all have ended when it returns.
fn generation(seed: u64, reserved: u64, tally: &Tally) -> Result<()> {
    let mut dice = Rng::with_seed(seed);
    let shared = shared(reserved)?;
    let begun = tally.get(worker::CALLED);
    let seeds = THREADS.map(|_| dice.u64(..));
    let victim = dice.usize(..THREADS.len());
    let deadline = begun + 1 + dice.u64(..) % (GENERATION / 2);
    let mut children = Vec::new();
    for (index, (threads, seed)) in THREADS.into_iter().zip(seeds).enumerate() {
        // The victim goes on until it is killed, however late that is.
        let share = if index == victim { u64::MAX } else { GENERATION / THREADS.len() as u64 };
        children.push(fork(|| process(seed, reserved, &shared, tally, threads, share))?);
    }
    let mut ended = None;
    while tally.get(worker::CALLED) < deadline && ended.is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        ended = children[victim].has_ended()?;
    }
    let mut wrong = Vec::new();
    for (index, child) in children.into_iter().enumerate() {
        let is_victim = index == victim;
        let end = match ended {
            Some(end) if is_victim => Ok(end),
            _ if is_victim => child.kill(),
            _ => child.wait(),
        };
        match end {
            Ok(End::Exited(0)) if !is_victim => (),
            Ok(End::Killed(9)) if is_victim => drop(tally.add(worker::KILLED, 1)),
            end => wrong.push(format!("process {index}: {end:?}: {}", worker::meaning(end))),
        }
    }
    // Children of the one that was killed die a moment later.
    wait_for_all()?;
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("; ")) }
}

/// Files that all processes of a generation have open; two are allocated, the others are raced for.
fn shared(reserved: u64) -> Result<Vec<Shared>> {
    let wants = [
        Some(Alloc::pages(WC, MIB)),
        Some(Alloc { flags: EAGER, ..Alloc::pages(UC_MINUS, 16 * PAGE) }),
        (reserved > 0).then(|| Alloc { layout: RESERVED, leaf_shift: 12, ..Alloc::pages(WB, MIB) }),
        None,
        None,
    ];
    let open = |want: &Option<Alloc>| -> Result<Shared> {
        let device = Device::open()?;
        if let Some(want) = want {
            device.alloc(want)?;
        }
        Ok(Shared { device, memtype: want.map(|want| want.memtype) })
    };
    wants.iter().map(open).collect()
}

/// What a process of a generation does; its exit code.
fn process(
    seed: u64,
    reserved: u64,
    shared: &[Shared],
    tally: &Tally,
    threads: usize,
    calls: u64,
) -> u8 {
    let Ok(ground) = Ground::reserve(GROUND, 2 * MIB) else { return worker::NO_GROUND };
    let calls = calls / threads as u64;
    // What starts a thread maps memory, and must not find a hole in the ground.
    let Ok(barrier) = Barrier::new(u32::try_from(threads).unwrap_or(1)) else {
        return worker::NO_GROUND;
    };
    let codes = crew::threads(threads, |thread| {
        let dice = Rng::with_seed(seed.wrapping_add(thread as u64));
        let mut worker = Worker::new(dice, &ground, shared, tally, reserved, threads == 1);
        barrier.wait();
        worker.run(calls)
    });
    let Ok(codes) = codes else { return worker::NO_GROUND };
    codes.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_said_each_twentieth_and_once() {
        let mut progress = Progress::begin(1000);
        assert_eq!(progress.after(49), None);
        assert!(progress.after(50).unwrap().starts_with("5 % of 1000 calls in "));
        assert_eq!(progress.after(99), None);
        // A generation may be longer than a step.
        assert!(progress.after(270).unwrap().starts_with("25 % "));
        assert!(progress.after(2000).unwrap().starts_with("100 % "));
        assert_eq!(progress.after(3000), None);
    }
}
