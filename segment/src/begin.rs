#![expect(unsafe_code, reason = "the environment, the stack and the code; the rules are in lib.rs")]
//! How a program gets its segments: all at once, when it first asks for memory.
//!
//! The one idea: other libraries begin before this one does, and allocate, so whoever calls first
//! begins. While that goes on, and before there is an environment, libc and the kernel serve.

use std::{
    ffi::{c_char, c_ulong},
    ops::Range,
    ptr,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

use pagelab_sys::process::{
    preload::edge::{self, Errno},
    segment::{CODE_TOO_SMALL, Counted, Leaf, Wish, Zero},
};

use crate::{
    area::{self, Area, PAGE},
    breaks, count, heap, helper, kept, kernel, maps, orders,
};

static STATE: AtomicU8 = AtomicU8::new(0);
const DOING: u8 = 1;
const DONE: u8 = 2;

/// The main stack, as far as it was touched ahead.
pub(crate) static STACK: Area = Area::new();

/// What waits for the main thread: bytes of its stack, and of the program's code.
static STACK_ASKED: AtomicU64 = AtomicU64::new(0);
static CODE_ASKED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Begins, if nobody did; whether all is there.
pub(crate) fn is_due() -> bool {
    STATE.load(Ordering::Acquire) == DONE || begin()
}

#[cold]
fn begin() -> bool {
    // SAFETY: a pointer that libc sets once, before the program has a second thread.
    if unsafe { environ }.is_null() {
        return false;
    }
    if STATE.compare_exchange(0, DOING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return false;
    }
    edge::aside(|| {
        count::open();
        let wish = orders::read();
        reserve(&wish);
        STACK_ASKED.store(wish.stack, Ordering::Relaxed);
        CODE_ASKED.store(wish.code, Ordering::Relaxed);
    });
    STATE.store(DONE, Ordering::Release);
    true
}

fn reserve(wish: &Wish) {
    type Begin = fn(usize, &Wish) -> Result<(), Errno>;
    let segments: [(u64, Begin, &Area); 3] = [
        (wish.heap, heap::begin, &heap::AREA),
        (wish.heap, breaks::begin, &breaks::AREA),
        (wish.mmap, maps::begin, &maps::AREA),
    ];
    let mut any = false;
    for (nth, (bytes, begin, area)) in segments.into_iter().enumerate() {
        let Some(bytes) = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0) else { continue };
        any = true;
        if let Err(errno) = begin(bytes, wish) {
            count::add(Counted::Unreserved, 1);
            count::refused(Counted::Errno, errno);
        } else if wish.zero == Zero::Ahead && nth != 1 {
            ahead(&area.range());
        }
    }
    if wish.zero == Zero::Release && wish.mmap > 0 && !maps::AREA.is_set_aside() {
        // Without, what is given back goes to the kernel: told as a segment that is not there.
        let most = usize::try_from(edge::memory_bytes() / KEPT_SHARE).unwrap_or(usize::MAX);
        if let Err(errno) = kept::begin(&maps::AREA.range(), most) {
            count::add(Counted::Unreserved, 1);
            count::refused(Counted::Errno, errno);
        }
    }
    if any {
        count::program(kernel::name());
    }
}

/// Of the machine's memory so large a part is kept at most.
const KEPT_SHARE: u64 = 2;

/// Makes a segment present.
fn ahead(range: &Range<usize>) {
    let begun = helper::cpu_ns();
    // SAFETY: it makes pages present, which changes none. What does not fit is faulted.
    let came = unsafe { kernel::advise(range.start, range.len(), libc::MADV_POPULATE_WRITE) };
    if came.is_ok() {
        count::add(Counted::AheadBytes, range.len());
    }
    count::add(Counted::AheadNs, helper::cpu_ns().saturating_sub(begun));
}

/// What is done once, on the main thread, before the program's own code: the stack and the code.
pub(crate) fn once() {
    if !is_due() {
        return;
    }
    let [stack, code] = [&STACK_ASKED, &CODE_ASKED].map(|bytes| bytes.load(Ordering::Relaxed));
    if stack > 0 {
        touch_stack(usize::try_from(stack).unwrap_or(usize::MAX), orders::leaf());
    }
    if code > 0 {
        collapse_code(code);
    }
}

/// Left of the stack's limit for what is on it already, and for the guard below it.
const STACK_SPARE: usize = 256 << 10;

/// Makes so much of the main stack present, from where it is now downwards.
fn touch_stack(bytes: usize, leaf: Leaf) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one `struct rlimit`.
    if unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } != 0 {
        return;
    }
    let room = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX).saturating_sub(STACK_SPARE);
    let here = (&raw const limit).addr();
    let high = (here - PAGE) / PAGE * PAGE;
    let low = high.saturating_sub(bytes.min(room)) / PAGE * PAGE;
    // The stack grows to its lowest page first, so that it can be advised before it is full.
    touch(low);
    if leaf > Leaf::Base {
        area::advise_leaf(low, high - low, leaf);
    }
    for page in (low..high).step_by(PAGE).rev() {
        touch(page);
    }
    STACK.is_there(low, high - low);
    count::add(Counted::Stack, high - low);
}

/// Writes to a page of the stack below all that is on it.
fn touch(page: usize) {
    // SAFETY: below this frame and its red zone, within the stack's limit: nothing is there yet.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(page).write_volatile(0) };
}

/// A program header, as far as it is looked at.
type Header = libc::Elf64_Phdr;

fn auxiliary(which: c_ulong) -> usize {
    // SAFETY: takes a number.
    usize::try_from(unsafe { libc::getauxval(which) }).unwrap_or(0)
}

/// Collapses the program's own code into huge pages, where whole ones lie in it.
fn collapse_code(at_most: u64) {
    let (at, count) = (auxiliary(libc::AT_PHDR), auxiliary(libc::AT_PHNUM));
    if at == 0 {
        return;
    }
    let first = ptr::with_exposed_provenance::<Header>(at);
    // SAFETY: the kernel says where the program's headers lie, which are mapped for good.
    let headers = unsafe { std::slice::from_raw_parts(first, count) };
    let own = headers.iter().find(|header| header.p_type == libc::PT_PHDR);
    let base = own.map_or(0, |own| at.wrapping_sub(usize::try_from(own.p_vaddr).unwrap_or(0)));
    let huge = usize::try_from(Leaf::Pmd.bytes()).unwrap_or(PAGE);
    let mut left = usize::try_from(at_most).unwrap_or(usize::MAX) / huge;
    let mut refused = CODE_TOO_SMALL;
    let is_code =
        |header: &&Header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
    for header in headers.iter().filter(is_code) {
        let [start, bytes] =
            [header.p_vaddr, header.p_memsz].map(|word| usize::try_from(word).unwrap_or(0));
        let start = base.wrapping_add(start);
        let end = (start + bytes) / huge * huge;
        for page in (start.next_multiple_of(huge)..end).step_by(huge).take(left) {
            // SAFETY: only the sizes of pages change, never what they hold.
            match unsafe { kernel::advise(page, huge, libc::MADV_COLLAPSE) } {
                Ok(()) => {
                    count::add(Counted::Code, huge);
                    left -= 1;
                }
                Err(errno) => refused = u64::from(errno.unsigned_abs()),
            }
        }
    }
    count::set(Counted::CodeErrno, refused);
}
