#![expect(unsafe_code, reason = "a thread without the library of threads; the rules are in lib.rs")]
//! The thread that looks for loads: it closes a window of memory for a moment and opens it again.
//!
//! The one idea: it does so once over all places each time that somebody asks for a sweep, and
//! sleeps otherwise, so that what it costs is in the hands of whoever asks. It has every signal
//! blocked, and starts with the first memory that is looked at: a program without any has no thread
//! more. A fork finds the window open and leaves the child alone: it has no such thread.

use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering},
};

use pagelab_interpose::heat::{Kind, Of};
use pagelab_interpose::{self as interpose, Map, kernel};

use crate::{places, signals, yard};

const PAGE: usize = 4096;
/// Pages of a window, at least and at most: each page that is touched in one is a map for as long,
/// of which a process may have 65530 (`vm.max_map_count`).
const WINDOW: (usize, usize) = (1024, 16 << 10);
/// A sweep has so many windows, where that is possible.
const WINDOWS: usize = 128;
/// A window is closed until the program has computed for so long without touching a page of it
/// that it had not touched before, and for half as long as it took to touch those: a program that
/// waits, or has no processor, touches nothing.
const QUIET_NS: u64 = 4_000_000;
/// Between two looks whether that is so.
const ROUND_NS: u64 = 5_000_000;
/// Looks, at most: a window is closed for a second and no longer.
const ROUNDS: u32 = 200;
/// A program that computes for less than a tenth of so many of them in a row waits for something
/// else than a processor.
const IDLE_ROUNDS: u32 = 10;
/// Between two looks whether a sweep is asked for.
const PAUSE_NS: i64 = 10_000_000;
/// How often a window is tried that was opened by somebody.
const TRIES: usize = 3;

/// 0: none yet. 1: starting or there.
static THREAD: AtomicU32 = AtomicU32::new(0);
/// Its number, from its begin on.
static NUMBER: AtomicI32 = AtomicI32::new(0);
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
/// Sampling was ordered, and can be.
static READY: AtomicU32 = AtomicU32::new(0);

/// Takes the signal over, before the program has its first instruction; whether it could.
pub(crate) fn prepare() -> bool {
    extern "C" fn before() {
        places::hold();
    }
    extern "C" fn after() {
        places::release();
    }
    extern "C" fn child() {
        READY.store(0, Ordering::Release);
        places::release();
    }
    // SAFETY: three functions that make plain system calls only.
    let follows = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(child)) } == 0;
    let is_ready = follows && signals::take_over();
    READY.store(is_ready.into(), Ordering::Release);
    is_ready
}

/// Ends the thread, opens what is closed, and closes nothing any more; the signal is the program's
/// again.
pub(crate) fn rest() {
    if READY.swap(0, Ordering::AcqRel) == 0 {
        return;
    }
    places::hold();
    if THREAD.load(Ordering::Acquire) != 0 {
        while NUMBER.load(Ordering::Acquire) == 0 {
            kernel::sleep_ns(PAUSE_NS);
        }
        interpose::gone(NUMBER.load(Ordering::Acquire));
    }
    signals::give_back();
}

/// The program has memory that is to be looked at.
pub(crate) fn begin(at: usize, length: usize) {
    if !is_ready() || !places::begin(at, length) {
        return;
    }
    if THREAD.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() && !start() {
        THREAD.store(0, Ordering::Release);
    }
}

/// A place is left out from now on, since a lock lies in it: the kernel may reach for that without
/// anybody having called it by a name that is known here.
pub(crate) fn leave_out(at: usize) {
    let count = places::forget(at, 1);
    if count > 0 {
        let all = LEFT_OUT.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        yard::set(Of::LeftOut, all);
    }
}

/// The thread's own stack: where and how large, for as long as the process is there.
///
/// Before Linux 6.7 the stacks of threads may be of huge pages, and glibc leaves nothing between
/// one and the memory that was mapped before it: here that is the program's, of which the kernel
/// then made as much present as lies in the same 2 MiB, before the program could say on which node.
fn stack(attributes: &mut libc::pthread_attr_t) -> Option<(*mut c_void, usize)> {
    let mut bytes = 0;
    // SAFETY: reads the attributes and fills one number.
    if unsafe { libc::pthread_attr_getstacksize(attributes, &raw mut bytes) } != 0 {
        return None;
    }
    let bytes = bytes.next_multiple_of(PAGE);
    // A page on either side that nobody reaches.
    let length = bytes + 2 * PAGE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: nothing lies there.
    let at = unsafe { kernel::map(&Map::new(length, libc::PROT_NONE, flags)) }.ok()?;
    let stack = at.wrapping_byte_add(PAGE);
    // SAFETY: the map that was just made. A kernel without huge pages refuses, and needs it not.
    let _ = unsafe { kernel::advise(at.addr(), length, libc::MADV_NOHUGEPAGE) };
    // SAFETY: the same map.
    let is_open = unsafe { kernel::protect(stack.addr(), bytes, kernel::USABLE) }.is_ok();
    // SAFETY: the same map, of which all but the ends is open, for as long as the process is there.
    if is_open && unsafe { libc::pthread_attr_setstack(attributes, stack, bytes) } == 0 {
        return Some((at, length));
    }
    kernel::forgotten(at.addr(), length);
    None
}

