//! The parent's side of a trace: opens, decompresses or generates it, once, and checks every
//! record, so that the processes of a case inherit bytes that are known to be good.
//!
//! A plain file is handed down as it is; whatever must be made goes into a sealed file in memory,
//! or into a file without a name where the page cache is part of the question.

use std::{
    fs::File,
    io::{Read, Seek, Write},
};

use pagelab_bench::inputs::{Loaded, Stopped, Supply};
use pagelab_record::units::display_bytes;
use pagelab_sys::{
    files::{pagecache, scratch},
    machine::Topology,
    memory::memfd,
    process::{Beat, Heirloom, interrupted},
};
use pagelab_trace::raw;

use super::{
    door::{self, Opened},
    image,
    inputs::{Facts, Medium, Wanted},
    source::Source,
    stream::{EMPTY, bad_record},
    tally::Counter,
};

/// Bytes that are read, checked and written at once.
const PIECE: usize = 1 << 20;

/// Bytes of memory that are left to the rest of the machine when a trace is put there.
const SPARE: u64 = 256 << 20;

impl Supply for Wanted {
    fn load(&self, watch: &mut dyn FnMut(Beat)) -> Result<Loaded, Stopped> {
        let (files, facts) = load(self, watch)?;
        let warnings = facts.warnings.clone();
        let facts = serde_json::to_value(facts).expect("facts are plain data");
        Ok(Loaded { files, facts, warnings })
    }
}

/// Gets a trace; `watch` is told how far that has come.
///
/// # Errors
/// When it cannot be read or made, holds a record that makes no sense, or the user interrupts.
fn load(supply: &Wanted, watch: &mut dyn FnMut(Beat)) -> Result<(Vec<Heirloom>, Facts), Stopped> {
    let name = supply.source.to_string();
    let failed = |why: String| Stopped::Failed(format!("{name}: {why}"));
    let mut counter = Counter::up_to(supply.ops.unwrap_or(u64::MAX));
    let (file, trailing) = match &supply.source {
        Source::Generator(spec) => {
            let mut made = Made::new(supply.medium).map_err(failed)?;
            let ops = supply.ops.ok_or_else(|| failed("--ops says how many".to_owned()))?;
            let mut stream = door::spec(spec, ops, supply.seed).map_err(failed)?.stream();
            let mut piece = Vec::new();
            while stream.next_into(&mut piece) {
                counter.take(&piece).map_err(|error| failed(error.to_string()))?;
                made.write(&piece).map_err(failed)?;
                tell(watch, counter.tally.ops, counter.tally.ops, ops)?;
            }
            (made.finish().map_err(failed)?, 0)
        }
        Source::File(path) => match door::open(path)? {
            Opened::Plain(mut file) => {
                let end = file.metadata().map_or(0, |metadata| metadata.len());
                let trailing = pump(&mut file, &mut counter, &name, &mut |_| Ok(()), &mut |c| {
                    let (position, end) =
                        supply.ops.map_or((c.tally.bytes, end), |ops| (c.tally.ops, ops));
                    tell(watch, c.tally.ops, position, end)
                })?;
                (file, trailing)
            }
            Opened::Packed(mut reader) => {
                let mut made = Made::new(supply.medium).map_err(failed)?;
                let end = supply.ops.unwrap_or(0);
                let trailing = pump(
                    &mut reader,
                    &mut counter,
                    &name,
                    &mut |piece| made.write(piece).map_err(failed),
                    &mut |c| tell(watch, c.tally.ops, c.tally.ops, end),
                )?;
                (made.finish().map_err(failed)?, trailing)
            }
        },
    };
    if counter.tally.ops == 0 {
        return Err(failed(EMPTY.to_owned()));
    }
    let (image, places) = heirloom_of_image(supply).map_err(failed)?;
    let trace = Heirloom::new(&file).map_err(|error| failed(error.to_string()))?;
    let (file_system, mut warnings) = surroundings(supply, &file, trailing);
    warnings.extend(too_short(supply.ops, counter.tally.ops));
    let facts =
        Facts { name, tally: counter.tally, trailing, file_system, warnings, image: places };
    Ok(([trace].into_iter().chain(image).collect(), facts))
}

/// Reads the file of a trace, as far as it is wanted, and does nothing else.
///
/// # Errors
/// When it cannot be read, holds a record that makes no sense, or the user interrupts.
pub fn check_whole(source: &Source, ops: Option<u64>) -> Result<(), Stopped> {
    let Source::File(path) = source else { return Ok(()) };
    let mut counter = Counter::up_to(ops.unwrap_or(u64::MAX));
    let mut reader: Box<dyn Read> = match door::open(path)? {
        Opened::Plain(file) => Box::new(file),
        Opened::Packed(reader) => reader,
    };
    let told = &mut |c: &Counter| tell(&mut |_| (), c.tally.ops, 0, 0);
    pump(&mut reader, &mut counter, &path.display().to_string(), &mut |_| Ok(()), told).map(drop)
}

