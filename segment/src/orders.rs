//! What this program is to have: the variables of the publication, read once.
//!
//! The one idea: whoever started the program has refused what cannot be said; a variable that says
//! nothing sensible here, because the program's parent changed it, asks for nothing.

use std::{
    ffi::CStr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use pagelab_interpose::{kernel, variable};
use pagelab_sys::process::segment::{Counted, Leaf, Variable, Wish};

use crate::count;

static LEAF: AtomicUsize = AtomicUsize::new(0);
static STRICT: AtomicBool = AtomicBool::new(false);

/// The name of an executable file that the kernel has, at most.
const NAME_BYTES: usize = 4096;

/// Reads what is asked for; nothing in a program that is not the one that was named.
pub(crate) fn read() -> Wish {
    let text = |asked: Variable| variable(asked.name()).map(CStr::to_bytes);
    let is_other = text(Variable::Only).is_some_and(|only| !only.is_empty() && !is_named(only));
    let wish = if is_other { Ok(Wish::default()) } else { Wish::read(text) };
    let wish = wish.unwrap_or_default();
    LEAF.store(wish.leaf as usize, Ordering::Relaxed);
    STRICT.store(wish.strict, Ordering::Relaxed);
    if is_other {
        count::add(Counted::Others, 1);
    }
    wish
}

/// The leaf.
pub(crate) fn leaf() -> Leaf {
    match LEAF.load(Ordering::Relaxed) {
        0 => Leaf::Base,
        1 => Leaf::Pmd,
        _ => Leaf::Pud,
    }
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
    if !STRICT.load(Ordering::Relaxed) {
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
