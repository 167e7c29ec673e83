#![expect(unsafe_code, reason = "a signal handler is installed, and looks at what it interrupted")]
//! The faulting thread's own answer: `SIGBUS` in place of a message, and the poisoned page.
//!
//! The one idea: the handler finds what it needs through a thread-local pointer to an [`Armed`]
//! that lives on the faulting thread's stack, resolves the fault, and returns, so that the access
//! is made again. A poisoned page cannot be resolved: there the one store that may meet it is
//! stepped over.
//!
//! Rules: (1) the handler allocates nothing, takes no lock, and leaves `errno` as it was; (2) the
//! pointer is set only while its `Armed` lives and does not move, on the thread that owns it;
//! (3) a signal that is not about that range gets the disposition that was there before.

use std::{cell::Cell, marker::PhantomPinned, pin::Pin, ptr, sync::OnceLock};

use super::{resolver::Resolver, tally::Tally};
use crate::{
    Area, SysError,
    arch::{self, Word},
    loops::{Dropped, TouchList, touch::time_each},
    memory::word_at,
    time::Clock,
};

/// `BUS_ADRERR` of siginfo.h: a fault that userfaultfd left to the thread.
const BUS_ADRERR: i32 = 2;
/// `BUS_MCEERR_AR`: an access to a poisoned page, where the kernel was built with
/// `CONFIG_MEMORY_FAILURE` (`do_sigbus` of arch/x86/mm/fault.c).
const BUS_MCEERR_AR: i32 = 4;

thread_local! {
    static ARMED: Cell<*const Armed<'static>> = const { Cell::new(ptr::null()) };
}

/// What was there before us; the handler stays for the life of the process.
static FORMER: OnceLock<libc::sigaction> = OnceLock::new();

/// The calling thread's answers to `SIGBUS` in one range.
#[derive(Debug)]
pub struct Armed<'a> {
    resolver: Resolver,
    answers: bool,
    /// The unit that was poisoned last; a kernel without memory failure handling signals its
    /// accesses like any other fault.
    poisoned: Cell<usize>,
    tally: &'a Tally,
    _pinned: PhantomPinned,
}

impl<'a> Armed<'a> {
    /// Runs `body` on a thread that answers `SIGBUS` in the resolver's range: faults are resolved
    /// where `answers`, poisoned pages are stepped over.
    ///
    /// # Errors
    /// When the signal's disposition cannot be set.
    ///
    /// # Panics
    /// When the thread is armed already.
    pub fn during<R>(
        resolver: Resolver,
        answers: bool,
        tally: &'a Tally,
        body: impl FnOnce() -> R,
    ) -> Result<R, SysError> {
        install()?;
        let armed = Self {
            resolver,
            answers,
            poisoned: Cell::new(usize::MAX),
            tally,
            _pinned: PhantomPinned,
        };
        let armed = std::pin::pin!(armed);
        let _disarm = arm(armed.as_ref());
        deepen_stack();
        // One practice signal: code and thread-local memory of the handler are there then.
        // SAFETY: raises a signal that the handler knows.
        unsafe { libc::raise(libc::SIGBUS) };
        Ok(body())
    }
}

/// Takes the pointer away again, on return and on unwinding.
struct Disarm;

impl Drop for Disarm {
    fn drop(&mut self) {
        ARMED.set(ptr::null());
    }
}

fn arm(armed: Pin<&Armed<'_>>) -> Disarm {
    assert!(ARMED.get().is_null(), "a thread is armed once");
    ARMED.set(ptr::from_ref(armed.get_ref()).cast());
    Disarm
}

/// Makes the stack present far below its present end. The loop of the body is deeper than the
/// practice signal, and by where its stack begins, the frame of its first signal may need another
/// page: the kernel's own fault, which `getrusage` counts and perf's user-only event does not.
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "a deep stack is what it is for")]
fn deepen_stack() {
    std::hint::black_box([1u8; 64 << 10]);
}

fn install() -> Result<(), SysError> {
    if FORMER.get().is_some() {
        return Ok(());
    }
    // SAFETY: all fields of a sigaction may be zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_sigbus as *const () as libc::sighandler_t;
    // The fault inside the handler that would need NODEFER is a bug, and may kill.
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: as above.
    let mut former: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the present disposition, so that the handler finds it.
    let known = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut former) };
    SysError::checked(known, "sigaction", "SIGBUS")?;
    let _ = FORMER.set(former);
    // SAFETY: the handler obeys rule 1.
    let set = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
    SysError::checked(set, "sigaction", "SIGBUS").map(drop)
}

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: a plain call; the address is this thread's for as long as it lives.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: the kernel hands a siginfo to a handler with SA_SIGINFO, which outlives it.
    let info = unsafe { &*info };
    // SAFETY: a SIGBUS of the kernel's has an address; of another's it is not looked at.
    let address = unsafe { info.si_addr() } as usize;
    // SAFETY: the context is this handler's.
    let answered = unsafe { is_answered(info.si_code, address, context) };
    if !answered && let Some(former) = FORMER.get() {
        // SAFETY: sigaction is allowed in a handler; what was in force is in force again, and
        // meets the same fault next.
        unsafe { libc::sigaction(signal, former, ptr::null_mut()) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// # Safety
/// `context` is what the kernel handed to the handler.
#[inline(always)]
unsafe fn is_answered(code: i32, address: usize, context: *mut libc::c_void) -> bool {
    let armed = ARMED.get();
    // SAFETY: null, or set by this thread to a value that still lives (rule 2).
    let Some(armed) = (unsafe { armed.as_ref() }) else { return false };
    if code <= 0 {
        // Raised by a process, not by an access: the practice signal.
        return true;
    }
    let (start, end) = armed.resolver.range();
    if !(start..end).contains(&address) {
        return false;
    }
    let unit = armed.resolver.unit_of(address);
    let is_poisoned = match code {
        BUS_MCEERR_AR => true,
        BUS_ADRERR => armed.resolver.poisons() && (!armed.answers || armed.poisoned.get() == unit),
        _ => return false,
    };
    if is_poisoned {
        armed.tally.poisoned();
        // SAFETY: the handler's own context.
        return unsafe { arch::step_over_store(context) };
    }
    if !armed.answers {
        return false;
    }
    match armed.resolver.resolve(address, armed.tally) {
        Ok(true) => {
            armed.tally.signal();
            armed.poisoned.set(unit);
            true
        }
        // Poisoned a while ago: the page is there, so to say.
        Ok(false) if armed.resolver.poisons() => {
            armed.tally.poisoned();
            // SAFETY: the handler's own context.
            unsafe { arch::step_over_store(context) }
        }
        Ok(false) => true,
        Err(error) => {
            armed.resolver.give_up(error, armed.tally);
            true
        }
    }
}

impl Area {
    /// [`Area::time_touches`] with the one store that the handler knows how to step over.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn time_stores_over(
        &self,
        list: &TouchList,
        clock: &Clock,
        mut record: impl FnMut(u64, bool),
    ) -> Dropped {
        let mut dropped = Dropped::default();
        let each = |_, ns: Option<u64>, apart| match ns {
            Some(ns) => record(ns, apart),
            None => dropped.migrated += 1,
        };
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        let base = self.base_ptr();
        time_each(list.offsets(), clock, each, |offset| {
            // SAFETY: the list lies within the windows (asserted), which are mapped writable.
            arch::store_or_step_over(unsafe { Word::new(word_at(base, offset)) });
        });
        dropped
    }
}
