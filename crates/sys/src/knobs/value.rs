//! What a knob holds: reading and writing one setting.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use crate::machine::value::selected;

/// Reads a knob.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(selected(&String::from_utf8_lossy(&bytes)).to_owned())
}

/// Writes a knob, with one call as sysfs wants it.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}
