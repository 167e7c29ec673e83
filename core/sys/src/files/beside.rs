//! Libraries of ours that somebody else loads: where they lie.
//!
//! The one idea: a static executable cannot hold them, so they are files beside it, where cargo
//! and `cargo xtask dist` put them, or in its library folder, where a package would.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

/// A library that is not where it should be.
#[derive(Debug, thiserror::Error)]
#[error("{file}, in {folder} or its ../lib/pagelab")]
pub struct Missing {
    file: String,
    folder: String,
    /// How to get it.
    pub cure: String,
}

/// The variable by which the dynamic loader finds a library first.
pub const PRELOAD: &str = "LD_PRELOAD";

/// The value of [`PRELOAD`] for a library, and behind it those that are there already.
pub fn preloaded(library: impl Into<OsString>) -> OsString {
    let mut libraries = library.into();
    if let Some(before) = env::var_os(PRELOAD).filter(|before| !before.is_empty()) {
        libraries.push(":");
        libraries.push(before);
    }
    libraries
}

/// The library of a package of ours: beside the executable, or in its library folder.
///
/// # Errors
/// When this executable cannot be found; inside, when the library is in neither.
pub fn library(package: &str) -> io::Result<Result<PathBuf, Missing>> {
    Ok(below(env::current_exe()?.parent().unwrap_or(Path::new("/")), package))
}

fn below(folder: &Path, package: &str) -> Result<PathBuf, Missing> {
    let file = format!("lib{}.so", package.replace('-', "_"));
    let mut places = [folder.join(&file), folder.join("../lib/pagelab").join(&file)].into_iter();
    places.find(|place| place.is_file()).ok_or_else(|| {
        let release = if folder.ends_with("release") { " --release" } else { "" };
        let cure = format!("cargo build{release} -p {package}");
        Missing { file, folder: folder.display().to_string(), cure }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_library_lies_beside_the_executable_or_in_its_library_folder() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("release");
        fs::create_dir_all(&folder).unwrap();
        let missing = below(&folder, "pagelab-preload").unwrap_err();
        assert!(missing.to_string().starts_with("libpagelab_preload.so, in "), "{missing}");
        assert_eq!(missing.cure, "cargo build --release -p pagelab-preload");
        let place = root.path().join("lib/pagelab");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("libpagelab_preload.so"), "").unwrap();
        let found = below(&folder, "pagelab-preload").unwrap();
        assert!(found.ends_with("../lib/pagelab/libpagelab_preload.so"), "{found:?}");
        fs::write(folder.join("libpagelab_preload.so"), "").unwrap();
        assert_eq!(below(&folder, "pagelab-preload").unwrap().parent(), Some(&*folder));
    }
}
