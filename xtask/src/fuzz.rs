//! `cargo xtask fuzz`: whatever reads a file, fed with what no program would write.
//!
//! The targets lie in `fuzz/`, a workspace of its own, because they need a nightly compiler and a
//! sanitizer. Each describes its seeds in code and writes them into its corpus, which grows from
//! run to run and is not committed. Every target runs, also when one before it failed.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, value_parser};

use crate::{
    nightly,
    shell::{program, run},
};

/// Every target, and what it must not do.
const TARGETS: &[Target] = &[
    Target { name: "decode", memory_mib: 512 },
    // One window of 128 MiB is allowed at once, and the sanitizer keeps what was freed for a while.
    Target { name: "file", memory_mib: 1024 },
    Target { name: "image", memory_mib: 512 },
    Target { name: "journal", memory_mib: 1024 },
    Target { name: "stats", memory_mib: 1024 },
];

/// A row of the table of targets: `fuzz/fuzz_targets/<name>.rs`.
struct Target {
    name: &'static str,
    /// All that a run may take, the sanitizer's share included; a quarter at once.
    memory_mib: u32,
}

/// The variable that names the folder for seeds.
const SEEDS: &str = "PAGELAB_FUZZ_SEEDS";
/// No input may take longer, on a slow machine with a sanitizer.
const INPUT_SECONDS_MAX: u32 = 10;

/// What the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    command
        .arg(
            Arg::new("target")
                .value_parser(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>())
                .help("Run this one only"),
        )
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("60")
                .help("How long each target runs"),
        )
}

/// Runs the targets that were asked for.
pub(crate) fn fuzz(matches: &ArgMatches) -> Result<()> {
    let only = matches.get_one::<String>("target");
    let seconds = *matches.get_one::<u32>("seconds").context("--seconds has a default")?;
    nightly::ensure()?;
    install()?;
    lock_as_shipped()?;
    let asked = |target: &&Target| only.is_none_or(|only| only == target.name);
    let failed: Vec<_> = TARGETS
        .iter()
        .filter(asked)
        .filter(|target| {
            let done = command(target, seconds).and_then(|mut command| run("fuzz", &mut command));
            done.inspect_err(|error| eprintln!("[fuzz] {}: {error:#}", target.name)).is_err()
        })
        .map(|target| target.name)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "{} failed. The input is in fuzz/artifacts/<target>; try it again with \
         `cargo +nightly fuzz run <target> <input>`, shorten it with `cargo +nightly fuzz tmin`",
        failed.join(", ")
    );
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
fn command(target: &Target, seconds: u32) -> Result<Command> {
    let here = env::current_dir().context("reading the working directory")?;
    let mut command = nightly::cargo(["fuzz", "run", target.name, "--"]);
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-rss_limit_mb={}", target.memory_mib),
        format!("-malloc_limit_mb={}", target.memory_mib / 4),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
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

    #[test]
    fn a_target_runs_for_so_long_with_its_seeds() {
        let command = command(&TARGETS[0], 7).unwrap();
        let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert!(arguments.contains(&"-max_total_time=7".into()), "{arguments:?}");
        let seeds = command.get_envs().find(|(name, _)| *name == SEEDS).unwrap().1.unwrap();
        assert!(Path::new(seeds).ends_with("fuzz/corpus/decode"));
    }

    #[test]
    fn the_command_line_takes_a_target_and_a_time() {
        let parse = |words: &[&str]| {
            let line = [&["fuzz"], words].concat();
            arguments(clap::Command::new("fuzz")).try_get_matches_from(line)
        };
        assert_eq!(parse(&[]).unwrap().get_one("seconds"), Some(&60_u32));
        let matches = parse(&["decode", "--seconds", "5"]).unwrap();
        assert_eq!(matches.get_one("target"), Some(&"decode".to_owned()));
        assert!(parse(&["nothing"]).is_err());
        assert!(parse(&["--seconds", "0"]).is_err());
    }
}
