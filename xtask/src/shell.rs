//! Commands of other programs: shown before they run, timed, and an error when they fail.
//!
//! The one idea: a task reads as the list of its commands, and its output can be pasted back into
//! a terminal.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Makes the repository's root the working directory, wherever `cargo xtask` was called.
pub(crate) fn enter_root() -> Result<()> {
    // What cargo says now: a program from a copied `target` was compiled somewhere else.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&manifest).parent().context("xtask/ has a parent")?;
    env::set_current_dir(root).with_context(|| format!("entering {}", root.display()))
}

/// Whether nobody is watching: then versions are pinned by the lock file and tools are installed.
pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// A cargo command; in CI it must not change the lock file.
pub(crate) fn cargo(subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand);
    if in_ci() {
        command.arg("--locked");
    }
    command
}

/// Any other command.
pub(crate) fn program<I: IntoIterator<Item: AsRef<OsStr>>>(name: &str, args: I) -> Command {
    let mut command = Command::new(name);
    command.args(args);
    command
}

/// A git command. Git refuses a folder of another user, whose settings it would follow; whoever
/// runs this follows its sources already.
pub(crate) fn git<I: IntoIterator<Item: AsRef<OsStr>>>(args: I) -> Command {
    let mut command = program("git", ["-c", "safe.directory=*"]);
    command.args(args);
    command
}

/// Runs a command with our terminal and says how long it took.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    eprintln!("\n[{name}] {}", line(command));
    let (status, took) = timed(|| command.status());
    let status = status.with_context(|| format!("starting {}", line(command)))?;
    if !status.success() {
        bail!("{name} failed after {:.1} s ({status})", took.as_secs_f64());
    }
    eprintln!("[{name}] {:.1} s", took.as_secs_f64());
    Ok(())
}

/// What a command prints on stdout; its stderr is ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading `{}`", line(command)))
}

/// Where a program is, by `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Runs `body` and says how long it took.
#[expect(clippy::disallowed_methods, reason = "times our own commands; no result depends on it")]
pub(crate) fn timed<T>(body: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let value = body();
    (value, begin.elapsed())
}

/// Says something that must not be overlooked.
pub(crate) fn warn(text: &str) {
    eprintln!("\n*** {} ***", text.replace('\n', "\n*** "));
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let settings = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    let words = [program].into_iter().chain(command.get_args());
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    settings.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = program("/usr/bin/env", ["a b", "it's", "", "--ok=1"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line(&command), r"RUSTDOCFLAGS='-D warnings' env 'a b' 'it'\''s' '' --ok=1");
    }

    #[test]
    fn a_command_that_fails_is_an_error_that_names_it() {
        let error = run("nothing", &mut program("false", [""; 0])).unwrap_err();
        assert!(error.to_string().starts_with("nothing failed after"), "{error}");
        assert!(run("nothing", &mut program("no-such-program", [""; 0])).is_err());
    }

    #[test]
    fn a_program_is_found_by_path() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
