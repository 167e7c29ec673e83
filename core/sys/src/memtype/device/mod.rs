#![expect(unsafe_code, reason = "ioctl")]
//! The client of `/dev/pagelab`: what the module offers, memory of a type, and the read-back.
//!
//! The one idea: one open file owns one allocation, so opening and allocating are two steps and a
//! [plot](super::Plot) keeps the file. Every refusal is a sentence that says what, and a cure that
//! says what to do; the kernel's errno alone says neither.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io,
};

pub use pagelab_interpose::uapi::NODE;
use pagelab_interpose::uapi::{self, PagelabAlloc, PagelabDrop, PagelabInfo, PagelabQuery};
use rustix::ioctl::{Opcode, Updater, ioctl};

use super::{Frames, MemoryType, ModuleState};
use crate::{Called, SysError};

/// The module, opened; nothing is allocated yet.
#[derive(Debug)]
pub struct Device {
    file: File,
    info: Info,
}

/// What the module and the kernel under it can do.
#[derive(Debug, Clone, Copy)]
pub struct Info(PagelabInfo);

/// Memory to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// A multiple of `leaf`.
    pub bytes: u64,
    /// One of the first four.
    pub memory_type: MemoryType,
    /// Where the frames come from.
    pub frames: Frames,
    /// Bytes of a leaf of the page table: 4 KiB, 2 MiB or 1 GiB.
    pub leaf: u64,
    /// The memory node; `None` is the nearest.
    pub node: Option<usize>,
    /// Whether `mmap` fills the page table. A plot is present either way.
    pub eager: bool,
    /// Bytes into the reserved region; 0 for other frames.
    pub offset: u64,
    /// Whether it is a segment: memory of one program, zeroed by the fault that maps it.
    pub segment: bool,
}

/// A leaf of the page table, as the module read it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// The type in force; `None` for one that this program does not know.
    pub memory_type: Option<MemoryType>,
    /// Bytes that one entry maps; 0 where nothing is mapped.
    pub bytes: u64,
    /// The entry without its frame number.
    pub entry: u64,
    /// The physical address; `None` for users who may not know it.
    pub phys: Option<u64>,
}

/// Why there is no memory of the module.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The module is not there, or speaks another version.
    #[error("{0}")]
    Module(ModuleState),
    /// The node is there and this user may not open it.
    #[error("{NODE} may not be opened by this user")]
    Permission,
    /// The node is there and no module is behind it.
    #[error("nothing answers at {NODE}: the module behind it was unloaded")]
    Stale,
    /// The file answers, but not as this module does.
    #[error("{NODE} is not the pagelab module: it does not know PAGELAB_IOC_VERSION")]
    Foreign,
    /// The module refused an allocation.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Another call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// What was asked for and not given.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// What was asked for.
    pub request: Request,
    /// What the module had said of itself.
    pub info: Info,
    /// The kernel's answer.
    pub errno: i32,
}

impl Device {
    /// Opens the node and agrees on a version.
    ///
    /// # Errors
    /// Without the module, without permission, and with a module of another version.
    pub fn open() -> Result<Self, DeviceError> {
        let file = OpenOptions::new().read(true).write(true).open(NODE).map_err(why_not_opened)?;
        let mut version = 0_u32;
        call::<{ uapi::IOC_VERSION }, _>(&file, &mut version).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::ENOTTY | libc::EINVAL) => DeviceError::Foreign,
                _ => SysError::new("ioctl", "PAGELAB_IOC_VERSION", error).into(),
            }
        })?;
        if version != uapi::VERSION {
            return Err(DeviceError::Module(ModuleState::OtherVersion { module: version }));
        }
        let mut info = PagelabInfo::default();
        call::<{ uapi::IOC_INFO }, _>(&file, &mut info).called("ioctl", "PAGELAB_IOC_INFO")?;
        Ok(Self { file, info: Info(info) })
    }

    /// What it can do.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Allocates; the open file owns what it has got.
    pub(super) fn claim(self, request: &Request) -> Result<File, DeviceError> {
        let mut alloc = request.encode();
        call::<{ uapi::IOC_ALLOC }, _>(&self.file, &mut alloc).map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(0);
            DeviceError::Refused(Box::new(Refusal { request: *request, info: self.info, errno }))
        })?;
        Ok(self.file)
    }
}

