//! `cargo xtask fuzz`: whatever reads a file, fed with what no program would write.
//!
//! The targets lie in `fuzz/`, a workspace of its own, because they need a nightly compiler and a
//! sanitizer. Each describes its seeds in code and writes them into its corpus, which grows from
//! run to run and is not committed. Every target runs, also when one before it failed; the last
//! lines say how often each was executed and what it found.

mod tally;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::{Parser, builder::PossibleValuesParser, value_parser};

use self::tally::{Tally, table};
use crate::{
    nightly,
    shell::{line, program, run},
};

/// Every target, and what it must not do.
const TARGETS: &[Target] = &[
    // A file of ours, whole, is a seed.
    Target { name: "claims", memory_mib: 1024, bytes_max: 16 << 10 },
    Target { name: "decode", memory_mib: 512, bytes_max: 128 },
    // One window of 128 MiB is allowed at once, and the sanitizer keeps what was freed for a while.
    Target { name: "file", memory_mib: 1024, bytes_max: 1024 },
    Target { name: "image", memory_mib: 512, bytes_max: 512 },
    Target { name: "journal", memory_mib: 1024, bytes_max: 1024 },
    Target { name: "path", memory_mib: 1024, bytes_max: 2048 },
    Target { name: "perfmap", memory_mib: 512, bytes_max: 512 },
    Target { name: "preset", memory_mib: 1024, bytes_max: 4096 },
    Target { name: "report", memory_mib: 1024, bytes_max: 256 },
    Target { name: "ring", memory_mib: 512, bytes_max: 512 },
    Target { name: "stats", memory_mib: 1024, bytes_max: 256 },
    Target { name: "suite", memory_mib: 1024, bytes_max: 2048 },
    Target { name: "tasks", memory_mib: 512, bytes_max: 2048 },
    Target { name: "tierlog", memory_mib: 1024, bytes_max: 1024 },
    Target { name: "unwind", memory_mib: 512, bytes_max: 512 },
];

/// A row of the table of targets: `fuzz/fuzz_targets/<name>.rs`.
struct Target {
    name: &'static str,
    /// All that a run may take, the sanitizer's share included; a quarter at once.
    memory_mib: u32,
    /// The longest input: as short as it may be to reach everything, because short ones are quick.
    bytes_max: u32,
}

/// The variable that names the folder for seeds.
const SEEDS: &str = "PAGELAB_FUZZ_SEEDS";
/// No input may take longer, on a slow machine with a sanitizer.
const INPUT_SECONDS_MAX: u32 = 10;
/// How long a target runs when nobody says how long or how often.
const SECONDS: u32 = 60;

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Run this one only
    #[arg(value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.name)))]
    target: Option<String>,
    /// How long each target runs; 60 without --runs
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// How many inputs each target takes
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// none: ten times the inputs, and no look at the memory of unsafe code
    #[arg(long, default_value = "address", value_parser = ["address", "none"])]
    sanitizer: String,
}

/// Runs the targets that were asked for.
pub(crate) fn fuzz(asked: &Arguments) -> Result<()> {
    nightly::ensure()?;
    install()?;
    lock_as_shipped()?;
    let only = asked.target.as_ref();
    let targets = TARGETS.iter().filter(|target| only.is_none_or(|only| only == target.name));
    let (mut tallies, mut failed) = (Vec::new(), Vec::new());
    for target in targets {
        let mut tally = Tally::default();
        if let Err(error) = watch(&mut command(target, asked)?, &mut tally) {
            eprintln!("[fuzz] {}: {error:#}", target.name);
            failed.push(target.name);
        }
        tallies.push((target.name, tally));
    }
    print!("\n{}", table(&tallies));
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "{} failed. The input is in fuzz/artifacts/<target>; try it again with \
         `cargo +nightly fuzz run <target> <input>`, shorten it with `cargo +nightly fuzz tmin`",
        failed.join(", ")
    );
}

