//! `cargo xtask mutants`: small mistakes in the code that must not fail, each for a test to notice.
//!
//! `cargo-mutants` makes them, one at a time, in a copy of the repository. What is left out, and
//! why, is data: `.cargo/mutants.toml`.
//!
//! The one idea: code that changes the machine is run with mistakes in it. So each program of tests
//! runs in a room of its own ([`room`]), where it cannot reach a setting of the machine, and what
//! it leaves is cleared away.

mod room;

use std::{env, ffi::OsString, fs, path::Path, process::Command, sync::LazyLock};

use anyhow::{Context, Result, bail};
use clap::{Parser, builder::PossibleValuesParser};
use serde::Deserialize;

use crate::shell::{line, program, run};

/// A row of `parts.toml`: a part of the code, and the tests that have to notice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    package: String,
    files: Vec<String>,
    /// Only mistakes whose description has this in it; a regular expression.
    only: Option<String>,
    /// For `cargo test`: what else is there takes long and notices nothing of it.
    tests: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    part: Vec<Part>,
}

static PARTS: LazyLock<Vec<Part>> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("../mutants/parts.toml")).expect("a test reads it").part
});

/// Less than this share of the mistakes noticed is an error.
const NOTICED_LEAST: f64 = 0.9;
/// Seconds after which tests with a mistake in the code hang.
const HANG_SECONDS: u32 = 60;
/// What comes of a part is kept here.
const OUTPUT: &str = "target/mutants";

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Look at this one only
    #[arg(value_parser = PossibleValuesParser::new(PARTS.iter().map(|part| part.name.as_str())))]
    part: Option<String>,
    /// Only mistakes in these of its files
    #[arg(long, value_name = "GLOB")]
    file: Option<String>,
    /// How a program of tests is started
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    room: Vec<OsString>,
}

/// Runs the parts that were asked for.
pub(crate) fn mutants(asked: &Arguments) -> Result<()> {
    if !asked.room.is_empty() {
        return room::run(&asked.room);
    }
    install()?;
    let only = asked.part.as_ref();
    let parts = PARTS.iter().filter(|part| only.is_none_or(|only| *only == part.name));
    let mut came = Vec::new();
    for part in parts {
        let output = Path::new(OUTPUT).join(&part.name);
        fs::create_dir_all(&output).with_context(|| format!("making {}", output.display()))?;
        let mut command = command(part, asked.file.as_deref(), &output)?;
        eprintln!("\n[mutants] {}", line(&command));
        let status = command.status().context("starting cargo mutants")?;
        // 2: some were missed, 3: with some, the tests hung.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo mutants failed on {} ({status})", part.name);
        }
        came.push((part.name.as_str(), Came::read(&output)?));
    }
    print!("\n{}", table(&came));
    let few: Vec<_> = came.iter().filter(|(_, came)| came.share() < NOTICED_LEAST).collect();
    if few.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = few.iter().map(|(name, _)| *name).collect();
    bail!(
        "of {} fewer than {:.0} % were noticed: write the tests, or say in .cargo/mutants.toml why \
         there can be none; the list is {OUTPUT}/<part>/mutants.out/missed.txt",
        names.join(", "),
        NOTICED_LEAST * 100.0
    );
}

fn install() -> Result<()> {
    if program("cargo", ["mutants", "--version"]).output().is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    let mut install = program("cargo", ["install", "--locked", "cargo-mutants"]);
    run("mutants", install.env("CARGO_PROFILE_RELEASE_DEBUG", "0"))
        .context("cure: cargo install --locked cargo-mutants")
}

