//! Callers that no frame pointer tells, and names of code that a program made itself.

use std::fs;

use pagelab_record::Measured;

use super::{compiled_with, explained, sees};
use crate::support::{Lab, skip};

/// What took most of the faults of a run of the program, `None` where callers are not seen here.
fn heaviest_site(mode: &str) -> Option<(String, Measured)> {
    if !cfg!(target_arch = "x86_64") {
        skip("stacks are unwound on x86-64 only", "run on x86-64");
        return None;
    }
    let lab = Lab::new();
    let program = compiled_with(&lab, "callers", &["-O2", "-fomit-frame-pointer"])?;
    let program = program.to_str().unwrap();
    let words = ["explain", "-o", "run", "--costs", "none", "--", program, mode, "16"];
    let done = lab.pagelab(&words);
    done.exits(0);
    // The program names the file that it left.
    if mode == "jit" {
        fs::remove_file(done.stdout.trim()).expect("what the program wrote");
    }
    let measured = explained(&lab, "run");
    if !sees(&measured, "sees_perf") || !sees(&measured, "sees_stacks") {
        return None;
    }
    let faults = |table: &&pagelab_record::Table| {
        let cells = table.columns.iter().zip(&table.rows[0]);
        cells.filter(|(column, _)| column.unit == "faults").map(|(_, count)| *count).sum::<i64>()
    };
    let sites = measured.tables.iter().filter(|table| table.name.starts_with("site/"));
    let site = sites.max_by_key(faults).expect("a site").name.clone();
    Some((site, measured))
}

#[test]
fn a_fault_in_a_library_has_the_caller_of_the_library() {
    let Some((site, _)) = heaviest_site("fill") else { return };
    // The library may name its function or not: then the caller has its file.
    let callers = site.split_once(" < ").map_or("", |(_, callers)| callers);
    assert!(
        callers.starts_with("fill (callers) < main") || callers.starts_with("fill < main"),
        "{site}"
    );
}

#[test]
fn callers_are_found_without_frame_pointers() {
    let Some((site, measured)) = heaviest_site("nest") else { return };
    assert!(site.starts_with("site/store (callers) < inner < outer < main"), "{site}");
    let note = measured.warnings.iter().any(|warning| warning.contains("unwind tables"));
    assert!(!note, "{:?}", measured.warnings);
}

#[test]
fn code_that_a_program_made_has_the_name_that_it_wrote_down() {
    let Some((site, _)) = heaviest_site("jit") else { return };
    assert!(site.starts_with("site/py::made:/a/b.py (JIT) < made < main"), "{site}");
}
