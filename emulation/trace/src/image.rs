//! Images: what memory holds before the first operation of a trace.
//!
//! A trace has no values of loads, and nothing of a program that was loaded before it began; an
//! image fills the gap. It comes from the program itself (the `PT_LOAD` segments of an ELF file),
//! from raw bytes at an address, or from the file that lies beside a captured trace ([`sidecar`]),
//! which [`Image::write_elf`] writes. Nothing is relocated, and nothing is stored for what a file
//! does not hold: memory that was never written reads as zero anyway.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::op::address;

/// The longest file that is read as an image: it is held in memory, and up to twice.
const BYTES_MAX: u64 = 4 << 30;
/// What an ELF file starts with.
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// The type of a program header that says what to load.
const PT_LOAD: u32 = 1;

/// Bytes at an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where the first byte goes.
    pub addr: u64,
    /// The bytes; the last one is inside the address space.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({:#x}, {} bytes)", self.addr, self.bytes.len())
    }
}

/// What memory holds before a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// In the order in which they are laid down; none is empty.
    pub segments: Vec<Segment>,
}

/// What is wrong with an image.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct ImageError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub why: Why,
}

/// Why an image could not be read.
#[derive(Debug, Error)]
pub enum Why {
    /// The file cannot be read.
    #[error("cannot read the image: {0}")]
    Read(#[from] io::Error),
    /// It is no regular file.
    #[error("an image is a regular file")]
    NotAFile,
    /// It is longer than what is read.
    #[error("an image has at most 4 GiB, this file has {bytes} bytes")]
    TooLong {
        /// How long it is.
        bytes: u64,
    },
    /// The ELF file makes no sense.
    #[error("not a valid ELF file: {0}")]
    Elf(String),
    /// This build does not read ELF files.
    #[error(
        "this build reads no ELF files: pagelab-trace needs its feature `elf` for that, or \
         FILE@ADDRESS for raw bytes"
    )]
    NoElf,
    /// Another byte order.
    #[error("big-endian programs are not supported")]
    BigEndian,
    /// There is nothing to load.
    #[error("the ELF file has nothing to load (no PT_LOAD segment with bytes)")]
    NothingToLoad,
    /// The segments hold the same bytes over and over.
    #[error("the segments of the ELF file hold more bytes than the file")]
    TooLarge,
    /// It reaches over the end.
    #[error("{bytes} bytes at {addr:#x} reach over the end of the address space")]
    OutOfRange {
        /// Where it starts.
        addr: u64,
        /// How long it is.
        bytes: u64,
    },
}

/// The name of the image that belongs to a trace: `FILE.image`.
pub fn sidecar(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".image");
    name.into()
}

/// `FILE@ADDRESS` taken apart: what follows the last `@` is the address, if it is one.
pub fn named(text: &str) -> (&str, Option<u64>) {
    let parts = text.rsplit_once('@').and_then(|(path, addr)| Some((path, Some(address(addr)?))));
    parts.unwrap_or((text, None))
}

impl Image {
    /// Reads `FILE`, an ELF file or raw bytes at address 0, or `FILE@ADDRESS`, raw bytes.
    ///
    /// # Errors
    /// When the file cannot be read, or makes no sense.
    pub fn open(text: &str) -> Result<Self, ImageError> {
        let (path, addr) = named(text);
        Self::read(Path::new(path), addr)
    }

    /// Reads an image; with an address, whatever is in the file are raw bytes for there.
    ///
    /// # Errors
    /// When the file cannot be read, or makes no sense.
    pub fn read(path: &Path, addr: Option<u64>) -> Result<Self, ImageError> {
        let read = || {
            let bytes = read_whole(path)?;
            match addr {
                None if bytes.starts_with(ELF_MAGIC) => Self::from_elf(&bytes),
                addr => Self::from_raw(addr.unwrap_or(0), bytes),
            }
        };
        read().map_err(|why| ImageError { path: path.to_owned(), why })
    }

    /// Raw bytes at an address.
    ///
    /// # Errors
    /// When they reach over the end of the address space.
    pub fn from_raw(addr: u64, bytes: Vec<u8>) -> Result<Self, Why> {
        let segment = Segment::new(addr, bytes)?;
        Ok(Self { segments: segment.into_iter().collect() })
    }

    /// The `PT_LOAD` segments of an ELF file of 32 or 64 bits, at their virtual addresses.
    ///
    /// # Errors
    /// When it makes no sense, is big-endian, or loads nothing; always without the feature `elf`.
    #[cfg(not(feature = "elf"))]
    pub fn from_elf(_: &[u8]) -> Result<Self, Why> {
        Err(Why::NoElf)
    }