impl Info {
    /// Most that all allocations of ordinary frames together may have.
    pub fn limit_bytes(&self) -> u64 {
        self.0.limit_bytes
    }

    /// Start and length of the reserved region; no start for users who may not know it.
    pub fn reserved(&self) -> Option<(Option<u64>, u64)> {
        let start = Some(self.0.reserved_phys).filter(|start| *start != 0);
        (self.0.reserved_bytes > 0).then_some((start, self.0.reserved_bytes))
    }

    /// Sizes of leaves that are possible, ascending.
    pub fn leaves(&self, memory_type: MemoryType, frames: Frames) -> Vec<u64> {
        let row = self.0.leaves.get(memory_type.code() as usize);
        let mask = row.map_or(0, |row| row[frames.code() as usize]);
        (0..64).map(|shift| 1 << shift).filter(|leaf| mask & leaf != 0).collect()
    }

    /// Whether a type, frames and a leaf go together here.
    pub fn can(&self, memory_type: MemoryType, frames: Frames, leaf: u64) -> bool {
        self.leaves(memory_type, frames).contains(&leaf)
    }
}

impl Request {
    fn encode(&self) -> PagelabAlloc {
        PagelabAlloc {
            bytes: self.bytes,
            node: self.node.map_or(-1, |node| i32::try_from(node).unwrap_or(i32::MAX)),
            memtype: self.memory_type.code(),
            layout: self.frames.code(),
            leaf_shift: self.leaf.trailing_zeros(),
            flags: if self.eager { uapi::EAGER } else { 0 }
                | if self.segment { uapi::SEGMENT | uapi::ZERO_AT_FAULT } else { 0 },
            offset: self.offset,
            ..PagelabAlloc::default()
        }
    }
}

impl DeviceError {
    /// What to do about it.
    pub fn cure(&self) -> String {
        match self {
            Self::Module(state) => state.cure().unwrap_or_default(),
            Self::Permission => format!("run as root, or: sudo chown $USER {NODE}"),
            Self::Stale => format!("sudo rm {NODE} && sudo modprobe pagelab"),
            Self::Foreign => format!("find out who made it: ls -l {NODE}; grep misc /proc/devices"),
            Self::Refused(refusal) => refusal.cure(),
            Self::Sys(_) => "look at the kernel's log: sudo dmesg | grep pagelab".to_owned(),
        }
    }
}

fn why_not_opened(error: io::Error) -> DeviceError {
    match error.raw_os_error() {
        Some(libc::ENOENT) => DeviceError::Module(ModuleState::machine()),
        Some(libc::EACCES | libc::EPERM) => DeviceError::Permission,
        Some(libc::ENXIO | libc::ENODEV) => DeviceError::Stale,
        _ => SysError::new("open", NODE, error).into(),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, info, errno } = self;
        let Request { bytes, memory_type, frames, leaf, node, .. } = request;
        let (memory_type, frames) = (memory_type.name(), frames.name());
        let leaf = size(*leaf);
        let why = match *errno {
            libc::EINVAL => "a field is out of range".to_owned(),
            libc::EBUSY => "the region is taken by another process".to_owned(),
            libc::EOPNOTSUPP => {
                format!("this kernel cannot map {frames} {memory_type} memory by leaves of {leaf}")
            }
            libc::ENXIO => "the module was given no reserved region".to_owned(),
            libc::ENODEV => match node {
                Some(node) => format!("memory node {node} is offline or has no memory"),
                None => "no memory node is near this CPU".to_owned(),
            },
            libc::E2BIG => match (request.frames, info.reserved()) {
                (Frames::Reserved, Some((_, have))) => {
                    format!("it is more than the reserved region of {} has", size(have))
                }
                _ => format!("the module gives {} at most", size(info.limit_bytes())),
            },
            libc::ENOMEM => "no such frames are free now".to_owned(),
            other => io::Error::from_raw_os_error(other).to_string(),
        };
        write!(f, "the module refused {} of {frames} {memory_type} memory: {why}", size(*bytes))
    }
}

