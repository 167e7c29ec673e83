//! Allocators in place of malloc, where they are installed.
//!
//! The one idea: each is a row: the files that it may be, the variables that ask it for huge pages,
//! and the package that has it.

use std::path::Path;

use pagelab_record::asked::Reach;

use super::{ANY, Ground, Offer, Proof, Start, lack, lines, preload::sanitized, preloaded, rung};
use pagelab_cli::program::Loader;

/// Where distributions put libraries.
const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
];

/// An allocator that can be put before malloc: files that it may be, variables that ask for huge
/// pages, the package.
type Allocator =
    (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

const ALLOCATORS: &[Allocator] = &[
    (
        "mimalloc",
        &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"],
        &[("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1"), ("MIMALLOC_ALLOW_THP", "1")],
        "libmimalloc3 or libmimalloc2.0",
    ),
    (
        "jemalloc",
        &["libjemalloc.so.2", "libjemalloc.so"],
        &[("MALLOC_CONF", "thp:always,metadata_thp:auto")],
        "libjemalloc2",
    ),
    ("tcmalloc", &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"], &[], "libtcmalloc-minimal4"),
];

pub(super) fn allocators(ground: &Ground<'_>) -> Vec<Offer> {
    ALLOCATORS.iter().map(|allocator| of_allocator(ground, allocator)).collect()
}

fn of_allocator(ground: &Ground<'_>, (name, files, variables, package): &Allocator) -> Offer {
    let asks = if variables.is_empty() { "" } else { ", asked for huge pages" };
    let pmd = ground.pages.pmd_size().unwrap_or(2 << 20);
    // One that asks for nothing is an allocator, and no promise of pages.
    let (page, proof) = if variables.is_empty() { (0, Proof::None) } else { (pmd, ANY) };
    let mut rung = rung(name, &format!("{name} in place of malloc{asks}"), Reach::Program, page);
    let paths =
        LIBRARIES.iter().flat_map(|folder| files.iter().map(move |f| Path::new(folder).join(f)));
    let found = paths.into_iter().find(|path| ground.tree.path(path).is_file());
    match ground.program.loader {
        _ if ground.program.is_setuid => {
            rung.lacks.push(lack("a program that keeps its user", "try collapse or thp-always"));
        }
        Loader::Glibc => {}
        _ => rung.lacks.push(lack("a program that glibc starts", "try collapse or thp-always")),
    }
    rung.lacks.extend(sanitized(ground.program));
    if found.is_none() {
        rung.lacks.push(lack(&format!("the library of {name}"), format!("apt install {package}")));
    }
    let library = found.unwrap_or_else(|| files[0].into()).display().to_string();
    let mut environment = vec![preloaded(&library)];
    environment.extend(variables.iter().map(|(key, value)| ((*key).into(), (*value).into())));
    "what it starts inherits it; another allocator changes more than its pages"
        .clone_into(&mut rung.cost);
    let start = Start { environment, thp: Some(true), proof, ..Start::default() };
    rung.keep = lines(&start);
    Offer { rung, start }
}
