//! Tells the linker who makes the system calls of the allocator that is linked in.
//!
//! mimalloc calls `mmap` by that name, which this library takes from programs: what the allocator
//! maps for its own tables must not come out of a program's segment, so its calls have names of
//! their own here, `__wrap_mmap` and the like. So do its locks, which a fork must find free, and
//! its wait for another thread, which a child of a fork may not have.
//!
//! Each page that a start touches counts where a program is short. So what this library calls of
//! itself is not looked for in all libraries, and nothing is there of what C begins and ends a
//! library with.
//!
//! And it links the standard library's unwinder in, where the C compiler has it as an archive:
//! `libgcc_s` would be one more file that every program opens, maps and relocates when it starts.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for argument in ["-Wl,-Bsymbolic-functions", "-nostartfiles"] {
        println!("cargo::rustc-link-arg-cdylib={argument}");
    }
    if let Some(archive) = unwinder() {
        let folder = archive.parent().unwrap_or(Path::new("/"));
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
    let locks = ["pthread_mutex_lock", "pthread_mutex_unlock", "sleep"];
    for call in ["mmap", "munmap", "mprotect", "madvise"].into_iter().chain(locks) {
        println!("cargo::rustc-link-arg-cdylib=-Wl,--wrap={call}");
    }
}

/// Where the compiler that links for this machine has its unwinder.
fn unwinder() -> Option<PathBuf> {
    let is_this = env::var_os("HOST") == env::var_os("TARGET");
    let asked = is_this.then(|| Command::new("cc").arg("-print-file-name=libgcc_eh.a").output())?;
    let path = PathBuf::from(String::from_utf8(asked.ok()?.stdout).ok()?.trim());
    // What it does not have it answers by the bare name.
    path.is_absolute().then_some(path)
}
