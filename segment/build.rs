//! Tells the linker who makes the system calls of the allocator that is linked in.
//!
//! mimalloc calls `mmap` by that name, which this library takes from programs: what the allocator
//! maps for its own tables must not come out of a program's segment, so its calls have names of
//! their own here, `__wrap_mmap` and the like. So do its locks, which a fork must find free, and
//! its wait for another thread, which a child of a fork may not have.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let locks = ["pthread_mutex_lock", "pthread_mutex_unlock", "sleep"];
    for call in ["mmap", "munmap", "mprotect", "madvise"].into_iter().chain(locks) {
        println!("cargo::rustc-link-arg-cdylib=-Wl,--wrap={call}");
    }
}