fn start() -> bool {
    let mut own = None;
    let prepare = |attributes: &mut libc::pthread_attr_t| {
        own = stack(attributes);
        own.is_some()
    };
    // SAFETY: `run` takes nothing, and the stack is its own for as long as the process is there.
    let is_started = unsafe { interpose::start(prepare, run, ptr::null_mut()) };
    if let Some((at, length)) = own.filter(|_| !is_started) {
        kernel::forgotten(at.addr(), length);
    }
    is_started
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    // SAFETY: takes nothing.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    NUMBER.store(i32::try_from(number).unwrap_or(0), Ordering::Release);
    let mut done = 0;
    while is_ready() {
        let asked = yard::asked();
        if asked > done {
            sweep();
            done = asked;
            yard::set(Of::Swept, asked);
        } else {
            kernel::sleep_ns(PAUSE_NS);
        }
    }
    ptr::null_mut()
}

fn is_ready() -> bool {
    READY.load(Ordering::Acquire) != 0
}

/// Nanoseconds that all threads of this process have computed for.
fn computed_ns() -> u64 {
    kernel::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Looks at all places once.
fn sweep() {
    let all: usize = places::all().map(|(_, start, end)| end - start).sum();
    let (least, most) = WINDOW;
    let window = (all / PAGE / WINDOWS).clamp(least, most) * PAGE;
    for (number, start, end) in places::all() {
        let mut from = start;
        while from < end && is_ready() {
            let to = end.min(from.saturating_add(window));
            for _ in 0..TRIES {
                if is_looked_at(number, start, from, to) {
                    yard::say(Kind::Looked, from, (to - from) / PAGE);
                    break;
                }
            }
            from = to;
        }
    }
}

/// Closes a window for a moment; whether nobody but those who touched it opened it.
fn is_looked_at(number: usize, start: usize, from: usize, to: usize) -> bool {
    if !places::close(number, start, from, to) {
        kernel::sleep_ns(ROUND_NS.cast_signed());
        return false;
    }
    let (mut seen, begun) = (places::seen(), computed_ns());
    let (mut since, mut last, mut idle) = (begun, begun, 0);
    for _ in 0..ROUNDS {
        kernel::sleep_ns(ROUND_NS.cast_signed());
        let (seen_now, now) = (places::seen(), computed_ns());
        idle = if now - last < ROUND_NS / 10 { idle + 1 } else { 0 };
        last = now;
        if seen_now != seen {
            (seen, since) = (seen_now, now);
        }
        let is_quiet = now - since >= QUIET_NS.max((since - begun) / 2);
        if is_quiet || idle == IDLE_ROUNDS || !places::is_closed() {
            break;
        }
    }
    places::reopen(number, start)
}

#[cfg(test)]
mod tests {
    use std::{fs, mem, path::Path};

    use pagelab_interpose::proc_maps::{Mapping, mappings};

    use super::*;
    use crate::tests::is_readable;

    #[test]
    fn the_stack_has_no_huge_pages_and_nothing_beside_it() {
        // SAFETY: the attributes of a thread are plain numbers.
        let mut attributes: libc::pthread_attr_t = unsafe { mem::zeroed() };
        // SAFETY: fills them.
        assert_eq!(unsafe { libc::pthread_attr_init(&raw mut attributes) }, 0);
        let (at, length) = stack(&mut attributes).unwrap();
        let is_open = |offset| is_readable(at.wrapping_byte_add(offset));
        let ends = [0, PAGE, length - 2 * PAGE, length - PAGE];
        assert_eq!(ends.map(is_open), [false, true, true, false]);
        if Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
            let own = |one: &Mapping<'_>| one.range.start == (at.addr() + PAGE) as u64;
            assert!(mappings(&smaps).find(own).unwrap().has("VmFlags", "nh"));
        }
        kernel::forgotten(at.addr(), length);
        // SAFETY: they were filled above.
        unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    }
}
