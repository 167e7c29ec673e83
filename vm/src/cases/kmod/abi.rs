//! The conversation with the module, written a second time.
//!
//! The one idea: the numbers and places of `memtype/kmod/uapi/pagelab.h` stand here once more,
//! independent of the tool's own client, so that a mistake in one of them does not hide in the
//! other. Every field can be wrong on purpose.

use anyhow::{Context, Result, ensure};
use pagelab_sys::vm::hostile::{Door, Errno, Ground, Mapping, Node};

/// `PAGELAB_UAPI_VERSION`.
pub(super) const SPOKEN: u32 = 2;

pub(super) const VERSION: u32 = 0x8004_dc00;
pub(super) const INFO: u32 = 0x80a0_dc01;
pub(super) const ALLOC: u32 = 0x4040_dc02;
pub(super) const QUERY: u32 = 0xc030_dc03;
pub(super) const DROP: u32 = 0x4020_dc04;
pub(super) const FREEZE: u32 = 0x4020_dc05;
pub(super) const COPY: u32 = 0xc030_dc06;
/// `PAGELAB_FREEZE_MOST`.
pub(super) const FREEZE_MOST: u32 = 600_000;

pub(super) const WB: u32 = 0;
pub(super) const UC_MINUS: u32 = 1;
pub(super) const WC: u32 = 2;
pub(super) const WT: u32 = 3;
/// Names of the types that can be asked for.
pub(super) const TYPES: [&str; 4] = ["wb", "uc-", "wc", "wt"];

pub(super) const SCATTERED: u32 = 0;
pub(super) const CONTIGUOUS: u32 = 1;
pub(super) const RESERVED: u32 = 2;
/// Names of the layouts.
pub(super) const LAYOUTS: [&str; 3] = ["scattered", "contiguous", "reserved"];

/// Sizes of leaves, as shifts.
pub(super) const SHIFTS: [u32; 3] = [12, 21, 30];
pub(super) const EAGER: u32 = 1;
pub(super) const SEGMENT: u32 = 2;
pub(super) const ZERO_AT_FAULT: u32 = 4;

pub(super) const PAGE: usize = 4096;
pub(super) const MIB: usize = 1 << 20;

/// `struct pagelab_alloc`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alloc {
    pub(super) bytes: u64,
    pub(super) node: i32,
    pub(super) memtype: u32,
    pub(super) layout: u32,
    pub(super) leaf_shift: u32,
    pub(super) flags: u32,
    pub(super) pad0: u32,
    pub(super) offset: u64,
    pub(super) pad: [u64; 3],
}

impl Alloc {
    /// Scattered pages of a type, mapped when they are touched.
    pub(super) const fn pages(memtype: u32, bytes: usize) -> Self {
        Self {
            bytes: bytes as u64,
            node: -1,
            memtype,
            layout: SCATTERED,
            leaf_shift: 12,
            flags: 0,
            pad0: 0,
            offset: 0,
            pad: [0; 3],
        }
    }

    pub(super) fn encode(&self) -> [u8; 64] {
        let mut raw = [0; 64];
        put(&mut raw, 0, &self.bytes.to_ne_bytes());
        put(&mut raw, 8, &self.node.to_ne_bytes());
        put(&mut raw, 12, &self.memtype.to_ne_bytes());
        put(&mut raw, 16, &self.layout.to_ne_bytes());
        put(&mut raw, 20, &self.leaf_shift.to_ne_bytes());
        put(&mut raw, 24, &self.flags.to_ne_bytes());
        put(&mut raw, 28, &self.pad0.to_ne_bytes());
        put(&mut raw, 32, &self.offset.to_ne_bytes());
        for (index, word) in self.pad.iter().enumerate() {
            put(&mut raw, 40 + 8 * index, &word.to_ne_bytes());
        }
        raw
    }
}

fn put(raw: &mut [u8], at: usize, field: &[u8]) {
    raw[at..at + field.len()].copy_from_slice(field);
}

fn u32_at(raw: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|byte| raw[at + byte]))
}

fn u64_at(raw: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|byte| raw[at + byte]))
}

/// `struct pagelab_info`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Info {
    pub(super) version: u32,
    pub(super) page_size: u32,
    pub(super) limit_bytes: u64,
    pub(super) reserved_phys: u64,
    pub(super) reserved_bytes: u64,
    pub(super) leaves: [[u64; 3]; 4],
    pub(super) pad: [u64; 4],
}

impl Info {
    pub(super) fn offers(&self, memtype: u32, layout: u32, shift: u32) -> bool {
        self.leaves[memtype as usize][layout as usize] & 1 << shift != 0
    }
}

/// What `PAGELAB_IOC_QUERY` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) memtype: u32,
    pub(super) shift: u32,
    pub(super) entry: u64,
    pub(super) phys: u64,
}

/// An open `/dev/pagelab`.
#[derive(Debug)]
pub(super) struct Device(pub(super) Node);

impl Device {
    pub(super) fn open() -> Result<Self, Errno> {
        Node::open(Door::Pagelab, true).map(Self)
    }

    /// Opened, with an allocation.
    pub(super) fn with(want: &Alloc) -> Result<Self> {
        let device = Self::open().context("opening /dev/pagelab")?;
        device.alloc(want).with_context(|| format!("{want:?}"))?;
        Ok(device)
    }

