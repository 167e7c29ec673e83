#![cfg_attr(not(test), expect(unsafe_code, reason = "the edge to C; rules below"))]
#![cfg_attr(test, expect(dead_code, reason = "a test calls no C"))]
//! The library inside a program whose hot pages are looked for: `libpagelab_heat.so`.
//!
//! The one idea: the dynamic loader of glibc loads it before all others (`LD_PRELOAD`). It opens a
//! descriptor of faults, with which somebody else sees stores. Where it is asked to it looks for
//! loads itself (`sampler`): it closes memory for a moment, and whoever touches it opens it again.
//! Therefore it stands before the calls that make memory (`memory`), before signals, and before
//! those that hand memory to the kernel (`buffers`). Each goes on to the kernel or to whatever the
//! program has. Without a yard nothing is done.
//!
//! Nothing here allocates or prints, nor waits but for a thread that looks up the program's
//! allocator for the first time: a call may come from an allocator, from a signal handler, and
//! before anything is set up. It is for `tier promote` only; what a rung of `try` needs is another
//! library, `preload`, because each call that is stood before costs the program some time.
//!
//! # Rules
//! 1. What the program passes goes on unchanged, and the kernel checks it; whatever a call promises
//!    about its memory the program promises.
//! 2. What is done beside a call leaves `errno` as the call left it.
//! 3. A yard has [`pagelab_interpose::heat::HEAT_BYTES`], and is mapped for good.

mod buffers;
mod descriptors;
mod filter;
mod memory;
mod places;
mod sampler;
mod signals;
#[cfg(test)]
mod tests;
mod yard;

/// Called when the library is loaded, before the program's first instruction.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        yard::open();
        if let Some(least) = yard::sampled()
            && sampler::prepare()
        {
            memory::look_from(least);
        }
    }
    begin
};
