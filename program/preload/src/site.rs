#![expect(unsafe_code, reason = "a walk over the stack; the rules are in lib.rs")]
//! Who asked for memory: the callers of a call, each a file of code and an address in it.
//!
//! The one idea: the tables that exceptions are unwound by lead from caller to caller, and glibc
//! says without a lock which file an address is of (`_dl_find_object`, 2.35). Where it cannot, or a
//! caller is of no file, the way ends there: what is left is still the same in the next run.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use pagelab_interpose::preload::log::{Entry, PATH_BYTES, Site, module};
use pagelab_interpose::{Next, kernel, next};

use crate::log;

/// As glibc writes it, and room for more.
#[repr(C)]
struct Found {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    link: *const Link,
    rest: [u64; 12],
}

/// The beginning of what the loader keeps of a file.
#[repr(C)]
struct Link {
    base: usize,
    name: *const c_char,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        take: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        taken: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// What finds files of code.
fn finder() -> &'static Next<unsafe extern "C-unwind" fn(*mut c_void, *mut Found) -> c_int> {
    next!(_dl_find_object: fn(*mut c_void, *mut Found) -> c_int)
}

/// Looks for what finds files of code, before anybody asks.
pub(crate) fn prepare() {
    finder().find();
}

/// The file that an address is of: what the loader keeps of it.
fn file_of(address: usize) -> Option<&'static Link> {
    let find = finder().known()?;
    let (start, end, link) = (ptr::null_mut(), ptr::null_mut(), ptr::null());
    let mut found = Found { flags: 0, start, end, link, rest: [0; 12] };
    // SAFETY: it writes no more than this.
    let answer = unsafe { find(ptr::with_exposed_provenance_mut(address), &raw mut found) };
    if answer != 0 {
        return None;
    }
    // SAFETY: the loader keeps it while code of the file runs.
    unsafe { found.link.as_ref() }
}

/// The path of a file; of the program itself the loader has none.
fn path(link: &Link, own: &mut [u8; PATH_BYTES]) -> usize {
    let name = if link.name.is_null() {
        &[][..]
    } else {
        // SAFETY: it ends with 0, and the loader keeps it.
        unsafe { CStr::from_ptr(link.name) }.to_bytes()
    };
    if name.is_empty() {
        return kernel::link(c"/proc/self/exe", own);
    }
    let length = name.len().min(own.len());
    own[..length].copy_from_slice(&name[..length]);
    length
}

/// What a file is called by, noted on the log when it is met for the first time.
fn known(link: &Link) -> u64 {
    const ROOM: usize = 64;
    static KNOWN: [(AtomicU64, AtomicU64); ROOM] =
        [const { (AtomicU64::new(0), AtomicU64::new(0)) }; ROOM];
    let base = (&raw const *link).addr() as u64;
    let is_it = |known: &&(AtomicU64, AtomicU64)| known.0.load(Ordering::Acquire) == base;
    if let Some((_, id)) = KNOWN.iter().find(is_it) {
        return id.load(Ordering::Acquire);
    }
    let mut text = [0; PATH_BYTES];
    let length = path(link, &mut text);
    let id = module(&text[..length]);
    log::add(&Entry::Module { id, path: text });
    let free = KNOWN.iter().find(|known| known.0.load(Ordering::Acquire) == 0);
    if let Some((at, kept)) = free {
        // Two threads may keep the same, which is no harm; nobody reads it before it is whole.
        kept.store(id, Ordering::Release);
        at.store(base, Ordering::Release);
    }
    id
}

struct Walk {
    site: Site,
    own: *const Link,
}

/// The callers of whoever called this library.
pub(crate) fn here() -> Site {
    let own = file_of(here as *const () as usize).map_or(ptr::null(), ptr::from_ref);
    let mut walk = Walk { site: Site::default(), own };
    // SAFETY: it calls `take` with this walk, and returns.
    unsafe { _Unwind_Backtrace(take, (&raw mut walk).cast()) };
    walk.site
}

/// Goes on.
const ON: c_int = 0;
/// Ends the walk: `_URC_END_OF_STACK`.
const ENOUGH: c_int = 5;

unsafe extern "C" fn take(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: what `here` passed, which nobody else has.
    let Some(walk) = (unsafe { walk.cast::<Walk>().as_mut() }) else { return ENOUGH };
    // SAFETY: the walker's own context.
    let address = unsafe { _Unwind_GetIP(context) };
    let Some(link) = file_of(address) else { return ENOUGH };
    if ptr::eq(link, walk.own) {
        return ON;
    }
    let at = (address - link.base) as u64;
    if walk.site.push(known(link), at) { ON } else { ENOUGH }
}
