//! Programs of public bug reports on which a kind of fault was told wrong.

use pagelab_record::Measured;

use super::{compiled, count, explained, row, sees};
use crate::support::{Lab, skip};

/// Faults of a group; 0 where there is none.
fn faults(measured: &Measured, group: &str) -> i64 {
    let name = format!("fault/{group}");
    let is_there = measured.tables.iter().any(|table| table.name == name);
    if is_there { row(measured, &name, "faults") } else { 0 }
}

/// Explains a program, again where the host was too busy to see every fault.
fn case(name: &str, wrong: impl Fn(&Measured) -> Option<String>) -> Option<Measured> {
    let lab = Lab::new();
    let program = compiled(&lab, "cases")?;
    let words = ["explain", "-o", name, "--costs", "none", "--", program.to_str().unwrap(), name];
    count(&lab, name, &words, wrong)
}

/// A handful of pages of the loader and of libc.
const OTHERS: i64 = 64;

#[test]
fn memory_that_was_moved_is_written_once() {
    case("moved", |measured| {
        let written = faults(measured, "write/4k/anonymous");
        let again = faults(measured, "zero-write/4k/anonymous");
        let unknown = faults(measured, "unknown/4k/anonymous");
        let is_right = (512..512 + OTHERS).contains(&written) && again < 8 && unknown == 0;
        (!is_right).then(|| format!("{written} written, {again} again, {unknown} unknown"))
    });
}

#[test]
fn a_reservation_is_nothing_to_populate() {
    let Some(measured) = case("sparse", |measured| {
        let written = faults(measured, "write/4k/anonymous");
        (!(512..512 + OTHERS).contains(&written)).then(|| format!("{written} written"))
    }) else {
        return;
    };
    assert!(row(&measured, "populate", "faults") < OTHERS);
}

#[test]
fn memory_that_is_given_back_is_told_by_who_gives_it_back() {
    let Some(measured) = case("again", |measured| {
        let again = row(measured, "density/anonymous", "again");
        (again != 512).then(|| format!("{again} came again"))
    }) else {
        return;
    };
    let releases = measured.tables.iter().filter(|table| table.name.starts_with("release/"));
    let most = releases.max_by_key(|table| table.rows[0][1]).unwrap();
    assert_eq!(most.rows, [[3, 768]], "calls and pages of {}", most.name);
    assert!(most.name.starts_with("release/MADV_DONTNEED by "), "{}", most.name);
}

#[test]
fn a_stack_that_grows_is_the_stack() {
    case("stack", |measured| {
        let written = faults(measured, "write/4k/stack") + 512 * faults(measured, "write/2m/stack");
        (!(1024..1024 + OTHERS).contains(&written)).then(|| format!("{written} written"))
    });
}

#[test]
fn an_empty_pool_is_named_as_what_ended_the_program() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "cases") else { return };
    let words =
        ["explain", "-o", "run", "--costs", "none", "--", program.to_str().unwrap(), "pool"];
    let done = lab.pagelab(&words);
    let measured = explained(&lab, "run");
    if measured.counters.get("exit_signal") != Some(&7) || !sees(&measured, "sees_exceptions") {
        return skip("no pool of 2 MiB, or it has pages", "sysctl vm.nr_hugepages=0, as root");
    }
    done.exits(0).complains(&["SIGBUS ended it", "memory of the hugetlb pool when"]);
}
