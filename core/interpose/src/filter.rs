//! Calls by which a program forbids itself system calls (seccomp).
//!
//! A filter may end a program for any call that it does not name. So a library that makes calls
//! which the program, or libc's malloc, would not make stands before these, and makes none from
//! then on. A filter that is set past libc, by the program's own code, is not seen.

/// Defines `prctl(2)` and `syscall(2)`, which pass on what they get: `before` is called before a
/// filter is set, with whether it is the strict one, and `ignored` says which calls of `prctl`
/// (its first and its last argument) are answered by 0.
#[macro_export]
macro_rules! filter_calls {
    ($before:path, $ignored:path) => {
        /// `prctl(2)`: as many arguments as it may have.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn prctl(
            what: std::ffi::c_int,
            a: std::ffi::c_ulong,
            b: std::ffi::c_ulong,
            c: std::ffi::c_ulong,
            d: std::ffi::c_ulong,
        ) -> std::ffi::c_int {
            if what == libc::PR_SET_SECCOMP {
                $before(a == std::ffi::c_ulong::from(libc::SECCOMP_MODE_STRICT));
            }
            if $ignored(what, d) {
                return 0;
            }
            let whole = std::ffi::c_long::from(what);
            // SAFETY: what the program passes, which the kernel checks.
            let answer = unsafe { libc::syscall(libc::SYS_prctl, whole, a, b, c, d) };
            let answer = $crate::checked(answer);
            $crate::number(answer.map(|answer| std::ffi::c_int::try_from(answer).unwrap_or(-1)))
        }

        /// `syscall(2)`, which passes on all as it came, with nothing of its own on the stack: a
        /// call may come back twice.
        #[cfg(target_arch = "x86_64")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn syscall() -> std::ffi::c_long {
            extern "C" fn failed(errno: std::ffi::c_int) {
                $crate::set_errno(errno);
            }
            extern "C" fn forbids(operation: std::ffi::c_ulong) {
                $before(operation == std::ffi::c_ulong::from(libc::SECCOMP_SET_MODE_STRICT));
            }
            std::arch::naked_asm!(
                "cmp rdi, {seccomp}",
                "jne 2f",
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
                "mov rdi, rsi",
                "call {forbids}",
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
                forbids = sym forbids,
                failed = sym failed,
            )
        }
    };
}
