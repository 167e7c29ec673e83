#![expect(unsafe_code, reason = "the program's own calls; the rules are in lib.rs")]
//! Calls by which a program hands memory to the kernel: it stays open for as long as they last.
//!
//! The one idea: the kernel does not wait for a handler; it answers `EFAULT` where memory is
//! closed. So the calls that programs make by name are listed here with what they reach. A call
//! that is not listed, or that no name leads to, may still fail: tiering/docs/tier-promote.md says
//! which. Locks are reached by calls without a name; memory with one in it is looked at no more.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use pagelab_interpose::{checked, done, kernel, next, place};

use crate::{
    places::{self, Busy},
    sampler, yard,
};

/// Calls with what they reach: an address and its bytes.
macro_rules! reaching {
    ($(
        fn $name:ident($($argument:ident: $type:ty),+) -> $answer:ty, $at:expr, $bytes:expr;
    )+) => {$(
        /// The call of this name, with what it reaches open.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C-unwind" fn $name($($argument: $type),+) -> $answer {
            let _busy = Busy::with($at.addr(), $bytes);
            let call = next!($name: fn($($type),+) -> $answer).must();
            // SAFETY: rule 1.
            unsafe { call($($argument),+) }
        }
    )+};
}

reaching! {
    fn read(file: c_int, at: *mut c_void, bytes: usize) -> isize, at, bytes;
    fn __read_chk(file: c_int, at: *mut c_void, bytes: usize, room: usize) -> isize, at, bytes;
    fn pread(file: c_int, at: *mut c_void, bytes: usize, from: i64) -> isize, at, bytes;
    fn pread64(file: c_int, at: *mut c_void, bytes: usize, from: i64) -> isize, at, bytes;
    fn __pread_chk(file: c_int, at: *mut c_void, bytes: usize, from: i64, room: usize) -> isize,
        at, bytes;
    fn __pread64_chk(file: c_int, at: *mut c_void, bytes: usize, from: i64, room: usize) -> isize,
        at, bytes;
    fn write(file: c_int, at: *const c_void, bytes: usize) -> isize, at, bytes;
    fn pwrite(file: c_int, at: *const c_void, bytes: usize, from: i64) -> isize, at, bytes;
    fn pwrite64(file: c_int, at: *const c_void, bytes: usize, from: i64) -> isize, at, bytes;
    fn recv(file: c_int, at: *mut c_void, bytes: usize, flags: c_int) -> isize, at, bytes;
    fn __recv_chk(file: c_int, at: *mut c_void, bytes: usize, room: usize, flags: c_int) -> isize,
        at, bytes;
    fn send(file: c_int, at: *const c_void, bytes: usize, flags: c_int) -> isize, at, bytes;
    fn recvfrom(file: c_int, at: *mut c_void, bytes: usize, flags: c_int, who: *mut c_void,
        length: *mut c_void) -> isize, at, bytes;
    fn sendto(file: c_int, at: *const c_void, bytes: usize, flags: c_int, who: *const c_void,
        length: u32) -> isize, at, bytes;
    fn fread(at: *mut c_void, each: usize, count: usize, file: *mut c_void) -> usize,
        at, each.saturating_mul(count);
    fn __fread_chk(at: *mut c_void, room: usize, each: usize, count: usize, file: *mut c_void)
        -> usize, at, each.saturating_mul(count);
    fn fwrite(at: *const c_void, each: usize, count: usize, file: *mut c_void) -> usize,
        at, each.saturating_mul(count);
    fn poll(at: *mut libc::pollfd, count: libc::nfds_t, patience: c_int) -> c_int,
        at, usize::try_from(count).unwrap_or(0).saturating_mul(size_of::<libc::pollfd>());
    fn epoll_wait(file: c_int, at: *mut c_void, count: c_int, patience: c_int) -> c_int,
        at, usize::try_from(count).unwrap_or(0).saturating_mul(size_of::<libc::epoll_event>());
    fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int, path, 1;
    fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int, path, 1;
    fn readv(file: c_int, parts: *const libc::iovec, count: c_int) -> isize,
        anything(parts), usize::MAX;
    fn writev(file: c_int, parts: *const libc::iovec, count: c_int) -> isize,
        anything(parts), usize::MAX;
    fn recvmsg(file: c_int, message: *mut c_void, flags: c_int) -> isize,
        anything(message), usize::MAX;
    fn sendmsg(file: c_int, message: *const c_void, flags: c_int) -> isize,
        anything(message), usize::MAX;
}

/// What is reached stands in memory itself: all there is.
fn anything<T>(_: *const T) -> *const T {
    ptr::null()
}

/// Locks: where one lies is looked at no more.
macro_rules! locking {
    ($(fn $name:ident;)+) => {$(
        /// The call of this name; memory with a lock in it is left out.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C-unwind" fn $name(lock: *mut c_void) -> c_int {
            sampler::leave_out(lock.addr());
            let call = next!($name: fn(*mut c_void) -> c_int).must();
            // SAFETY: rule 1.
            unsafe { call(lock) }
        }
    )+};
}

locking! {
    fn pthread_mutex_lock;
    fn pthread_rwlock_rdlock;
    fn pthread_rwlock_wrlock;
    fn sem_wait;
    fn sem_post;
}

/// `mprotect(2)`: what the program protects itself is looked at no more.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mprotect(at: *mut c_void, length: usize, access: c_int) -> c_int {
    places::forget(at.addr(), length);
    // SAFETY: rule 1.
    done(unsafe { kernel::protect(at.addr(), length, access) })
}

/// `madvise(2)`: some advice reaches the memory.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int {
    let _busy = Busy::with(at.addr(), length);
    // SAFETY: rule 1.
    done(unsafe { kernel::advise(at.addr(), length, advice) })
}

/// `mremap(2)`: memory that lies elsewhere is another place, which is looked at no more. The
/// kernel moves no memory of several mappings of which one is registered for faults.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mremap(
    at: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    places::forget(at.addr(), old);
    if flags & libc::MREMAP_FIXED != 0 {
        places::forget(to.addr(), new);
    }
    let came = yard::unregistered(at.addr(), old, || {
        // SAFETY: rule 1.
        unsafe { kernel::remap(at.addr(), old, new, flags, to.addr()) }
    });
    place(came.inspect(|at| yard::mapped(at.addr(), new)))
}

/// `sigaltstack(2)`: a signal's own stack cannot be closed.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    // SAFETY: null, or the program's own.
    if let Some(stack) = unsafe { new.as_ref() } {
        places::forget(stack.ss_sp.addr(), stack.ss_size);
    }
    // SAFETY: rule 1.
    done(checked(unsafe { libc::syscall(libc::SYS_sigaltstack, new, old) }).map(drop))
}
