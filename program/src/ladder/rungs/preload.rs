//! Rungs by a library of ours that stands before the program's own calls for memory.
//!
//! The one idea: what a program maps itself can be had otherwise at the moment when it is mapped,
//! without a change to it and without privilege. malloc maps for itself, which nobody stands
//! between: its rungs are its tunables.

use std::path::Path;

use pagelab_interpose::preload::{ORDERS, Order, Orders};
use pagelab_record::{
    asked::{Lack, Reach, Rung},
    units::display_bytes,
};
use pagelab_sys::machine::thp::Policy;

use super::{
    ANONYMOUS, Ground, Offer, Only, POOL, Proof, Start, admitting, lack, lines,
    malloc::{TUNABLES, no_tunables, tunables},
    pool, preloaded, rung, words,
};
use pagelab_cli::program::{Loader, Program};

/// Maps of so many bytes are worth a call more.
const LEAST: u64 = 1 << 20;
/// Bytes of a base page: what is populated comes in pages of that size or larger.
const BASE: u64 = 4096;

/// What is missing where the library cannot be in the program.
pub(super) fn not_preloaded(ground: &Ground<'_>) -> Vec<Lack> {
    let program = ground.program;
    let cure = "try the rungs collapse and thp-always, which need nothing of the program";
    let mut lacks: Vec<_> = sanitized(program).into_iter().collect();
    if program.is_setuid {
        lacks.push(lack("a program that keeps its user: a setuid one takes no library", cure));
    } else if program.is_static_glibc {
        let need = "a program that is linked dynamically: no library is loaded into a static one";
        lacks.push(lack(need, "try the rungs malloc-keep and malloc-thp: its malloc has tunables"));
    } else if program.loader != Loader::Glibc || program.is_narrow {
        lacks.push(lack("a program of 64 bits that glibc starts: the library is for it", cure));
    }
    match &ground.library {
        Err(lack) => lacks.push(lack.clone()),
        // The loader takes both for the end of a path.
        Ok(path) if path.to_string_lossy().contains([' ', ':']) => {
            let need = format!("a path without blank and colon to {}", path.display());
            lacks.push(lack(&need, "install pagelab elsewhere"));
        }
        Ok(_) => (),
    }
    lacks
}

/// What is missing where a program ends itself once any library is preloaded.
pub(super) fn sanitized(program: &Program) -> Option<Lack> {
    let why = program.refuses_preload()?;
    let need = format!("a program that takes a preloaded library: this one {why}");
    Some(lack(&need, "build it without -fsanitize=address, or try collapse and thp-always"))
}

/// The variables that put the library into a program, with orders.
pub(super) fn loaded(ground: &Ground<'_>, orders: Orders) -> Vec<(String, String)> {
    let library = ground.library.as_ref().map_or(Path::new("libpagelab_preload.so"), |path| path);
    vec![preloaded(&library.to_string_lossy()), (ORDERS.to_owned(), orders.to_string())]
}

/// A start with the library, which does one thing to memory of so many bytes or more.
fn ordered(ground: &Ground<'_>, rung: &mut Rung, order: Order, bytes: u64) -> Start {
    rung.lacks.extend(not_preloaded(ground));
    let environment = loaded(ground, Orders::default().with(order, bytes));
    let start = Start { environment, preload: true, ..Start::default() };
    rung.keep.extend(lines(&start));
    start
}

pub(super) fn populate(ground: &Ground<'_>) -> Vec<Offer> {
    let how = format!(
        "what it maps itself, {} and more, is made present when it is mapped; malloc's own memory \
         is not: malloc-keep",
        display_bytes(LEAST as f64)
    );
    let mut rung = rung("populate", &how, Reach::Program, BASE);
    rung.keep = words(&[
        "code: mmap with MAP_POPULATE, or madvise(p, n, MADV_POPULATE_WRITE) (Linux 5.14)",
    ]);
    "what it maps and never touches is held".clone_into(&mut rung.cost);
    let start = ordered(ground, &mut rung, Order::Populate, LEAST);
    vec![Offer { rung, start: Start { proof: Proof::Counted, ..start } }]
}

/// Memory that malloc has once it keeps, and gets in large steps.
const KEEP: [(&str, &str); 3] = [
    ("glibc.malloc.mmap_threshold", "4294967296"),
    ("glibc.malloc.trim_threshold", "68719476736"),
    ("glibc.malloc.top_pad", "67108864"),
];

pub(super) fn malloc_keep(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "malloc (glibc 2.26) keeps what is freed, and gets memory in steps of 64 MiB";
    let mut rung = rung("malloc-keep", how, Reach::Program, 0);
    rung.lacks.extend(no_tunables(ground.program));
    let now = std::env::var(TUNABLES).ok();
    let all =
        KEEP.iter().fold(now, |now, (name, value)| Some(tunables(now.as_deref(), name, value).1));
    "what it freed is held until it ends".clone_into(&mut rung.cost);
    let environment = all.map(|all| (TUNABLES.to_owned(), all)).into_iter().collect();
    let start = Start { environment, ..Start::default() };
    rung.keep = lines(&start);
    vec![Offer { rung, start }]
}

pub(super) fn maps_thp(ground: &Ground<'_>) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size() else { return Vec::new() };
    let how = "what it maps itself asks for transparent huge pages when it is mapped";
    let mut rung = rung("maps-thp", how, Reach::Program, pmd);
    // Who is collapsed needs no policy that admits it.
    let is_never = ground.pages.policy(pmd) == Some(Policy::Never) && !ground.is_root;
    let (order, settings) = if is_never {
        "what it maps itself is made present and collapsed into huge pages when it is mapped"
            .clone_into(&mut rung.how);
        rung.keep = words(&["code: madvise(p, n, MADV_COLLAPSE) after each mmap (Linux 6.1)"]);
        (Order::Collapse, Vec::new())
    } else {
        rung.keep = words(&["code: madvise(p, n, MADV_HUGEPAGE) after each mmap"]);
        (Order::Huge, admitting(ground).unwrap_or_default())
    };
    if !settings.is_empty() {
        rung.reach = Reach::Machine;
    }
    "nothing: what it starts inherits it".clone_into(&mut rung.cost);
    let start = ordered(ground, &mut rung, order, pmd);
    let start = Start { thp: Some(true), settings, proof: ANONYMOUS, ..start };
    vec![Offer { rung, start }]
}

pub(super) fn shared_pool(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "shared memory (System V, memfd, shared anonymous maps) takes pages of the hugetlb \
               pool, which is set aside for it";
    let mut rung = rung("shmem-hugetlb", how, Reach::Machine, 2 << 20);
    let Some((page, path)) = pool(ground, &mut rung) else {
        return vec![Offer { rung, start: Start::default() }];
    };
    rung.keep = vec![
        "code: shmget with SHM_HUGETLB, memfd_create with MFD_HUGETLB, mmap with MAP_HUGETLB; \
         PostgreSQL: huge_pages = on"
            .to_owned(),
        format!("sysctl: vm.nr_hugepages=N, pages of {}", display_bytes(page as f64)),
    ];
    "the pool serves nobody else, used or not; a segment of System V that is left behind keeps its \
     pages"
        .clone_into(&mut rung.cost);
    let start = ordered(ground, &mut rung, Order::Pool, page);
    let pool = Some((page, path));
    vec![Offer { rung, start: Start { pool, proof: POOL, only: Only::Sharing, ..start } }]
}