    /// The `PT_LOAD` segments of an ELF file of 32 or 64 bits, at their virtual addresses.
    ///
    /// # Errors
    /// When it makes no sense, is big-endian, or loads nothing.
    #[cfg(feature = "elf")]
    pub fn from_elf(bytes: &[u8]) -> Result<Self, Why> {
        use elf::{
            ElfBytes,
            endian::{AnyEndian, EndianParse},
        };
        let broken = |error: elf::ParseError| Why::Elf(error.to_string());
        let file = ElfBytes::<AnyEndian>::minimal_parse(bytes).map_err(broken)?;
        if !file.ehdr.endianness.is_little() {
            return Err(Why::BigEndian);
        }
        let mut segments = Vec::new();
        let mut left = bytes.len();
        let headers = file.segments().into_iter().flatten();
        for header in headers.filter(|header| header.p_type == PT_LOAD) {
            // What is longer in memory than in the file is zero, and need not be stored.
            let data = file.segment_data(&header).map_err(broken)?;
            left = left.checked_sub(data.len()).ok_or(Why::TooLarge)?;
            segments.extend(Segment::new(header.p_vaddr, data.to_vec())?);
        }
        if segments.is_empty() {
            return Err(Why::NothingToLoad);
        }
        Ok(Self { segments })
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes.len() as u64).sum()
    }

    /// Writes an ELF file of 64 bits with a `PT_LOAD` for each segment, that [`Self::from_elf`]
    /// reads back. It names no machine: it is an image, not a program.
    ///
    /// # Errors
    /// When it cannot be written, or has more than 65,534 segments.
    pub fn write_elf(&self, to: &mut impl Write) -> io::Result<()> {
        const HEADER_BYTES: u16 = 64;
        const PROGRAM_HEADER_BYTES: u16 = 56;
        const EXECUTABLE: u16 = 2;
        const READ_WRITE_EXECUTE: u32 = 7;
        let count = u16::try_from(self.segments.len()).ok().filter(|&count| count < u16::MAX);
        let Some(count) = count else {
            let why = "an image has at most 65,534 segments";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        // Magic, 64 bits, little-endian, version 1; no particular system.
        let mut head = [ELF_MAGIC, &[2, 1, 1, 0], &[0; 8]].concat();
        head.extend(EXECUTABLE.to_le_bytes());
        head.extend([0; 2]); // machine: none
        head.extend(1_u32.to_le_bytes()); // version
        let entry = self.segments.first().map_or(0, |segment| segment.addr);
        for word in [entry, u64::from(HEADER_BYTES), 0] {
            head.extend(word.to_le_bytes()); // entry, program headers, section headers
        }
        head.extend([0; 4]); // flags
        for half in [HEADER_BYTES, PROGRAM_HEADER_BYTES, count, 0, 0, 0] {
            head.extend(half.to_le_bytes());
        }
        let headers = u64::from(PROGRAM_HEADER_BYTES) * u64::from(count);
        let mut offset = u64::from(HEADER_BYTES) + headers;
        for Segment { addr, bytes } in &self.segments {
            let length = bytes.len() as u64;
            head.extend(PT_LOAD.to_le_bytes());
            head.extend(READ_WRITE_EXECUTE.to_le_bytes());
            for word in [offset, *addr, *addr, length, length, 1] {
                head.extend(word.to_le_bytes());
            }
            offset += length;
        }
        to.write_all(&head)?;
        self.segments.iter().try_for_each(|segment| to.write_all(&segment.bytes))
    }
}

impl Segment {
    /// A segment; `None` where there are no bytes.
    fn new(addr: u64, bytes: Vec<u8>) -> Result<Option<Self>, Why> {
        let Some(last) = (bytes.len() as u64).checked_sub(1) else { return Ok(None) };
        if addr.checked_add(last).is_none() {
            return Err(Why::OutOfRange { addr, bytes: bytes.len() as u64 });
        }
        Ok(Some(Self { addr, bytes }))
    }
}

/// The bytes of a regular file, no more than it had when it was opened.
fn read_whole(path: &Path) -> Result<Vec<u8>, Why> {
    // Asked before it is opened: opening a pipe waits for whoever writes to it.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(Why::NotAFile);
    }
    if metadata.len() > BYTES_MAX {
        return Err(Why::TooLong { bytes: metadata.len() });
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(metadata.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}
