//! A library of ours in a program that is started.

use std::ffi::OsString;

use anyhow::{Context, anyhow};
use pagelab_sys::files::beside::{self, PRELOAD};

use crate::exit::Failure;

/// The variable that puts the library of a package into a program, before all others.
///
/// # Errors
/// Where there is no such library, or the loader could not take its path.
pub(crate) fn variable(package: &str) -> Result<(&'static str, OsString), Failure> {
    let found = beside::library(package).context("its own place").map_err(Failure::internal)?;
    let path = found
        .map_err(|missing| Failure::host(anyhow!("there is no {missing}: {}", missing.cure)))?;
    // The loader takes both for the end of a path.
    if path.to_string_lossy().contains([' ', ':']) {
        let path = path.display();
        let why = anyhow!("{path}: a blank or a colon in its path: install it elsewhere");
        return Err(Failure::host(why));
    }
    Ok((PRELOAD, beside::preloaded(path)))
}