fn command(part: &Part, file: Option<&str>, output: &Path) -> Result<Command> {
    let xtask = env::current_exe().context("finding our own program")?;
    let here = env::current_dir().context("reading the working directory")?;
    let mut command = program("cargo", ["mutants", "--workspace", "--test-package", &part.package]);
    let files =
        file.map_or_else(|| part.files.iter().map(String::as_str).collect(), |file| vec![file]);
    command.args(files.iter().flat_map(|file| ["--file", file]));
    command.args(part.only.iter().flat_map(|only| ["--re", only]));
    // Whoever sits at the machine comes first: one at a time.
    command.args(["--jobs", "1", "--timeout", &HANG_SECONDS.to_string(), "--output"]);
    command.arg(output).arg("--").args(&part.tests);
    // It is built hundreds of times.
    command.env("CARGO_INCREMENTAL", "1");
    let room = here.join(output).join("room");
    let runner = format!("{} mutants --room {}", xtask.display(), room.display());
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let name = format!("CARGO_TARGET_{}_RUNNER", target.to_uppercase().replace('-', "_"));
    command.env(name, runner);
    Ok(command)
}

/// What came of the mistakes in a part: `outcomes.json` of cargo-mutants.
#[derive(Debug, Default, Deserialize)]
struct Came {
    caught: u32,
    missed: u32,
    timeout: u32,
    unviable: u32,
}

impl Came {
    fn read(output: &Path) -> Result<Self> {
        let file = output.join("mutants.out/outcomes.json");
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
    }

    /// The share that was noticed, of those that compile; tests that hang are noticed too.
    fn share(&self) -> f64 {
        let noticed = f64::from(self.caught + self.timeout);
        noticed / (noticed + f64::from(self.missed)).max(1.0)
    }
}

/// A line for each part.
fn table(came: &[(&str, Came)]) -> String {
    let head = "part        caught   hung  missed  unviable  noticed\n".to_owned();
    let row = |(name, came): &(&str, Came)| {
        let Came { caught, missed, timeout, unviable } = came;
        let share = came.share() * 100.0;
        format!("{name:<10} {caught:>7} {timeout:>6} {missed:>7} {unviable:>9} {share:>6.1} %\n")
    };
    head + &came.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(text: &str) -> Came {
        serde_json::from_str(text).unwrap()
    }

    const OUTCOMES: &str = r#"{"outcomes":[],"total_mutants":12,"missed":1,"caught":8,"timeout":1,
        "unviable":2,"success":0,"cargo_mutants_version":"27.1.0"}"#;

    #[test]
    fn tests_that_hang_have_noticed_and_what_does_not_compile_does_not_count() {
        assert!((came(OUTCOMES).share() - 0.9).abs() < 1e-9);
        let text = table(&[("journal", came(OUTCOMES))]);
        assert!(text.ends_with("journal          8      1       1         2   90.0 %\n"), "{text}");
    }

    #[test]
    fn every_part_has_files_and_its_package_has_them() {
        for part in PARTS.iter() {
            let folder = part.package.strip_prefix("pagelab-").unwrap();
            for file in &part.files {
                assert!(file.starts_with(&format!("core/{folder}/src/")), "{file}");
            }
            let first = part.files[0].trim_end_matches("/**/*.rs");
            assert!(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(first).exists());
        }
    }

    #[test]
    fn mistakes_are_made_in_the_files_of_the_part_and_its_tests_run_in_a_room() {
        let command = command(&PARTS[0], None, Path::new("out")).unwrap();
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert!(words.windows(2).any(|pair| pair == ["--file", "core/bench/src/meter/mod.rs"]));
        assert!(words.ends_with(&["--lib", "--", "meter::", "partial::"].map(Into::into)));
        let runner =
            command.get_envs().find(|(name, _)| name.to_string_lossy().ends_with("RUNNER"));
        let runner = runner.unwrap().1.unwrap().to_string_lossy();
        assert!(runner.contains(" mutants --room /") && runner.ends_with("out/room"), "{runner}");
    }

    #[test]
    fn a_room_gets_every_word_of_its_program() {
        let line = ["mutants", "--room", "/a/room", "/a/test", "--exact", "-q", "--", "name"];
        assert_eq!(Arguments::try_parse_from(line).unwrap().room.len(), 6);
    }
}