/// Runs a target and counts; what it says of its progress is kept back.
fn watch(command: &mut Command, tally: &mut Tally) -> Result<()> {
    eprintln!("\n[fuzz] {}", line(command));
    let mut child = command.stderr(Stdio::piped()).spawn().context("starting cargo fuzz")?;
    let stderr = child.stderr.take().context("its stderr is a pipe")?;
    for said in BufReader::new(stderr).split(b'\n') {
        let said = said.context("reading what the fuzzer says")?;
        let said = String::from_utf8_lossy(&said);
        if !tally.reads(&said) {
            eprintln!("{said}");
        }
    }
    let status = child.wait().context("waiting for cargo fuzz")?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

fn install() -> Result<()> {
    if nightly::succeeds(&mut nightly::cargo(["fuzz", "--version"])) {
        return Ok(());
    }
    // By the Rust that everybody has; without debug information, which would double the time.
    let mut install = program("cargo", ["install", "--locked", "cargo-fuzz"]);
    run("fuzz", install.env("CARGO_PROFILE_RELEASE_DEBUG", "0"))
        .context("cure: cargo install --locked cargo-fuzz")
}

/// Gives the crates under test the dependencies that they are shipped with.
///
/// The lock file of `fuzz/` is made from ours whenever ours is newer, and not committed.
pub(crate) fn lock_as_shipped() -> Result<()> {
    let (ours, theirs) = (Path::new("Cargo.lock"), Path::new("fuzz/Cargo.lock"));
    let age = |file: &Path| fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    if age(ours) > age(theirs) {
        fs::copy(ours, theirs).context("copying Cargo.lock to fuzz/")?;
    }
    Ok(())
}

/// Builds and runs a target.
fn command(target: &Target, asked: &Arguments) -> Result<Command> {
    let here = env::current_dir().context("reading the working directory")?;
    let mut command = nightly::cargo(["fuzz", "run"]);
    command.args(["--sanitizer", &asked.sanitizer, target.name, "--"]);
    let seconds = asked.seconds.or(asked.runs.is_none().then_some(SECONDS));
    command.args(seconds.map(|seconds| format!("-max_total_time={seconds}")));
    command.args(asked.runs.map(|runs| format!("-runs={runs}")));
    command.args([
        format!("-max_len={}", target.bytes_max),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-rss_limit_mb={}", target.memory_mib),
        format!("-malloc_limit_mb={}", target.memory_mib / 4),
        "-print_final_stats=1".to_owned(),
        "-print_funcs=0".to_owned(),
    ]);
    command.env(SEEDS, here.join("fuzz/corpus").join(target.name));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz"))
    }

    #[test]
    fn the_table_names_every_target_that_there_is() {
        let table: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
        let files = fs::read_dir(folder().join("fuzz_targets")).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<_> =
            files.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned())).collect();
        assert_eq!(table, files);
        let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
        for name in table {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        }
    }

    #[test]
    fn the_targets_look_for_seeds_where_we_ask_for_them() {
        let library = fs::read_to_string(folder().join("src/lib.rs")).unwrap();
        assert!(library.contains(&format!("\"{SEEDS}\"")));
    }

    fn words(words: &[&str]) -> Result<Vec<String>, clap::Error> {
        let line = [&["fuzz"], words].concat();
        let command = command(&TARGETS[0], &Arguments::try_parse_from(line)?).unwrap();
        let seeds = command.get_envs().find(|(name, _)| *name == SEEDS).unwrap().1.unwrap();
        assert!(Path::new(seeds).ends_with(Path::new("fuzz/corpus").join(TARGETS[0].name)));
        Ok(command.get_args().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn a_target_runs_for_so_long_or_so_often_with_its_seeds() {
        let has = |words: &[String], word: &str| words.iter().any(|one| one == word);
        let plain = words(&[]).unwrap();
        assert!(has(&plain, "-max_total_time=60") && has(&plain, "address"), "{plain:?}");
        let often = words(&["decode", "--runs", "1000", "--sanitizer", "none"]).unwrap();
        assert!(has(&often, "-runs=1000") && has(&often, "none"), "{often:?}");
        assert!(!often.iter().any(|word| word.contains("max_total_time")), "{often:?}");
        let both = words(&["--runs", "9", "--seconds", "5"]).unwrap();
        assert!(has(&both, "-runs=9") && has(&both, "-max_total_time=5"), "{both:?}");
    }

    #[test]
    fn what_is_no_target_and_no_time_is_refused() {
        for mistake in [&["nothing"][..], &["--seconds", "0"], &["--runs", "0"]] {
            assert!(words(mistake).is_err(), "{mistake:?}");
        }
    }

    #[test]
    fn what_a_target_says_is_counted_also_when_it_fails() {
        let said =
            "echo '#9\tNEW cov: 12 ft: 3'; echo 'stat::number_of_executed_units: 40'; exit 1";
        let mut shell = program("sh", ["-c", &format!("({said}) >&2; exit 1")]);
        let mut tally = Tally::default();
        assert!(watch(&mut shell, &mut tally).is_err());
        assert_eq!((tally.executions, tally.coverage), (40, 12));
    }
}
