//! `cargo xtask python`: the wheel, built and used in environments that have what they need and no
//! more.
//!
//! The one idea: three environments below `target/python`. One builds; one has the wheel alone, so
//! that nothing is needed in silence; one has what the tests take it with (pandas, polars,
//! Dask, a notebook).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::{
    shell::{program, run},
    workspace,
};

/// Where everything is made.
const FOLDER: &str = "target/python";
/// What builds wheels.
const MATURIN: &str = "maturin>=1.9,<2";
/// Bytes of a wheel at most.
const BYTES_MAX: u64 = 10_000_000;
/// A run for the environment that has nothing to make one with.
const RECORDS: &str = "records/pages.jsonl.xz";

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Leave an optimised wheel in target/python/wheels and test nothing
    #[arg(long)]
    only_build: bool,
}

/// Builds the wheel, then uses it alone, then with everything that it is tested with.
///
/// What the tests take comes over the network while the wheel is compiled, and sources are checked
/// while tests wait for what they killed: two processors have something to do throughout.
pub(crate) fn python(asked: &Arguments) -> Result<()> {
    if asked.only_build {
        return build(&["--release", "--target-dir", FOLDER]).map(drop);
    }
    let (wheel, environments) = thread::scope(|scope| {
        let environments = scope.spawn(environments);
        // Not optimised, in our target folder: most of it is compiled already.
        let wheel = build(&["--target-dir", "target"]).and_then(|wheel| {
            // As the tests are built: other features would compile everything once more.
            run("python", workspace::build().arg("--quiet"))?;
            Ok(wheel)
        });
        (wheel, joined(environments))
    });
    let (wheel, (alone, tests)) = (wheel?, environments?);
    run("python", alone.pip(["--no-index"]).arg(&wheel))?;
    let journal = Path::new(FOLDER).join("journal.jsonl");
    let unpack = "import lzma, sys; open(sys.argv[2], 'wb').write(lzma.open(sys.argv[1]).read())";
    run("python", alone.python(["-c", unpack, RECORDS]).arg(&journal))?;
    run("python", alone.python(["python/tests/bare.py"]).arg(&journal))?;
    // The same version may be another wheel.
    run("python", tests.pip(["--force-reinstall", "--no-deps"]).arg(&wheel))?;
    thread::scope(|scope| {
        let checked = scope.spawn(|| check(&tests));
        let mut pytest = tests.python(["-m", "pytest", "--quiet", "--durations=5", "-p"]);
        pytest.args(["no:cacheprovider", "-c", "python/pyproject.toml", "python/tests"]);
        // Who kills and waits leaves a processor idle; what a file shares is made once.
        pytest.args(["--numprocesses=2", "--dist=loadfile"]);
        let binary = std::path::absolute("target/debug/pagelab")?;
        let tested = run("python", pytest.env("PAGELAB", binary).env_remove("MPLBACKEND"));
        joined(checked).and(tested)
    })
}

/// What a thread came to.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The environments that the wheel comes into: an empty one, and one that has all that it is tested
/// with but the wheel.
fn environments() -> Result<(Environment, Environment)> {
    let (alone, tests) = (Environment::fresh("alone")?, Environment::known("tests")?);
    let text = fs::read_to_string("python/pyproject.toml").context("reading pyproject.toml")?;
    run("python", tests.pip([]).args(test_packages(&text)?))?;
    Ok((alone, tests))
}

/// The packages that the tests need, as the project names them.
fn test_packages(project: &str) -> Result<Vec<String>> {
    let project: toml::Table = project.parse().context("python/pyproject.toml")?;
    let groups = project.get("project").and_then(|project| project.get("optional-dependencies"));
    let named = groups.and_then(|groups| groups.get("test")?.as_array());
    let named = named.context("python/pyproject.toml names no packages for `test`")?;
    Ok(named.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

/// Checks sources: that what is declared is what is there, of our own and of what is compiled.
fn check(tests: &Environment) -> Result<()> {
    for words in [&["check"][..], &["format", "--check"]] {
        // Scripts have no pyproject.toml above them.
        let scores = "contrib/scores --config python/pyproject.toml --target-version py311";
        for paths in ["python/pagelab python/tests", scores] {
            let mut ruff = tests.python(["-m", "ruff"]);
            ruff.args(words).args(["--quiet", "--no-cache"]).args(paths.split(' '));
            run("python", &mut ruff)?;
        }
    }
    for words in [
        &["mypy", "--strict", "-p", "pagelab"][..],
        &["mypy.stubtest", "pagelab._native"],
        &["mypy", "--strict", "--python-version", "3.11", "contrib/scores"],
    ] {
        let mut mypy = tests.python(["-m"]);
        mypy.args(words).env("MYPY_CACHE_DIR", Path::new(FOLDER).join("mypy"));
        run("python", &mut mypy)?;
    }
    Ok(())
}

/// The wheel of a profile, and nothing else in its folder.
fn build(profile: &[&str]) -> Result<PathBuf> {
    let builds = Environment::known("build")?;
    run("python", builds.pip([]).arg(MATURIN))?;
    let wheels = Path::new(FOLDER).join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).context("removing old wheels")?;
    }
    let mut maturin = builds.python(["-m", "maturin", "build", "--locked", "--manifest-path"]);
    run("python", maturin.arg("python/Cargo.toml").args(profile).arg("--out").arg(&wheels))?;
    let mut made = fs::read_dir(&wheels).context("reading the wheels")?;
    let wheel = made.next().context("maturin left no wheel")??.path();
    let bytes = fs::metadata(&wheel)?.len();
    if bytes > BYTES_MAX {
        bail!("{} is {bytes} bytes: {BYTES_MAX} are enough", wheel.display());
    }
    eprintln!("[python] {}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    Ok(wheel)
}

/// A virtual environment.
struct Environment(PathBuf);

impl Environment {
    /// One of that name, made where it is not there yet.
    fn known(name: &str) -> Result<Self> {
        let folder = Path::new(FOLDER).join(format!("environment-{name}"));
        let environment = Self(folder);
        if !environment.interpreter().exists() {
            let mut make = program("python3", ["-m", "venv"]);
            run("python", make.arg(&environment.0))
                .context("cure: apt install python3-venv (Python 3.10 or newer)")?;
        }
        Ok(environment)
    }

    /// The same, empty.
    fn fresh(name: &str) -> Result<Self> {
        let folder = Path::new(FOLDER).join(format!("environment-{name}"));
        if folder.exists() {
            fs::remove_dir_all(&folder).context("removing an old environment")?;
        }
        Self::known(name)
    }

    fn interpreter(&self) -> PathBuf {
        self.0.join("bin/python")
    }

    /// A command of its Python, which sees nothing of anybody's own.
    fn python<const N: usize>(&self, words: [&str; N]) -> Command {
        let mut command = Command::new(self.interpreter());
        command.args(words).env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        command
    }

    /// A command that installs.
    fn pip<const N: usize>(&self, words: [&str; N]) -> Command {
        let mut command = self.python(["-m", "pip", "install", "--quiet"]);
        command.args(["--disable-pip-version-check", "--no-compile"]).args(words);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_names_what_its_tests_need() {
        let packages = test_packages(include_str!("../../python/pyproject.toml")).unwrap();
        assert!(packages.iter().any(|package| package.starts_with("dask[distributed]")));
        assert!(packages.contains(&"pytest".to_owned()));
    }
}
