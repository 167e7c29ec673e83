//! The rung by segments: heap and maps out of contiguous memory in large leaves.
//!
//! The one idea: the library of `pagelab segment run`, asked by the same variables, beside what
//! single settings give: another allocator and aligned maps at once.

use std::path::Path;

use pagelab_interpose::segment::{Leaf, PACKAGE, Wish};
use pagelab_record::asked::Reach;
use pagelab_sys::machine;

use super::{
    ANONYMOUS, Ground, Offer, Start, admitting, lack, library, preload::sanitized, preloaded, rung,
};
use pagelab_cli::program::Loader;

pub(super) fn segment(ground: &Ground<'_>) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size() else { return Vec::new() };
    let how = "its heap and its maps come out of two segments in leaves of huge pages";
    // Of no page: with small ones, too, it is another memory, and what that takes is told.
    let mut rung = rung("segment", how, Reach::Program, 0);
    let cure = "try the rungs collapse and thp-always, which need nothing of the program";
    let program = ground.program;
    if program.is_setuid || program.is_narrow || program.loader != Loader::Glibc {
        let need = "a program of 64 bits that glibc starts, and that keeps its user";
        rung.lacks.push(lack(need, cure));
    }
    rung.lacks.extend(sanitized(program));
    let found = library("the library of segments", PACKAGE);
    rung.lacks.extend(found.as_ref().err().cloned());
    let settings = admitting(ground).unwrap_or_else(|lack| {
        rung.lacks.push(lack);
        Vec::new()
    });
    if !settings.is_empty() {
        rung.reach = Reach::Machine;
    }
    let half = machine::memory_bytes() / 2 / pmd * pmd;
    let wish = Wish { heap: half, mmap: half, leaf: Leaf::Pmd, ..Wish::default() };
    let path = found.as_deref().unwrap_or(Path::new("libpagelab_segment.so"));
    let mut environment = vec![preloaded(&path.to_string_lossy())];
    let said = wish.variables().map(|(variable, value)| (variable.name().to_owned(), value));
    environment.extend(said);
    rung.keep = vec![
        format!("command: pagelab segment run -q -- {}", program.line()),
        "permanently: pagelab segment wrap PROGRAM -o FILE".to_owned(),
    ];
    "what it starts inherits it; another allocator changes more than its pages"
        .clone_into(&mut rung.cost);
    let proof = ANONYMOUS;
    vec![Offer {
        rung,
        start: Start { environment, thp: Some(true), settings, proof, ..Start::default() },
    }]
}
