//! What the targets share: where seeds go, inputs that are nearly traces, and inputs as files.
//!
//! The one idea: a target describes its seeds in code, beside the check that they are for, and
//! writes them when it is told where. Nothing here is checked.

use std::{
    env,
    fs::{self, File},
    io::{Seek, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use libfuzzer_sys::arbitrary::{self, Unstructured};
use pagelab_cli::part;
use pagelab_parts::PARTS;
use pagelab_trace::raw::{self, HEAD_BYTES};
use rustix::fs::MemfdFlags;
use serde_json::Value;

/// Names the parts; before anything is asked of one.
pub fn name_parts() {
    part::set(PARTS);
}

/// A publication of ours: its name, `records.jsonl`, `claims.toml` and its template, if any.
#[macro_export]
macro_rules! folder {
    ($name:literal $(, $template:literal)?) => {
        (
            $name,
            include_str!(concat!("../../published/", $name, "/records.jsonl")),
            include_str!(concat!("../../published/", $name, "/claims.toml")),
            concat!($(include_str!(concat!("../../published/", $name, "/", $template)))?),
        )
    };
}

/// So many series of a record, so many values of each: more say nothing else, and take longer.
const ITEMS_MAX: usize = 6;

/// A document with less in it.
#[must_use]
pub fn short(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let most = if items.iter().all(Value::is_u64) { 4 } else { ITEMS_MAX };
            items.into_iter().take(most).map(short).collect()
        }
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, short(field))).collect()
        }
        other => other,
    }
}

/// The variable that names the folder for seeds; without it, none are written.
pub const SEEDS: &str = "PAGELAB_FUZZ_SEEDS";

/// Writes the seeds of a target, before the fuzzer reads its corpus.
///
/// # Panics
/// When they cannot be written: fuzzing without them would find less and not say so.
pub fn sow(seeds: impl IntoIterator<Item = Vec<u8>>) {
    let Some(folder) = env::var_os(SEEDS) else { return };
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).expect("the folder for seeds can be made");
    for (number, seed) in seeds.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:02}")), seed).expect("a seed can be written");
    }
}

/// A byte that says «leave this record as it is».
const BROKEN: u8 = 0xf0;

/// Makes records of any bytes: most mutations of a trace would otherwise end it.
///
/// A record whose first byte is 0xf0 or more stays what it is.
pub fn mend(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Some([op, width, ..]) = rest.first_chunk_mut::<HEAD_BYTES>() {
        if *op >= BROKEN {
            return;
        }
        *op = if *op & 1 == 0 { raw::LOAD } else { raw::STORE };
        *width = 1 << (*width & 3);
        let value = if *op == raw::STORE { usize::from(*width) } else { 0 };
        let Some(next) = rest.get_mut(HEAD_BYTES + value..) else { return };
        rest = next;
    }
}

/// The one file, which lies in memory and has no name, and a path to it: nothing is left behind,
/// however a target ends.
static INPUT: LazyLock<(File, PathBuf)> = LazyLock::new(|| {
    let file = rustix::fs::memfd_create("pagelab-fuzz", MemfdFlags::CLOEXEC);
    let file = File::from(file.expect("the kernel makes files in memory"));
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
});

/// The path of a file with these bytes, for what reads by path; good until the next one.
///
/// # Panics
/// When there is no room for it.
#[must_use]
pub fn file_of(bytes: &[u8]) -> &'static Path {
    let (file, path) = &*INPUT;
    let mut writer: &File = file;
    let emptied = file.set_len(0).and_then(|()| writer.rewind());
    emptied.and_then(|()| writer.write_all(bytes)).expect("the file takes what it is given");
    path
}

/// What a pass over a file may give, before it is cut off: a few bytes can ask for gigabytes.
pub const BYTES_MAX: u64 = 16 << 20;

/// What is to be read as a file of text: the input as it is, or what `make` makes of it, as its
/// first byte says. `None` where that is no text.
pub fn written<T: ToString>(
    input: &[u8],
    make: impl FnOnce(&mut Unstructured<'_>) -> arbitrary::Result<T>,
) -> Option<String> {
    let (&kind, rest) = input.split_first()?;
    if kind & 1 == 0 {
        return str::from_utf8(rest).ok().map(ToOwned::to_owned);
    }
    make(&mut Unstructured::new(rest)).ok().map(|made| made.to_string())
}

/// A short text: any bytes that the rest of the input starts with, as far as they are UTF-8.
///
/// # Errors
/// None: an input that is too short gives less.
pub fn text(input: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let length = input.int_in_range(0..=24)?.min(input.len());
    Ok(String::from_utf8_lossy(input.bytes(length)?).into_owned())
}
