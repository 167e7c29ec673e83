//! `cargo xtask layouts`: how much of a ratio is the layout of the code.
//!
//! Where a tight loop happens to be placed moves it by 15 %. So the program is built several times
//! with the same code in other places, runs the same arguments in each build, and what counts is
//! the median over the builds; their spread says how close two backends may be before they are a
//! tie.
//!
//! It is not a benchmark: each build measures as `pagelab` always does.

mod ratios;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, value_parser};

use crate::shell::{self, cargo, find, output, program, run};

/// How many there are.
const BUILDS_MAX: u16 = 6;
/// Flags of the compiler that move code and change no instruction: where blocks start that are
/// only jumped to, and where functions start, in powers of two.
const LAYOUTS: [&[&str]; BUILDS_MAX as usize] = [
    &[],
    &["-Cllvm-args=-align-all-nofallthru-blocks=5"],
    &["-Cllvm-args=-align-all-functions=6"],
    &["-Cllvm-args=-align-all-nofallthru-blocks=4", "-Cllvm-args=-align-all-functions=5"],
    &["-Cllvm-args=-align-all-nofallthru-blocks=6"],
    &["-Cllvm-args=-align-all-nofallthru-blocks=5", "-Cllvm-args=-align-all-functions=6"],
];

/// What a processor fetches and predicts at once: two places that are this far apart are alike.
const PLACE_BYTES: u64 = 64;

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// How many layouts to build; each takes minutes when it is new
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = value_parser!(u16).range(1..=i64::from(BUILDS_MAX)))]
    builds: u16,
    /// Build for this processor: generic, native, x86-64-v3, …
    #[arg(long, value_name = "CPU", default_value = "generic")]
    target_cpu: String,
    /// For `pagelab`, such as trace replay FILE --backend all --format json
    #[arg(last = true, required = true)]
    args: Vec<OsString>,
}

/// Builds every layout, runs the arguments in each, and prints the ratios.
pub(crate) fn layouts(asked: &Arguments) -> Result<()> {
    let cpu = &asked.target_cpu;
    let layouts = &LAYOUTS[..usize::from(asked.builds)];
    let mut binaries = Vec::new();
    for (number, flags) in (1..).zip(layouts) {
        let folder = folder(number, cpu);
        run("layouts", &mut build(&folder, flags, cpu))?;
        binaries.push(folder.join("release/pagelab"));
    }
    say_places(&binaries)?;

    let mut results = Vec::new();
    for binary in &binaries {
        let text = measure(binary, &asked.args)?;
        let kept = binary.with_file_name("layouts.json");
        fs::write(&kept, &text).with_context(|| format!("writing {}", kept.display()))?;
        results.push(ratios::read(&text).with_context(|| {
            format!("what it printed is in {}; does it print JSON?", kept.display())
        })?);
    }
    print!("{}", ratios::table(&results, cpu)?);
    Ok(())
}

/// Each processor's builds are kept apart, so that going back to one costs nothing.
fn folder(number: u32, cpu: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let cpu: String = cpu.chars().map(plain).collect();
    PathBuf::from(format!("target/layout-{number}-{cpu}"))
}

fn build(folder: &Path, flags: &[&str], cpu: &str) -> Command {
    let mut flags = flags.to_vec();
    let cpu = format!("-Ctarget-cpu={cpu}");
    if cpu != "-Ctarget-cpu=generic" {
        flags.push(&cpu);
    }
    let mut command = cargo("build");
    command.args(["--profile", "release", "--package", "pagelab", "--target-dir"]).arg(folder);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    command
}

/// Runs a build; what it prints on stdout.
fn measure(binary: &Path, args: &[OsString]) -> Result<String> {
    let mut command = program(&binary.to_string_lossy(), args);
    eprintln!("\n[layouts] {}", shell::line(&command));
    let done = command.stderr(Stdio::inherit()).output();
    let done = done.with_context(|| format!("starting {}", binary.display()))?;
    ensure!(done.status.success(), "{} failed ({})", binary.display(), done.status);
    String::from_utf8(done.stdout).context("reading what it printed")
}

