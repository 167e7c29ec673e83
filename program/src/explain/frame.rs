//! Where a program was: an instruction of a file, or of memory without one.

use std::rc::Rc;

/// An instruction: a file and an offset in it, or an address where no file is. Code that a program
/// made itself is at its address in the file that may name it ([`super::jit`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The file; empty where there is none.
    pub file: Rc<str>,
    /// Offset in the file, or the address.
    pub at: u64,
}
