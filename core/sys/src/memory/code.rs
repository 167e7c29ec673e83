//! This program's own code, present before anything is measured.
//!
//! The one idea: code is mapped by faults, sixteen pages around each, so whether a loop's first run
//! takes one hangs on where the linker put it. A loop that a warm-up does not run, such as that of
//! a control, would fault while faults are counted.

use super::area::populate;
use crate::{
    Called, SysError,
    machine::proc::{self, Mapping, mappings},
};

/// Maps every page of this program's files, and of its libraries', that it may not write to.
///
/// Kernels before 5.14 have no such advice: there code is present as far as it has run.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn make_code_present() -> Result<(), SysError> {
    let text = proc::text("self", "maps").called("read", "/proc/self/maps")?;
    for range in mappings(&text).filter(is_of_a_program).map(|mapping| mapping.addresses()) {
        // What cannot be had now is had by a fault, as without this.
        let _ = populate(range.start, range.len(), false);
    }
    Ok(())
}

/// Whether a mapping is of a file, private, and for reading or running.
fn is_of_a_program(mapping: &Mapping<'_>) -> bool {
    matches!(mapping.rights, "r-xp" | "r--p") && mapping.name.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_program_reads_and_runs_is_mapped() {
        let is_it = |line| is_of_a_program(&Mapping::of_line(line).unwrap());
        assert!(is_it("1000-3000 r-xp 00000000 fe:00 12 /usr/bin/pagelab"));
        for other in [
            "1000-3000 rw-p 00000000 fe:00 12 /usr/bin/pagelab",
            "1000-3000 r-xp 00000000 00:00 0 [vdso]",
            "1000-3000 r--p 00000000 00:00 0",
            "1000-3000 r--s 00000000 fe:00 12 /a/file",
        ] {
            assert!(!is_it(other), "{other}");
        }
    }

    #[test]
    fn this_programs_code_can_be_made_present() {
        make_code_present().unwrap();
    }
}
