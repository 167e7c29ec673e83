#![expect(unsafe_code, reason = "stands before calls that forbid calls; the rules are in lib.rs")]
//! Programs that forbid themselves system calls (seccomp).
//!
//! A filter may end a program for any call that it does not name. So what lies in the segments is
//! looked at before one is set, and from then on this library makes no call that libc's malloc or
//! the program itself would not make: no segment begins, no advice is given, and nothing is looked
//! at when the program ends. A filter that is set past libc (a system call of the program's own
//! code), and one that was there when the program began, is not seen.

use std::{
    ffi::{c_int, c_long, c_ulong, c_void},
    mem, ptr,
};

use pagelab_interpose::{aside, checked, number, set_errno};
use pagelab_sys::process::segment::Counted;

use crate::{count, filtered, told};

/// Before a filter is set.
extern "C" fn before() {
    if !filtered::is_set() {
        aside(told::tell);
        count::add(Counted::Filtered, 1);
        filtered::set();
    }
}

/// Whether something lies in this library: mimalloc gives a name to what it maps, which nobody's
/// filter can expect of `malloc`.
fn is_ours(at: c_ulong) -> bool {
    let object = |at: *const c_void| {
        // SAFETY: plain numbers and pointers, of which zero is one.
        let mut found: libc::Dl_info = unsafe { mem::zeroed() };
        // SAFETY: takes any address, and fills what is ours.
        let is_found = unsafe { libc::dladdr(at, &raw mut found) } != 0;
        is_found.then_some(found.dli_fbase)
    };
    let name = ptr::with_exposed_provenance(usize::try_from(at).unwrap_or(0));
    object(name).is_some_and(|found| Some(found) == object(is_ours as *const c_void))
}

/// `prctl(2)`: as many arguments as it may have.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn prctl(what: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if what == libc::PR_SET_SECCOMP {
        before();
    }
    if what == libc::PR_SET_VMA && filtered::is_set() && is_ours(d) {
        return 0;
    }
    // SAFETY: rule 1 of lib.rs.
    let answer = unsafe { libc::syscall(libc::SYS_prctl, c_long::from(what), a, b, c, d) };
    number(checked(answer).map(|answer| c_int::try_from(answer).unwrap_or(-1)))
}

/// `syscall(2)`, which passes on all but `seccomp(2)` as it came, with nothing of its own on the
/// stack: a call may come back twice.
#[cfg(target_arch = "x86_64")]
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C" fn syscall() -> c_long {
    extern "C" fn failed(errno: c_int) {
        set_errno(errno);
    }
    std::arch::naked_asm!(
        "cmp rdi, {seccomp}",
        "jne 2f",
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
        "call {before}",
        "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "2:",
        "mov rax, rdi", "mov rdi, rsi", "mov rsi, rdx", "mov rdx, rcx", "mov r10, r8",
        "mov r8, r9", "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 3f",
        "ret",
        "3:",
        "neg eax",
        "mov edi, eax",
        "sub rsp, 8",
        "call {failed}",
        "add rsp, 8",
        "mov rax, -1",
        "ret",
        seccomp = const libc::SYS_seccomp,
        before = sym before,
        failed = sym failed,
    )
}