/// Says how far it has come, unless the user had enough.
fn tell(watch: &mut dyn FnMut(Beat), ops: u64, position: u64, end: u64) -> Result<(), Stopped> {
    if interrupted() {
        return Err(Stopped::Interrupted);
    }
    watch(Beat { ops, position, end });
    Ok(())
}

/// Does something with every checked piece of a trace.
type Keep<'k> = dyn FnMut(&[u8]) -> Result<(), Stopped> + 'k;

/// Reads, checks and passes on a trace; returns the bytes that trail after it.
fn pump(
    reader: &mut dyn Read,
    counter: &mut Counter,
    name: &str,
    keep: &mut Keep<'_>,
    told: &mut dyn FnMut(&Counter) -> Result<(), Stopped>,
) -> Result<u64, Stopped> {
    let failed = |why: String| Stopped::Failed(format!("{name}: {why}"));
    let mut buffer = vec![0; PIECE];
    let mut filled = 0;
    loop {
        let count = match reader.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other.map_err(|error| failed(error.to_string()))?,
        };
        filled += count;
        let taken = match counter.take(&buffer[..filled]) {
            Ok(taken) => taken,
            Err(error) => return Err(failed(bad_record(&error, counter.tally.ops))),
        };
        keep(&buffer[..taken])?;
        told(counter)?;
        if counter.is_full() {
            return Ok(0);
        }
        buffer.copy_within(taken..filled, 0);
        filled -= taken;
        if count == 0 {
            let rest = raw::finish(&buffer[..filled], counter.tally.bytes);
            return match rest {
                Ok(trailing) => Ok(trailing as u64),
                Err(error) => Err(failed(bad_record(&error, counter.tally.ops))),
            };
        }
    }
}

/// Said of a trace that ends before what was asked for.
pub(super) fn too_short(asked: Option<u64>, found: u64) -> Option<String> {
    let asked = asked.filter(|asked| found < *asked)?;
    Some(format!("the trace ends after {found} operations; {asked} were asked for"))
}

/// A trace in the making.
struct Made {
    file: File,
    medium: Medium,
    unchecked: u64,
}

impl Made {
    fn new(medium: Medium) -> Result<Self, String> {
        let file = match medium {
            Medium::Memory => memfd::create("pagelab-trace").map_err(|error| error.to_string())?,
            Medium::File => {
                let directory = std::env::temp_dir();
                scratch::nameless(&directory).map_err(|error| {
                    format!("a file in {}: {error} (TMPDIR names another)", directory.display())
                })?
            }
        };
        Ok(Self { file, medium, unchecked: 0 })
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), String> {
        self.unchecked += piece.len() as u64;
        if self.medium == Medium::Memory && self.unchecked >= SPARE / 4 {
            self.unchecked = 0;
            let budget = Topology::machine().memory_budget();
            if budget.bytes < SPARE {
                return Err(format!(
                    "the trace does not fit into memory, of which {} are left (limited by {}); \
                     --ops takes a part of it",
                    display_bytes(budget.bytes as f64),
                    budget.limited_by
                ));
            }
        }
        self.file.write_all(piece).map_err(|error| match self.medium {
            Medium::Memory => error.to_string(),
            Medium::File => {
                let directory = std::env::temp_dir();
                format!("a file in {}: {error} (TMPDIR names another)", directory.display())
            }
        })
    }

    fn finish(mut self) -> Result<File, String> {
        if self.medium == Medium::Memory {
            memfd::seal(&self.file).map_err(|error| error.to_string())?;
        }
        self.file.rewind().map_err(|error| error.to_string())?;
        Ok(self.file)
    }
}

/// Address and bytes of the pieces of an image.
type Places = Vec<(u64, u64)>;

/// The image as a sealed file, and where its pieces go.
fn heirloom_of_image(supply: &Wanted) -> Result<(Option<Heirloom>, Places), String> {
    let pieces = image::pieces(supply)?;
    if pieces.is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut file = memfd::create("pagelab-image").map_err(|error| error.to_string())?;
    let mut places = Vec::with_capacity(pieces.len());
    for (addr, bytes) in pieces {
        file.write_all(&bytes).map_err(|error| error.to_string())?;
        places.push((addr, bytes.len() as u64));
    }
    memfd::seal(&file).map_err(|error| error.to_string())?;
    let heirloom = Heirloom::new(&file).map_err(|error| error.to_string())?;
    Ok((Some(heirloom), places))
}

/// The file system that a trace is read from, and what is worth knowing about it.
fn surroundings(supply: &Wanted, file: &File, trailing: u64) -> (u64, Vec<String>) {
    let (magic, name) = pagecache::file_system(file).unwrap_or((0, "an unknown file system"));
    let mut warnings = Vec::new();
    if supply.medium == Medium::File && pagecache::is_in_memory(magic) {
        warnings.push(format!(
            "the trace lies on {name}, where all of it is in memory: set TMPDIR to a directory on \
             a disk"
        ));
    }
    if trailing > 0 {
        warnings.push(format!(
            "{trailing} bytes trail after the last record of the trace: nothing was done with them"
        ));
    }
    (magic, warnings)
}
