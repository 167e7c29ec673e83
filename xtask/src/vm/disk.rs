//! The image of the disk that some machines have: an empty file system, made once.
//!
//! The one idea: QEMU keeps what a guest writes for itself (`snapshot=on`), so that one image does
//! for all boots at once and stays empty. It is a file with holes; metadata checksums are left out
//! because the kernel would need one more module for them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::shell::{find, program, run};

const PATH: &str = "target/vm/disk.ext4";
const BYTES: u64 = 1 << 30;

/// The path of the image; made if it is not there.
pub(super) fn image() -> Result<PathBuf> {
    let path = Path::new(PATH);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let mkfs = find("mke2fs").unwrap_or_else(|| PathBuf::from("/usr/sbin/mke2fs"));
    // Under another name first: an image that was interrupted is no image.
    let new = path.with_extension("new");
    let file = File::create(&new).with_context(|| new.display().to_string())?;
    file.set_len(BYTES).with_context(|| new.display().to_string())?;
    let mkfs = mkfs.display().to_string();
    let words = ["-q", "-F", "-t", "ext4", "-O", "^metadata_csum"];
    let mut command = program(&mkfs, words);
    run("vm", command.arg(&new)).context("making a file system (apt-get install e2fsprogs)")?;
    fs::rename(&new, path).with_context(|| PATH.to_owned())?;
    Ok(path.to_owned())
}
