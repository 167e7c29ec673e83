#![expect(missing_docs, reason = "they are what the header says of them")]
//! `memtype/kmod/uapi/pagelab.h` in Rust: structures, numbers, constants.
//!
//! Nothing here is decided here. `memtype/kmod/uapi/layout.txt` is what the C compiler makes of the
//! header, and the test below compares every name with it.

use rustix::ioctl::{Opcode, opcode};

/// `PAGELAB_UAPI_VERSION`: the version that this program speaks.
pub const VERSION: u32 = 2;

/// Where the module answers.
pub const NODE: &str = "/dev/pagelab";

pub const WB: u32 = 0;
pub const UC_MINUS: u32 = 1;
pub const WC: u32 = 2;
pub const WT: u32 = 3;
pub const UC: u32 = 4;
pub const WP: u32 = 5;
pub const MEMTYPES: usize = 4;

pub const SCATTERED: u32 = 0;
pub const CONTIGUOUS: u32 = 1;
pub const RESERVED: u32 = 2;
pub const LAYOUTS: usize = 3;

pub const EAGER: u32 = 1;
pub const SEGMENT: u32 = 2;
pub const ZERO_AT_FAULT: u32 = 4;

/// `PAGELAB_FREEZE_MOST`: the longest that a segment may be frozen, in milliseconds.
pub const FREEZE_MOST: u32 = 600_000;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PagelabInfo {
    pub version: u32,
    pub page_size: u32,
    pub limit_bytes: u64,
    pub reserved_phys: u64,
    pub reserved_bytes: u64,
    pub leaves: [[u64; LAYOUTS]; MEMTYPES],
    pub pad: [u64; 4],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PagelabAlloc {
    pub bytes: u64,
    pub node: i32,
    pub memtype: u32,
    pub layout: u32,
    pub leaf_shift: u32,
    pub flags: u32,
    pub pad0: u32,
    pub offset: u64,
    pub pad: [u64; 3],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PagelabQuery {
    pub addr: u64,
    pub memtype: u32,
    pub leaf_shift: u32,
    pub entry: u64,
    pub phys: u64,
    pub pad: [u64; 2],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PagelabDrop {
    pub offset: u64,
    pub bytes: u64,
    pub pad: [u64; 2],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PagelabFreeze {
    pub milliseconds: u32,
    pub pad0: u32,
    pub pad: [u64; 3],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PagelabCopy {
    pub addr: u64,
    pub bytes: u64,
    pub to: u64,
    pub copied: u64,
    pub pad: [u64; 2],
}

const MAGIC: u8 = 0xDC;

pub const IOC_VERSION: Opcode = opcode::read::<u32>(MAGIC, 0);
pub const IOC_INFO: Opcode = opcode::read::<PagelabInfo>(MAGIC, 1);
pub const IOC_ALLOC: Opcode = opcode::write::<PagelabAlloc>(MAGIC, 2);
pub const IOC_QUERY: Opcode = opcode::read_write::<PagelabQuery>(MAGIC, 3);
pub const IOC_DROP: Opcode = opcode::write::<PagelabDrop>(MAGIC, 4);
pub const IOC_FREEZE: Opcode = opcode::write::<PagelabFreeze>(MAGIC, 5);
pub const IOC_COPY: Opcode = opcode::read_write::<PagelabCopy>(MAGIC, 6);

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, mem::offset_of};

    use super::*;

    /// What `layout.txt` says, line by line, without the numbers: those are the values.
    fn layout() -> BTreeMap<String, Vec<u64>> {
        let text = include_str!("../../../memtype/kmod/uapi/layout.txt");
        let number = |word: &str| match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let line = |line: &str| {
            let (numbers, words): (Vec<&str>, Vec<&str>) =
                line.split_whitespace().partition(|word| number(word).is_some());
            (words.join(" "), numbers.into_iter().filter_map(number).collect())
        };
        lines.map(line).collect()
    }

    macro_rules! fields {
        ($known:ident, $name:literal, $type:ty, [$($field:ident),+]) => {
            $known.push((format!("struct {} size", $name), vec![size_of::<$type>() as u64]));
            let value = <$type>::default();
            $(
                let key = format!("field {}.{} offset size", $name, stringify!($field));
                let (offset, size) = (offset_of!($type, $field), size_of_val(&value.$field));
                $known.push((key, vec![offset as u64, size as u64]));
            )+
        };
    }

    #[test]
    fn the_layout_is_what_the_c_compiler_makes_of_the_header() {
        let mut known: Vec<(String, Vec<u64>)> = Vec::new();
        let constants = [
            ("const PAGELAB_UAPI_VERSION", u64::from(VERSION)),
            ("const PAGELAB_IOC_MAGIC", u64::from(MAGIC)),
            ("const PAGELAB_WB", u64::from(WB)),
            ("const PAGELAB_UC_MINUS", u64::from(UC_MINUS)),
            ("const PAGELAB_WC", u64::from(WC)),
            ("const PAGELAB_WT", u64::from(WT)),
            ("const PAGELAB_UC", u64::from(UC)),
            ("const PAGELAB_WP", u64::from(WP)),
            ("const PAGELAB_MEMTYPES", MEMTYPES as u64),
            ("const PAGELAB_SCATTERED", u64::from(SCATTERED)),
            ("const PAGELAB_CONTIGUOUS", u64::from(CONTIGUOUS)),
            ("const PAGELAB_RESERVED", u64::from(RESERVED)),
            ("const PAGELAB_LAYOUTS", LAYOUTS as u64),
            ("const PAGELAB_EAGER", u64::from(EAGER)),
            ("const PAGELAB_SEGMENT", u64::from(SEGMENT)),
            ("const PAGELAB_ZERO_AT_FAULT", u64::from(ZERO_AT_FAULT)),
            ("const PAGELAB_ALLOC_FLAGS", u64::from(EAGER | SEGMENT | ZERO_AT_FAULT)),
            ("const PAGELAB_FREEZE_MOST", u64::from(FREEZE_MOST)),
            ("ioctl PAGELAB_IOC_VERSION", u64::from(IOC_VERSION)),
            ("ioctl PAGELAB_IOC_INFO", u64::from(IOC_INFO)),
            ("ioctl PAGELAB_IOC_ALLOC", u64::from(IOC_ALLOC)),
            ("ioctl PAGELAB_IOC_QUERY", u64::from(IOC_QUERY)),
            ("ioctl PAGELAB_IOC_DROP", u64::from(IOC_DROP)),
            ("ioctl PAGELAB_IOC_FREEZE", u64::from(IOC_FREEZE)),
            ("ioctl PAGELAB_IOC_COPY", u64::from(IOC_COPY)),
        ];
        known.extend(constants.map(|(name, value)| (name.to_owned(), vec![value])));
        fields!(
            known,
            "pagelab_info",
            PagelabInfo,
            [version, page_size, limit_bytes, reserved_phys, reserved_bytes, leaves, pad]
        );
        fields!(
            known,
            "pagelab_alloc",
            PagelabAlloc,
            [bytes, node, memtype, layout, leaf_shift, flags, pad0, offset, pad]
        );
        fields!(
            known,
            "pagelab_query",
            PagelabQuery,
            [addr, memtype, leaf_shift, entry, phys, pad]
        );
        fields!(known, "pagelab_drop", PagelabDrop, [offset, bytes, pad]);
        fields!(known, "pagelab_freeze", PagelabFreeze, [milliseconds, pad0, pad]);
        fields!(known, "pagelab_copy", PagelabCopy, [addr, bytes, to, copied, pad]);
        let known: BTreeMap<_, _> = known.into_iter().collect();
        assert_eq!(known, layout(), "left: this program; right: memtype/kmod/uapi/layout.txt");
    }
}
