#![expect(unsafe_code, reason = "calls after which nothing of a program is left; rules in lib.rs")]
//! The ends of a program that no destructor sees: it becomes another, or leaves at once.
//!
//! The one idea: it is told what there is ([`told`]), and the call goes on to libc as it came. One
//! that fails, as a search for a program may, costs nothing: what is told again replaces what was
//! told. libc's own `posix_spawn` and `system` make a child first, whose memory is nobody's yet.
//!
//! A program that is started with an environment of its own has no segments, and is counted. What
//! libc starts by itself, and `execl` and its kin with another environment, is not seen.

use std::{
    ffi::{CStr, c_char, c_int, c_long},
    sync::atomic::{AtomicBool, Ordering},
};

use pagelab_interpose::segment::{Counted, SHEET};
use pagelab_interpose::{Next, aside, set_errno};

use crate::{count, told};

extern "C" fn before() {
    begin();
    aside(told::tell_before_exec);
}

/// Finds the calls, if nobody did: before a process has a second thread, as a child may not search
/// where another one did when it was forked; else when one is made.
pub(crate) fn begin() {
    static FOUND: AtomicBool = AtomicBool::new(false);
    if !FOUND.load(Ordering::Acquire) && !FOUND.swap(true, Ordering::AcqRel) {
        find();
    }
}

/// Counts a program that gets an environment without this library: it has no segments. Whether it
/// was counted.
fn count_emptied(environment: Words) -> bool {
    let passes = |entry: *const c_char| {
        // SAFETY: rule 1 of lib.rs: an entry of an environment ends with 0.
        let entry = unsafe { CStr::from_ptr(entry) }.to_bytes();
        entry.strip_prefix(SHEET.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    let is_emptied = count::is_open() && !entries(environment).any(passes);
    if is_emptied {
        count::replace(Counted::Emptied, 0, 1);
    }
    is_emptied
}

/// The entries of an environment; of none at all where it is null, as Linux takes it.
fn entries(environment: Words) -> impl Iterator<Item = *const c_char> {
    let mut next = environment;
    std::iter::from_fn(move || {
        if next.is_null() {
            return None;
        }
        // SAFETY: rule 1 of lib.rs: the null at its end was not reached yet.
        let entry = unsafe { next.read() };
        if entry.is_null() {
            return None;
        }
        next = next.wrapping_add(1);
        Some(entry)
    })
}

/// The environment that the program has now.
fn own() -> Words {
    // SAFETY: a pointer, read as libc itself reads it.
    unsafe { environ }
}

unsafe extern "C" {
    static environ: Words;
}

macro_rules! calls {
    (
        $($name:ident($($argument:ident: $kind:ty),*) in $environment:expr;)*;
        $($variadic:ident)*
    ) => {
        fn find() {
            $($name::NEXT.find();)*
            #[cfg(target_arch = "x86_64")]
            {
                $($variadic::NEXT.find();)*
            }
        }

        $(mod $name {
            use super::*;

            type Call = unsafe extern "C" fn($($kind),*) -> c_int;
            pub(super) static NEXT: Next<Call> =
                // SAFETY: C declares the function of this name so.
                unsafe { Next::new(concat!(stringify!($name), "\0")) };

            #[cfg_attr(not(test), unsafe(no_mangle))]
            unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
                before();
                let Some(call) = NEXT.known() else {
                    set_errno(libc::ENOSYS);
                    return -1;
                };
                let is_emptied = count_emptied($environment);
                // SAFETY: rule 1 of lib.rs.
                let came = unsafe { call($($argument),*) };
                // Who comes back has become nothing.
                if is_emptied {
                    count::replace(Counted::Emptied, 1, 0);
                }
                came
            }
        })*

        // How many arguments there are only the callee knows: they stay where they are.
        $(#[cfg(target_arch = "x86_64")]
        mod $variadic {
            use super::*;

            pub(super) static NEXT: Next<unsafe extern "C" fn() -> c_int> =
                // SAFETY: only its address is used, and no argument is passed anew.
                unsafe { Next::new(concat!(stringify!($variadic), "\0")) };

            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[unsafe(naked)]
            unsafe extern "C" fn $variadic() -> c_int {
                std::arch::naked_asm!(
                    "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                    "push rax",
                    "call {before}",
                    "pop rax",
                    "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                    "jmp qword ptr [rip + {next}]",
                    before = sym before,
                    next = sym NEXT,
                )
            }
        })*
    };
}

/// Words of C, one behind the other, with a null at their end.
type Words = *const *const c_char;

calls! {
    execve(path: *const c_char, words: Words, environment: Words) in environment;
    execv(path: *const c_char, words: Words) in own();
    execvp(file: *const c_char, words: Words) in own();
    execvpe(file: *const c_char, words: Words, environment: Words) in environment;
    execveat(
        folder: c_int, path: *const c_char, words: Words, environment: Words, flags: c_int
    ) in environment;
    fexecve(file: c_int, words: Words, environment: Words) in environment;
    ; execl execlp execle
}

/// An end without anything done at the end.
fn ends(code: c_int) -> ! {
    aside(told::tell);
    loop {
        // SAFETY: takes a number, and does not come back.
        unsafe { libc::syscall(libc::SYS_exit_group, c_long::from(code)) };
    }
}

/// `_exit(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn _exit(code: c_int) -> ! {
    ends(code)
}

/// `_Exit(3)`: the same.
#[cfg_attr(not(test), unsafe(export_name = "_Exit"))]
extern "C" fn exit_at_once(code: c_int) -> ! {
    ends(code)
}