impl Refusal {
    fn cure(&self) -> String {
        let Self { request, info, errno } = self;
        let possible = || {
            let leaves = info.leaves(request.memory_type, request.frames);
            let leaves: Vec<String> = leaves.into_iter().map(size).collect();
            leaves.join(" or ")
        };
        match *errno {
            libc::EOPNOTSUPP if !possible().is_empty() => format!("ask for leaf={}", possible()),
            libc::EOPNOTSUPP => "ask for other frames, or run on a newer kernel".to_owned(),
            libc::EBUSY => format!("wait for it to end: sudo fuser -v {NODE}"),
            libc::ENXIO => "boot with memmap=1G$4G and load the module with \
                        phys=0x100000000 phys_len=0x40000000"
                .to_owned(),
            libc::ENODEV => {
                "see which nodes have memory: cat /sys/devices/system/node/has_memory".into()
            }
            libc::E2BIG => "ask for a smaller size".to_owned(),
            libc::ENOMEM => "ask for a smaller size or leaf=4k, or free memory: \
                         sudo sysctl vm.compact_memory=1"
                .to_owned(),
            _ => "look at the kernel's log: sudo dmesg | grep pagelab".to_owned(),
        }
    }
}

/// A size as the command line writes it.
fn size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let exact = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    exact.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Reads back the leaf behind an address of a mapping of this file.
pub(super) fn query(file: &File, address: usize) -> Result<Leaf, DeviceError> {
    let mut query = PagelabQuery { addr: address as u64, ..PagelabQuery::default() };
    call::<{ uapi::IOC_QUERY }, _>(file, &mut query).called("ioctl", "PAGELAB_IOC_QUERY")?;
    Ok(decode(&query))
}

/// Forgets what is in a part of a segment, page by page.
pub(super) fn forget(file: &File, offset: u64, bytes: u64) -> Result<(), DeviceError> {
    let mut drop = PagelabDrop { offset, bytes, ..PagelabDrop::default() };
    Ok(call::<{ uapi::IOC_DROP }, _>(file, &mut drop).called("ioctl", "PAGELAB_IOC_DROP")?)
}

fn decode(query: &PagelabQuery) -> Leaf {
    let mapped = query.leaf_shift > 0;
    Leaf {
        memory_type: MemoryType::of_code(query.memtype).filter(|_| mapped),
        bytes: if mapped { 1_u64.checked_shl(query.leaf_shift).unwrap_or(0) } else { 0 },
        entry: query.entry,
        phys: (query.phys != 0).then_some(query.phys),
    }
}

/// A node of the older driver, which this module has, too: memory of one type, of the length that
/// the module was loaded with, shared by all that have it open.
#[derive(Debug)]
pub struct LegacyNode {
    pub(super) file: File,
    pub(super) memory_type: MemoryType,
    bytes: u64,
}

impl LegacyNode {
    /// Opens the one of this type, and asks for its length as the older driver's program does.
    ///
    /// # Errors
    /// When there is no such node, it may not be opened, or does not answer.
    pub fn open(memory_type: MemoryType) -> Result<Self, SysError> {
        let suffix = memory_type.name().trim_end_matches('-').to_lowercase();
        let node = format!("/dev/memcache_{suffix}");
        let opened = OpenOptions::new().read(true).write(true).open(&node);
        let file = opened.called("open", &node)?;
        let mut bytes = 0_u64;
        // SAFETY: the number is raw, and stands for writing a u64, which the argument is.
        let call = unsafe { Updater::<0, u64>::new(&mut bytes) };
        // SAFETY: as above; the argument is a plain number, and lives as long as the call.
        unsafe { ioctl(&file, call) }.map_err(io::Error::from).called("ioctl 0", node)?;
        Ok(Self { file, memory_type, bytes })
    }

    /// Bytes behind it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// One ioctl whose argument is the structure that its number announces.
fn call<const NUMBER: Opcode, T>(file: &File, argument: &mut T) -> io::Result<()> {
    const { assert!(NUMBER as usize >> 16 & 0x3fff == size_of::<T>(), "another structure") };
    // SAFETY: the kernel reads and writes at most the bytes announced, which are the argument's.
    let call = unsafe { Updater::<NUMBER, T>::new(argument) };
    // SAFETY: as above; the argument is plain numbers, and lives as long as the call.
    unsafe { ioctl(file, call) }.map_err(io::Error::from)
}

#[cfg(test)]
mod tests;
