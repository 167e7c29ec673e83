#![expect(unsafe_code, reason = "the loader is asked for a name; the rules are in lib.rs")]
//! A call of the program's that is looked for when it is made for the first time.

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// A call of the program's that is looked for when it is made for the first time.
#[derive(Debug)]
pub(crate) struct Later {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

/// A name with a 0 behind it.
pub(crate) const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

impl Later {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicPtr::new(ptr::null_mut()) }
    }

    /// What the loader finds behind this library, if anything.
    pub(crate) fn find(&self) -> Option<*mut c_void> {
        let known = self.at.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        // SAFETY: a name that ends with 0.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(found, Ordering::Release);
        (!found.is_null()).then_some(found)
    }

    /// The same for a name that the program itself called: without us it would not have started.
    pub(crate) fn must(&self) -> *mut c_void {
        self.find().unwrap_or_else(|| {
            // SAFETY: ends the process.
            unsafe { libc::abort() }
        })
    }
}
