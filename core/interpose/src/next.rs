#![expect(unsafe_code, reason = "asks the dynamic loader; rules below")]
//! The function that a program would have called: the one of the same name behind this library.
//!
//! Rules for the unsafe blocks:
//! 1. The caller of [`Next::new`] answers for the type.

use std::{
    ffi::{CStr, c_void},
    marker::PhantomData,
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// A function that the loader finds behind this library; it begins with its address.
#[repr(C)]
#[derive(Debug)]
pub struct Next<F> {
    at: AtomicPtr<c_void>,
    name: &'static CStr,
    function: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    /// The function of a name, which ends with 0; it is looked for later.
    ///
    /// # Safety
    /// `F` is a pointer to a function, and that of this name is declared so; or a reference to what
    /// lies there for good.
    pub const unsafe fn new(name: &'static str) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a pointer") };
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { panic!("no name") };
        Self { at: AtomicPtr::new(ptr::null_mut()), name, function: PhantomData }
    }

    /// Returns the function if it was found before; looks for nothing.
    pub fn known(&self) -> Option<F> {
        let at = self.at.load(Ordering::Acquire);
        // SAFETY: rule 1.
        (!at.is_null()).then(|| unsafe { mem::transmute_copy::<*mut c_void, F>(&at) })
    }

    /// Returns the function, if there is one.
    pub fn find(&self) -> Option<F> {
        if self.at.load(Ordering::Acquire).is_null() {
            // SAFETY: a name that ends with 0.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.at.store(found, Ordering::Release);
        }
        self.known()
    }

    /// Returns a function that the program itself called by its name: without this library it would
    /// not have started if there were none.
    pub fn must(&self) -> F {
        self.find().unwrap_or_else(|| crate::kernel::abort())
    }
}

/// The [`Next`] of a name: `next!(close: fn(c_int) -> c_int).must()`.
#[macro_export]
macro_rules! next {
    ($name:ident: fn($($kind:ty),* $(,)?) $(-> $answer:ty)?) => {{
        type Call = unsafe extern "C-unwind" fn($($kind),*) $(-> $answer)?;
        static NEXT: $crate::Next<Call> =
            // SAFETY: C declares the function of this name so.
            unsafe { $crate::Next::new(concat!(stringify!($name), "\0")) };
        &NEXT
    }};
}
