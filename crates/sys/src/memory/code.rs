//! This program's own code, present before anything is measured.
//!
//! The one idea: code is mapped by faults, sixteen pages around each, so whether a loop's first run
//! takes one hangs on where the linker put it. A loop that a warm-up does not run, such as that of
//! a control, would fault while faults are counted.

use std::fs;

use super::{account, area::populate};
use crate::{Called, SysError};

/// Maps every page of this program's files, and of its libraries', that it may not write to.
///
/// Kernels before 5.14 have no such advice: there code is present as far as it has run.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn make_code_present() -> Result<(), SysError> {
    let path = "/proc/self/maps";
    let text = fs::read_to_string(path).called("read", path)?;
    for (start, end) in text.lines().filter_map(of_a_program) {
        // What cannot be had now is had by a fault, as without this.
        let _ = populate(start, end - start, false);
    }
    Ok(())
}

/// Bounds of a line's mapping, where that is of a file, private, and for reading or running.
fn of_a_program(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let bounds = account::bounds(words.next()?)?;
    let rights = words.next()?;
    (matches!(rights, "r-xp" | "r--p") && words.nth(3)?.starts_with('/')).then_some(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_program_reads_and_runs_is_mapped() {
        let code = "1000-3000 r-xp 00000000 fe:00 12 /usr/bin/pagelab";
        assert_eq!(of_a_program(code), Some((0x1000, 0x3000)));
        for other in [
            "1000-3000 rw-p 00000000 fe:00 12 /usr/bin/pagelab",
            "1000-3000 r-xp 00000000 00:00 0 [vdso]",
            "1000-3000 r--p 00000000 00:00 0",
            "1000-3000 r--s 00000000 fe:00 12 /a/file",
        ] {
            assert_eq!(of_a_program(other), None, "{other}");
        }
    }

    #[test]
    fn this_programs_code_can_be_made_present() {
        make_code_present().unwrap();
    }
}
