//! Cargo's helpers, as PyPI has them built: seconds instead of a minute of a compiler.

use std::path::{Path, PathBuf};

use crate::shell::{self, program, run};

/// Where they are installed.
const FOLDER: &str = "target/prebuilt";

/// The absolute path of a program, from `PATH` or installed from PyPI; `None` where neither works,
/// which is printed.
pub(crate) fn prebuilt(name: &str, version: &str) -> Option<PathBuf> {
    let folder = std::path::absolute(Path::new(FOLDER).join(name)).ok()?;
    let installed = folder.join("bin").join(name);
    if let Some(found) = shell::find(name) {
        return Some(found);
    }
    if installed.exists() {
        return Some(installed);
    }
    let mut pip = program("python3", ["-m", "pip", "--disable-pip-version-check", "install"]);
    pip.args(["--quiet", "--no-deps", "--root-user-action", "ignore", "--target"]).arg(&folder);
    pip.arg(format!("astral-dev-toolchain-{name}=={version}"));
    match run(name, &mut pip) {
        Ok(()) => Some(installed),
        Err(error) => {
            shell::warn(&format!("{name} cannot be had from PyPI: {error:#}"));
            None
        }
    }
}
