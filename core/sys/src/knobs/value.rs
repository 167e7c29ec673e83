//! What a knob holds: reading and writing one setting.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    time::Duration,
};

use crate::machine::selected;

/// Reads a knob.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(selected(&String::from_utf8_lossy(&bytes)).to_owned())
}

/// Writes a knob, with one call as sysfs wants it.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}

/// Makes an attempt again, a moment later, while the kernel is not ready for it.
pub(super) fn again<T>(
    attempts: u32,
    wait: Duration,
    is_not_ready: impl Fn(&io::Error) -> bool,
    mut attempt: impl FnMut(u32) -> io::Result<T>,
) -> io::Result<T> {
    let mut failed = 0;
    loop {
        match attempt(failed) {
            Err(error) if is_not_ready(&error) && failed < attempts => {
                failed += 1;
                std::thread::sleep(wait);
            }
            done => return done,
        }
    }
}

/// Somebody still has it open, or is in it.
pub(super) fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy
}