    /// An allocation, all of it mapped.
    pub(super) fn mapped(want: &Alloc) -> Result<(Self, Ground)> {
        let device = Self::with(want)?;
        let ground = device.map(usize::try_from(want.bytes)?, 0)?;
        Ok((device, ground))
    }

    pub(super) fn info(&self) -> Result<Info> {
        let mut raw = [0xff; 160];
        self.0.call(INFO, &mut raw).context("PAGELAB_IOC_INFO")?;
        let word = |index: usize| u64_at(&raw, 8 * index);
        Ok(Info {
            version: u32_at(&raw, 0),
            page_size: u32_at(&raw, 4),
            limit_bytes: word(1),
            reserved_phys: word(2),
            reserved_bytes: word(3),
            leaves: std::array::from_fn(|row| std::array::from_fn(|at| word(4 + 3 * row + at))),
            pad: std::array::from_fn(|index| word(16 + index)),
        })
    }

    pub(super) fn alloc(&self, want: &Alloc) -> Result<(), Errno> {
        self.0.call(ALLOC, &mut want.encode()).map(|_| ())
    }

    pub(super) fn query(&self, address: usize) -> Result<Leaf, Errno> {
        let mut raw = [0; 48];
        put(&mut raw, 0, &(address as u64).to_ne_bytes());
        self.0.call(QUERY, &mut raw)?;
        let (memtype, shift) = (u32_at(&raw, 8), u32_at(&raw, 12));
        Ok(Leaf { memtype, shift, entry: u64_at(&raw, 16), phys: u64_at(&raw, 24) })
    }

    /// Forgets what is in a part of a segment.
    pub(super) fn forget(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let mut raw = [0; 32];
        put(&mut raw, 0, &offset.to_ne_bytes());
        put(&mut raw, 8, &bytes.to_ne_bytes());
        self.0.call(DROP, &mut raw).map(drop)
    }

    /// Freezes a segment for so long, or thaws it.
    pub(super) fn freeze(&self, milliseconds: u32) -> Result<(), Errno> {
        let mut raw = [0; 32];
        put(&mut raw, 0, &milliseconds.to_ne_bytes());
        self.0.call(FREEZE, &mut raw).map(drop)
    }

    /// Copies a part of a mapping to another one, as the module has it; how many bytes.
    pub(super) fn copy(&self, address: usize, bytes: u64, to: usize) -> Result<u64, Errno> {
        let mut raw = [0; 48];
        put(&mut raw, 0, &(address as u64).to_ne_bytes());
        put(&mut raw, 8, &bytes.to_ne_bytes());
        put(&mut raw, 16, &(to as u64).to_ne_bytes());
        self.0.call(COPY, &mut raw)?;
        Ok(u64_at(&raw, 24))
    }

    /// Maps a part of the allocation for reading and writing, where the kernel thinks best.
    pub(super) fn map(&self, bytes: usize, offset: usize) -> Result<Ground> {
        let how = Mapping { offset: offset as u64, ..Mapping::shared(bytes) };
        Ground::anywhere(&self.0, how).with_context(|| format!("mapping {how:?}"))
    }

    /// The leaf behind an offset of a mapping; it must be there.
    pub(super) fn leaf(&self, ground: &Ground, at: usize) -> Result<Leaf> {
        let leaf = self.query(ground.start() + at).with_context(|| format!("QUERY at {at:#x}"))?;
        ensure!(leaf.shift != 0, "nothing is mapped at {at:#x}");
        Ok(leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden layout is what the C compiler makes of the header.
    #[test]
    fn numbers_and_places_are_those_of_the_header() {
        let golden = include_str!("../../../../memtype/kmod/uapi/layout.txt");
        for (name, number) in [
            ("VERSION", VERSION),
            ("INFO", INFO),
            ("ALLOC", ALLOC),
            ("QUERY", QUERY),
            ("DROP", DROP),
            ("FREEZE", FREEZE),
            ("COPY", COPY),
        ] {
            let line = format!("ioctl PAGELAB_IOC_{name} {number:#x}");
            assert!(golden.lines().any(|golden| golden == line), "{line}");
        }
        assert!(golden.contains(&format!("const PAGELAB_UAPI_VERSION {SPOKEN}\n")));
        assert!(golden.contains(&format!("const PAGELAB_FREEZE_MOST {FREEZE_MOST}\n")));
        let want = Alloc {
            bytes: 1,
            node: 2,
            memtype: 3,
            layout: 4,
            leaf_shift: 5,
            flags: 6,
            pad0: 7,
            offset: 8,
            pad: [9, 10, 11],
        };
        let raw = want.encode();
        assert!(golden.contains(&format!("struct pagelab_alloc size {}", raw.len())));
        let fields =
            ["bytes", "node", "memtype", "layout", "leaf_shift", "flags", "pad0", "offset"];
        for (field, value) in fields.into_iter().zip(1_u8..) {
            let name = format!("field pagelab_alloc.{field} offset ");
            let place = golden.lines().find_map(|line| line.strip_prefix(&name)).expect(field);
            let at: usize = place.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(raw[at], value, "{field}");
        }
        assert_eq!((raw[40], raw[48], raw[56]), (9, 10, 11));
    }
}
