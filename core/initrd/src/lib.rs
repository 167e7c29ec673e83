//! What a machine finds when it boots: the initramfs, and the modules of its kernel.
//!
//! The one idea: whoever boots a machine says which files it is to find and by which names modules
//! are known; how an archive is laid out and what a module depends on is known here alone.

mod archive;
mod modules;

pub use archive::Archive;
pub use modules::Modules;
