//! Our own module, built for every kernel that a case wants it on.
//!
//! The one idea: a module that does not compile is a failure; a machine that has no compiler for a
//! kernel is a lack, which leaves out the module's cases on that kernel and is said loudly.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use super::{apt, fetch::Supplies, table, table::Boot};
use crate::{
    kmod,
    shell::{find, warn},
};

/// What cases call it.
pub(super) const NAME: &str = "pagelab";
/// How [`kmod::build`] says that the sources are at fault.
const SOURCES_AT_FAULT: &str = "the module does not build";
/// Programs that a build needs, and their packages: the compiler of the older kernels, and what
/// makes a root with the compiler of the newest.
const TOOLS: &[(&str, &str)] =
    &[("make", "make"), ("gcc-12", "gcc-12"), ("mmdebstrap", "mmdebstrap")];
/// The kernel's own build tools link it.
const LIBELF: &str = "/usr/lib/x86_64-linux-gnu/libelf.so.1";

/// What came of the builds, by kernel.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// The module.
    pub(super) modules: BTreeMap<String, PathBuf>,
    /// What this machine lacks.
    pub(super) lacks: BTreeMap<String, String>,
}

/// Builds it for the kernels of the boots that want it.
pub(super) fn build(boots: &[Boot], supplies: &Supplies) -> Result<Built> {
    let wants = |boot: &&Boot| boot.modules.iter().any(|module| module == NAME);
    let boots: Vec<_> = boots.iter().filter(wants).cloned().collect();
    let mut built = Built::default();
    if !boots.is_empty() {
        install_tools();
    }
    for name in table::kernels(&boots) {
        let kernel = supplies.kernel(name)?;
        match kmod::build(&kernel.root, &kernel.release, &supplies.cache) {
            Ok(module) => drop(built.modules.insert(name.to_owned(), module)),
            Err(error) if error.to_string().starts_with(SOURCES_AT_FAULT) => bail!(error),
            Err(lack) => drop(built.lacks.insert(name.to_owned(), format!("{lack:#}"))),
        }
    }
    Ok(built)
}

/// Installs what is missing, where that is possible; the build says what it cannot do without.
fn install_tools() {
    let missing = TOOLS.iter().filter(|(program, _)| find(program).is_none());
    let mut packages: Vec<_> = missing.map(|(_, package)| *package).collect();
    if !Path::new(LIBELF).exists() {
        packages.push("libelf1");
    }
    if !packages.is_empty()
        && let Err(error) = apt::install(&packages)
    {
        warn(&format!("{} could not be installed: {error:#}", packages.join(", ")));
    }
}
