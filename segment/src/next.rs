#![expect(unsafe_code, reason = "asks the dynamic loader; the rules are in lib.rs")]
//! Calls of libc that this library stands before.

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// A call of libc, found once.
pub(crate) struct Next(AtomicPtr<c_void>);

impl Next {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn find(&self, name: &CStr) {
        // SAFETY: a name that ends with 0.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        self.0.store(found, Ordering::Release);
    }

    pub(crate) fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Acquire)
    }
}
