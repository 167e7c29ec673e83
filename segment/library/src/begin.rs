#![expect(unsafe_code, reason = "the environment, the stack and the code; the rules are in lib.rs")]
//! How a program gets its segments: each when it is first needed.
//!
//! Other libraries begin before this one does, and allocate, so whoever calls first reads what is
//! asked for. Each segment begins with the first call that it could serve, and the heap only when a
//! program has asked for [`HEAP_AFTER`] bytes: what a short program never needs is not set up for
//! it. What is mapped at once (memory set aside, or zeroed ahead) begins with the program. While a
//! segment begins, and before there is an environment, libc and the kernel serve.

use std::{
    ffi::{c_char, c_int, c_ulong, c_void},
    ptr,
    sync::atomic::{AtomicU8, AtomicUsize, Ordering},
};

use pagelab_interpose::segment::{
    AHEAD_OF, AHEAD_SHARE, Backing, CODE_TOO_SMALL, Counted, Leaf, NAME_BYTES, Wish, Zero,
};
use pagelab_interpose::{Errno, Run, aside, kernel, next, thread};

use crate::{
    area::{self, Area, PAGE},
    breaks, count, exec, filtered, heap, helper, kept, orders, pages,
};

/// Something that is done once, by whoever comes first; nobody waits for it.
struct Once(AtomicU8);

impl Once {
    const DOING: u8 = 1;
    const DONE: u8 = 2;

    const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::DONE
    }

    /// Does it, if nobody did; whether it is done.
    fn ready(&self, act: impl FnOnce()) -> bool {
        if self.is_done() {
            return true;
        }
        let [doing, done] = [Self::DOING, Self::DONE];
        if filtered::is_set() {
            return false;
        }
        if self.0.compare_exchange(0, doing, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        aside(act);
        self.0.store(done, Ordering::Release);
        true
    }
}

static ASKED: Once = Once::new();
static HEAP: Once = Once::new();
static MAPS: Once = Once::new();
static BREAK: Once = Once::new();

/// The main stack, as far as it was touched ahead.
pub(crate) static STACK: Area = Area::new();

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Reads what is asked for, if nobody did; whether it is known.
pub(crate) fn is_due() -> bool {
    if ASKED.is_done() {
        return true;
    }
    // SAFETY: a pointer that libc sets once, before the program has a second thread.
    if unsafe { environ }.is_null() {
        return false;
    }
    ASKED.ready(|| {
        count::open();
        let wish = orders::read();
        if wish.heap > 0 || wish.mmap > 0 {
            count::program(name());
        }
        if !wish.is_on_demand() {
            heap();
            brk();
            maps();
        }
    })
}

/// The name of this thread, which of a program's first one is that of its file.
fn name() -> [u8; NAME_BYTES] {
    let mut name = [0_u8; NAME_BYTES];
    // SAFETY: writes at most so many bytes, the last of which is 0.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Bytes that malloc is asked for before the heap's segment begins.
const HEAP_AFTER: usize = 1 << 20;

/// Whether the heap's segment may serve a program that asks for so many bytes more.
pub(crate) fn heap_for(bytes: usize) -> bool {
    static SUM: AtomicUsize = AtomicUsize::new(0);
    let sum = SUM.fetch_add(bytes.min(HEAP_AFTER), Ordering::Relaxed).saturating_add(bytes);
    HEAP.is_done() || (sum >= HEAP_AFTER && is_due() && heap())
}

/// Begins the heap's segment, on the main thread only: the thread that begins mimalloc has its
/// first heap for good.
fn heap() -> bool {
    is_main() && HEAP.ready(|| begun(|wish| wish.heap, heap::begin, &heap::AREA))
}

/// The main thread; 0 before this library began, when there is no other.
static MAIN: AtomicUsize = AtomicUsize::new(0);

fn is_main() -> bool {
    [0, thread()].contains(&MAIN.load(Ordering::Relaxed))
}

/// In a child of fork, whose only thread is its main thread.
pub(crate) fn after_fork_in_child() {
    if !is_main() {
        MAIN.store(thread(), Ordering::Relaxed);
    }
}

/// `pthread_create(3)`: a program of several threads has its heap before the second begins.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    begins: Run,
    with: *mut c_void,
) -> c_int {
    if is_due() {
        heap();
    }
    exec::begin();
    let call = next!(pthread_create: fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Run,
        *mut c_void,
    ) -> c_int);
    // SAFETY: rule 1 of lib.rs.
    call.find().map_or(libc::ENOSYS, |call| unsafe { call(thread, attributes, begins, with) })
}