/// Says where the loops of replays are in each build, and refuses builds that are alike.
fn say_places(binaries: &[PathBuf]) -> Result<()> {
    if find("nm").is_none() {
        shell::warn("nm is missing, so nobody looks whether the layouts differ.\nCure: binutils");
        return Ok(());
    }
    let mut seen = BTreeSet::new();
    for binary in binaries {
        let symbols = output(&mut program("nm", [binary]))?;
        let places = places(&symbols);
        eprintln!("[layouts] {}: {}", binary.display(), described(&places));
        if !seen.insert(places) {
            bail!("{} has its loops where another build has them", binary.display());
        }
    }
    Ok(())
}

/// How many loops start at which place.
fn described(places: &[u64]) -> String {
    let mut counts = BTreeMap::<u64, usize>::new();
    for place in places {
        *counts.entry(place % PLACE_BYTES).or_default() += 1;
    }
    let counts: Vec<_> =
        counts.iter().map(|(place, count)| format!("{count} at {place}")).collect();
    format!("of the functions with the loops, modulo {PLACE_BYTES}: {}", counts.join(", "))
}

/// Addresses of the functions that hold the loops, from what `nm` prints.
fn places(symbols: &str) -> Vec<u64> {
    let is_loop = |name: &str| {
        // Before v0 of the mangling, and since.
        let method = name.contains("Replay$GT$6replay") || name.contains("6Replay6replay");
        method && name.contains("Player")
    };
    let symbols = symbols.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        (kind.eq_ignore_ascii_case("t") && is_loop(name)).then_some(address)
    });
    let mut places: Vec<_> =
        symbols.filter_map(|address| u64::from_str_radix(address, 16).ok()).collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_are_found_whatever_the_mangling() {
        let symbols = [
            "3bb10 t _ZN84_$LT$e..Player$LT$M$GT$$u20$as$u20$e..Replay$GT$6replay17hE",
            "3bb00 t _RNvXs_NtCs1_3emu6replayINtB4_6PlayerNt3tlbENtB4_6Replay6replay",
            "3bc00 t _RNvXs_NtCs1_3emu6replayINtB4_6PlayerNt3tlbENtB4_6Replay6verify",
            "426aa t _ZN4core3ptr84drop_in_place$LT$e..replay..Player$LT$e..flat..Flat$GT$E",
            "U memcpy",
        ];
        let places = places(&symbols.join("\n"));
        assert_eq!(places, [0x3bb00, 0x3bb10]);
        assert!(described(&places).ends_with("modulo 64: 1 at 0, 1 at 16"));
    }

    #[test]
    fn every_layout_is_built_apart_and_for_the_processor_asked_for() {
        let flags = |command: &Command| {
            let is_flags = |name: &std::ffi::OsStr| name == "CARGO_ENCODED_RUSTFLAGS";
            let (_, value) = command.get_envs().find(|(name, _)| is_flags(name)).unwrap();
            value.unwrap().to_str().unwrap().to_owned()
        };
        let plain = build(&folder(1, "generic"), LAYOUTS[0], "generic");
        assert_eq!(flags(&plain), "");
        let native = build(&folder(4, "native"), LAYOUTS[3], "native");
        assert_eq!(flags(&native).split('\x1f').count(), 3);
        assert!(flags(&native).ends_with("-Ctarget-cpu=native"));
        let all: BTreeSet<_> = (1..=3).map(|number| folder(number, "x86-64-v3")).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(folder(1, "../x"), Path::new("target/layout-1-.._x"));
    }

    #[test]
    fn no_two_layouts_are_the_same() {
        assert_eq!(LAYOUTS.iter().collect::<BTreeSet<_>>().len(), LAYOUTS.len());
    }

    #[test]
    fn what_follows_two_dashes_is_for_pagelab() {
        let parse = |words: &[&str]| Arguments::try_parse_from([&["layouts"], words].concat());
        let asked = parse(&["--builds", "2", "--", "trace", "replay", "--seed", "1"]).unwrap();
        assert_eq!((asked.builds, asked.args.len(), &*asked.args[2]), (2, 4, "--seed".as_ref()));
        assert!(parse(&[]).is_err());
        assert!(parse(&["--builds", "99", "--", "trace"]).is_err());
    }
}
