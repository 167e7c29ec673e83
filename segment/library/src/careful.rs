#![expect(unsafe_code, reason = "leaves the allocator in the midst of a call; rules in lib.rs")]
//! Gives memory back to the allocator in a process where that may have to wait for ever.
//!
//! The one idea: a thread that needs memory takes over a page of one that has ended. mimalloc
//! clears the bit of such a page, claims the page, and sets the bit again if somebody else has it
//! by then. No lock is held and nothing is called, so a fork may fall between the first two. In the
//! child the bit stays clear, and whoever frees a block of that page waits for it
//! (`mi_bitmap_clear_once_set` of mimalloc 3). By then the block is in the page's list, the page is
//! claimed and no lock is held, so the thread may leave the wait at any time: the page is then
//! nobody's, for good, and whatever else is freed of it stays in its list. The wait calls `sleep`,
//! which is [`waits`] here.
//!
//! Only children of a process that had several threads are careful, since only they can wait so;
//! `realloc` there frees by itself, as the allocator's own would be left without its answer.
//! Leaving while another thread would have set the bit costs a page, and nothing else.

use std::{
    cell::Cell,
    ffi::c_void,
    sync::atomic::{AtomicBool, Ordering},
};

use libmimalloc_sys as mi;
use pagelab_interpose::{aside, kernel, segment::Backed};

use crate::{count, heap};

/// Whether another thread was there when this process was made by fork.
static IS_DUE: AtomicBool = AtomicBool::new(false);
/// The same, before it is known which of the two this is.
static WOULD_BE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How often this thread has waited for another one since its last free began.
    static WAITED: Cell<usize> = const { Cell::new(0) };
}
/// A thread that lives needs a moment for what it is waited for.
const WAITS: usize = 1000;

/// Before a fork, in the thread that forks, with whether there are others.
pub(crate) fn before_fork(has_others: bool) {
    let would_be = heap::is_on() && has_others;
    if WOULD_BE.load(Ordering::Relaxed) != would_be {
        WOULD_BE.store(would_be, Ordering::Relaxed);
    }
}

/// After it, in the child.
pub(crate) fn after_fork_in_child() {
    if WOULD_BE.load(Ordering::Relaxed) {
        IS_DUE.store(true, Ordering::Relaxed);
    }
}

/// Whether it is such a process.
pub(crate) fn is_due() -> bool {
    IS_DUE.load(Ordering::Relaxed)
}

/// Gives memory back.
///
/// # Safety
/// It is the allocator's, and nobody uses it any more.
pub(crate) unsafe fn free(at: *mut c_void) {
    if is_due() {
        // SAFETY: the caller's.
        unsafe { carefully(at) };
    } else {
        // SAFETY: the caller's.
        unsafe { mi::mi_free(at) };
    }
}

/// The same, where it may be left; not a part of what every `free` of a program goes through.
#[cold]
#[inline(never)]
unsafe fn carefully(at: *mut c_void) {
    WAITED.set(0);
    // SAFETY: the caller's; no lock is held and no value dropped where it is left.
    unsafe { way::with(at, mi::mi_free) };
}

/// The allocator waits for another thread; does not come back where that may be for ever. A free is
/// left; anything else ends the process where it has no other thread, and goes on waiting where it
/// has.
#[cold]
pub(crate) fn waits() {
    std::thread::yield_now();
    if !is_due() {
        return;
    }
    let waited = WAITED.get() + 1;
    WAITED.set(waited % WAITS);
    if waited < WAITS {
        return;
    }
    if way::is_within() {
        aside(|| count::add(Backed::Left, 1));
        way::leave();
    } else if aside(kernel::threads) == 1 {
        kernel::say(
            b"pagelab: a child of fork ends: when it was made another thread was taking memory \
              over, and nothing can finish that here\n",
        );
        kernel::abort();
    }
}

/// A call that can be left from within, as by `longjmp`.
#[cfg(target_arch = "x86_64")]
mod way {
    use std::{arch::naked_asm, cell::Cell, ffi::c_void};

    /// What is called.
    pub(super) type Call = unsafe extern "C" fn(*mut c_void);

    thread_local! {
        /// Where the stack of the innermost such call begins; 0 outside of all.
        static BEGINS: Cell<usize> = const { Cell::new(0) };
    }

    /// Makes a call; [`leave`] within it comes back here.
    ///
    /// # Safety
    /// As the call; and whoever leaves it skips nothing that must be done.
    pub(super) unsafe fn with(argument: *mut c_void, call: Call) {
        // SAFETY: the caller's, and a word of this thread that outlives the call.
        BEGINS.with(|begins| unsafe { called(argument, begins.as_ptr(), call) });
    }

    /// Whether this thread is in such a call.
    pub(super) fn is_within() -> bool {
        BEGINS.get() != 0
    }

    /// Leaves the innermost call, if there is one.
    pub(super) fn leave() {
        match BEGINS.get() {
            0 => {}
            // SAFETY: the call goes on, on this stack.
            begins => unsafe { left(begins) },
        }
    }

    /// Keeps what a function of C must keep, and where that lies in the word; then it calls. The
    /// word is as before afterwards.
    #[unsafe(naked)]
    unsafe extern "C" fn called(argument: *mut c_void, begins: *mut usize, call: Call) {
        naked_asm!(
            "push rbp", "push rbx", "push r12", "push r13", "push r14", "push r15",
            "push rsi", "push qword ptr [rsi]",
            // A call is made with the stack at a multiple of 16.
            "sub rsp, 8",
            "mov qword ptr [rsi], rsp",
            "call rdx",
            "mov rdi, rsp",
            "jmp {left}",
            left = sym left,
        )
    }

    /// Comes back from `called`, whose stack begins there.
    #[unsafe(naked)]
    unsafe extern "C" fn left(begins: usize) -> ! {
        naked_asm!(
            "lea rsp, [rdi + 8]",
            "pop rax",
            "pop rsi",
            "mov qword ptr [rsi], rax",
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbx",
            "pop rbp",
            "ret",
        )
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        extern "C" fn leaves(at: *mut c_void) {
            // SAFETY: a place of the test.
            unsafe { *at.cast::<u32>() += 1 };
            leave();
            panic!("it is within a call");
        }

        extern "C" fn leaves_within(at: *mut c_void) {
            // SAFETY: nothing is skipped.
            unsafe { with(at, leaves) };
            // SAFETY: as above.
            unsafe { with(at, comes_back) };
            leaves(at);
        }

        extern "C" fn comes_back(at: *mut c_void) {
            // SAFETY: a place of the test.
            unsafe { *at.cast::<u32>() += 10 };
        }

        #[test]
        fn a_call_is_left_once_and_so_is_the_one_around_it() {
            let mut count = 0_u32;
            let words: [u64; 8] = std::array::from_fn(|nth| std::hint::black_box(nth as u64));
            for _ in 0..3 {
                let at = (&raw mut count).cast();
                // SAFETY: nothing is skipped.
                unsafe { with(at, leaves_within) };
                assert_eq!(BEGINS.get(), 0);
            }
            assert_eq!(count, 36);
            assert_eq!(words.iter().sum::<u64>(), 28);
            leave();
        }
    }
}

/// Elsewhere nobody can leave.
#[cfg(not(target_arch = "x86_64"))]
mod way {
    use std::ffi::c_void;

    pub(super) unsafe fn with(argument: *mut c_void, call: unsafe extern "C" fn(*mut c_void)) {
        // SAFETY: the caller's.
        unsafe { call(argument) };
    }

    pub(super) fn is_within() -> bool {
        false
    }

    pub(super) fn leave() {}
}