/// Whether there is the segment of maps, or none is asked for.
pub(crate) fn maps() -> bool {
    MAPS.ready(|| {
        begun(|wish| wish.mmap, pages::begin, &pages::AREA);
        let range = pages::AREA.range();
        if orders::wish().is_some_and(|wish| wish.zero == Zero::Release)
            && pages::AREA.is_on_demand()
        {
            // Without, what is given back goes to the kernel: told as a segment that is not there.
            let most = usize::try_from(kernel::memory_bytes() / KEPT_SHARE).unwrap_or(usize::MAX);
            if let Err(errno) = kept::begin(&range, most) {
                unreserved(errno);
            }
        }
    })
}

/// Whether there is the break's segment, or none is asked for.
pub(crate) fn brk() -> bool {
    BREAK.ready(|| begun(|wish| wish.heap, breaks::begin, &breaks::AREA))
}

/// Whether the program is to have a segment of maps.
pub(crate) fn has_maps() -> bool {
    orders::wish().is_some_and(|wish| wish.mmap > 0)
}

/// Whether any segment has begun, or the stack was touched ahead.
pub(crate) fn is_any() -> bool {
    [&heap::AREA, &pages::AREA, &breaks::AREA, &STACK].iter().any(|area| !area.range().is_empty())
}

type Begin = fn(usize, &Wish) -> Result<(), Errno>;

/// Begins a segment, if one is asked for.
fn begun(bytes: fn(&Wish) -> u64, begin: Begin, area: &Area) {
    let Some(wish) = orders::wish() else { return };
    let Some(bytes) = usize::try_from(bytes(wish)).ok().filter(|bytes| *bytes > 0) else { return };
    match begin(bytes, wish) {
        Err(errno) => unreserved(errno),
        Ok(()) if wish.zero == Zero::Ahead && !ptr::eq(area, &raw const breaks::AREA) => {
            ahead(area, wish);
        }
        Ok(()) => {}
    }
}

fn unreserved(errno: Errno) {
    count::add(Counted::Unreserved, 1);
    count::refused(Counted::Errno, errno);
}

/// Of the machine's memory so large a part is kept at most.
const KEPT_SHARE: u64 = 2;

/// Makes a segment present, from the end that is used first, as far as there is memory for it: each
/// program of a tree has its own, and the first may have taken all that there was.
fn ahead(area: &Area, wish: &Wish) {
    let begun = helper::cpu_ns();
    let range = area.range();
    // What was set aside is nobody else's.
    let most = if area.is_set_aside() { u64::MAX } else { most_ahead(kernel::available_bytes()) };
    let length = range.len().min(usize::try_from(most).unwrap_or(usize::MAX));
    let is_from_top = ptr::eq(area, &raw const pages::AREA) && wish.backing != Backing::Module;
    let start = if is_from_top { range.end - length } else { range.start };
    let part = start..start + length;
    if area.is_on_demand() {
        if area::map(&part).is_err() {
            return;
        }
        area::advise_leaf(start, length, wish.leaf);
        pages::opened(&part);
    }
    // SAFETY: it makes pages present, which changes none. What does not fit is faulted.
    let came = unsafe { kernel::advise(start, length, libc::MADV_POPULATE_WRITE) };
    if came.is_ok() {
        count::add(Counted::AheadBytes, length);
    }
    count::add(Counted::AheadNs, helper::cpu_ns().saturating_sub(begun));
}

/// So many bytes may be made present of what is available, in whole leaves.
fn most_ahead(available: u64) -> u64 {
    available / AHEAD_OF * AHEAD_SHARE / Leaf::Pmd.bytes() * Leaf::Pmd.bytes()
}

/// What is done once, on the main thread, before the program's own code: the stack and the code.
pub(crate) fn once() {
    MAIN.store(thread(), Ordering::Relaxed);
    is_due();
    let Some(wish) = orders::wish() else { return };
    if wish.stack > 0 {
        touch_stack(usize::try_from(wish.stack).unwrap_or(usize::MAX), orders::leaf());
    }
    if wish.code > 0 {
        collapse_code(wish.code);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_what_is_available_are_made_present_in_whole_leaves() {
        assert_eq!([0, 1 << 20, 8 << 20, 1 << 30].map(most_ahead), [0, 0, 6 << 20, 768 << 20]);
    }
}
