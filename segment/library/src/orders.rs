#![expect(unsafe_code, reason = "written once; the rules are in lib.rs")]
//! What this program is to have: the variables of the publication, read once.
//!
//! The one idea: whoever started the program has refused what cannot be said; a variable that says
//! nothing sensible here, because the program's parent changed it, asks for nothing.

use std::{
    cell::UnsafeCell,
    ffi::CStr,
    sync::atomic::{AtomicBool, Ordering},
};

use pagelab_interpose::segment::{Counted, Leaf, Variable, Wish, Zero};
use pagelab_interpose::{kernel, variable};

use crate::count;

/// What is asked for, once that was read. One of the standard library would be pages of it that
/// most programs never touch.
struct Read(AtomicBool, UnsafeCell<Wish>);

// SAFETY: it is written once, by whoever reads the environment, before anybody is shown it.
unsafe impl Sync for Read {}

static WISH: Read = Read(AtomicBool::new(false), UnsafeCell::new(Wish::NONE));

/// The name of an executable file that the kernel has, at most.
const NAME_BYTES: usize = 4096;

/// What is asked for, once that was read.
pub(crate) fn wish() -> Option<&'static Wish> {
    // SAFETY: nobody writes to it any more.
    WISH.0.load(Ordering::Acquire).then(|| unsafe { &*WISH.1.get() })
}

/// Reads what is asked for: called once.
pub(crate) fn read() -> &'static Wish {
    let wish = from_environment();
    // SAFETY: nobody is shown it before it is there.
    unsafe { WISH.1.get().write(wish) };
    WISH.0.store(true, Ordering::Release);
    // SAFETY: nobody writes to it any more.
    unsafe { &*WISH.1.get() }
}

/// Nothing in a program that is not the one that was named.
fn from_environment() -> Wish {
    let text = |asked: Variable| variable(asked.name()).map(CStr::to_bytes);
    let is_other = text(Variable::Only).is_some_and(|only| !only.is_empty() && !is_named(only));
    let wish = if is_other { Ok(Wish::default()) } else { Wish::read(text) };
    if is_other {
        count::add(Counted::Others, 1);
    }
    wish.unwrap_or_default()
}

/// The leaf.
pub(crate) fn leaf() -> Leaf {
    wish().map_or(Leaf::Base, |wish| wish.leaf)
}

/// Whether memory is zeroed ahead.
pub(crate) fn is_ahead() -> bool {
    wish().is_some_and(|wish| wish.zero == Zero::Ahead)
}

/// Whether the file of this program has a name.
fn is_named(name: &[u8]) -> bool {
    let mut path = [0; NAME_BYTES];
    let length = kernel::link(c"/proc/self/exe", &mut path);
    let file = path[..length].rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    file == name
}

/// A segment has no room: the end, where that was asked for.
#[cold]
pub(crate) fn full(what: &CStr, variable: Variable) {
    if !wish().is_some_and(|wish| wish.strict) {
        return;
    }
    count::add(Counted::Ended, 1);
    for text in [
        b"pagelab: " as &[u8],
        what.to_bytes(),
        b" is full, and SMM_STRICT=1 ends the program: more by ",
        variable.name().as_bytes(),
        b"\n",
    ] {
        kernel::say(text);
    }
    kernel::abort()
}
