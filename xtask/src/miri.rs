//! `cargo xtask miri`: the rooms of unsafe code that an interpreter can enter.
//!
//! Miri runs a test some thousand times slower, and sees every read out of bounds, every use of a
//! pointer that it was not made for, and every leak. So it gets few cases of few tests, chosen to
//! go through each unsafe block. It knows no system calls: what maps memory or runs another program
//! is not for it, which leaves `core/sys` and `capture` out.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{
    nightly,
    shell::{run, timed},
};

/// Tests that are run together.
struct Part {
    name: &'static str,
    /// For `cargo miri test`.
    tests: &'static [&'static str],
    /// Beginnings of the names of tests that take minutes there and enter no room of their own.
    skipped: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        name: "decode",
        tests: &["--package", "pagelab-trace", "--test", "decode"],
        skipped: &["every_first_pair_of_bytes"],
    },
    Part { name: "rooms", tests: &["--package", "pagelab-emu", "--lib", "raw::"], skipped: &[] },
    Part {
        name: "memory",
        tests: &["--package", "pagelab-emu", "--test", "memory"],
        skipped: &["replay::every_memory"],
    },
];

/// For properties that do not say themselves how many cases Miri can bear. With this seed, few
/// cases reach every unsafe block, and always the same ones. After a change to the tests, look for
/// another with `PROPTEST_RNG_SEED` and a coverage report of the same tests without Miri.
const CASES: &[(&str, &str)] = &[("PROPTEST_CASES", "3"), ("PROPTEST_RNG_SEED", "10")];

/// Pointers from integers are refused. The rest is for the tests: files, and variables like
/// `PROPTEST_CASES`.
const FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-disable-isolation";

/// Runs every part, also when one before it failed.
pub(crate) fn miri() -> Result<()> {
    nightly::ensure_components(&["miri", "rust-src"])?;
    let failure = |part: &Part| run(part.name, &mut command(part)).err().map(|_| part.name);
    let (failed, took) = timed(|| PARTS.iter().filter_map(failure).collect::<Vec<_>>());
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    eprintln!("\nmiri: {} parts passed in {:.0} s", PARTS.len(), took.as_secs_f64());
    Ok(())
}

fn command(part: &Part) -> Command {
    let mut command = nightly::cargo(["miri", "test"]);
    command.args(part.tests).env("MIRIFLAGS", FLAGS).envs(CASES.iter().copied());
    command.arg("--").args(part.skipped.iter().flat_map(|test| ["--skip", test]));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_is_told_to_the_test_and_not_to_cargo() {
        for part in PARTS {
            let command = command(part);
            let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
            let (cargo, test) = words.split_at(words.iter().position(|word| word == "--").unwrap());
            assert!(part.tests.iter().all(|word| cargo.contains(&(*word).into())), "{words:?}");
            assert_eq!(test.len(), 1 + 2 * part.skipped.len(), "{words:?}");
        }
    }
}
