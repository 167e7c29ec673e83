//! The parameters that the three workloads of memory types share, and what they stand for.

use pagelab_bench::{Kind, Param, Values, words_of};
use pagelab_record::units::{format_bytes, parse_bytes};
use pagelab_sys::memtype::{self, MemoryType};

/// Sizes: a number of bytes, or what the module says that its nodes for older programs have.
#[derive(Debug)]
struct Bytes;

/// Asks the module, as memcachetest does without `-s`.
const MODULE: &str = "module";

impl Values for Bytes {
    fn canonical(&self, value: &str) -> Result<String, String> {
        let bytes = if value == MODULE {
            memtype::LegacyNode::open(MemoryType::Wb)
                .map_err(|error| format!("{error}; load the module without legacy=0"))?
                .bytes()
        } else {
            parse_bytes(value)?
        };
        if bytes == 0 { Err("a size is not 0".to_owned()) } else { Ok(format_bytes(bytes)) }
    }

    fn choices(&self) -> Vec<String> {
        vec![MODULE.to_owned()]
    }
}

/// How much memory.
pub(super) const SIZE: Param = Param::axis("size", Kind::Own(&Bytes), "16m").help(
    "memory that a round covers, all threads together; module: what /dev/memcache_wb says by \
     its ioctl",
);
/// Memory types by the kernel's names.
pub(super) const TYPES: [(&str, MemoryType); 4] = [
    ("wb", MemoryType::Wb),
    ("uc", MemoryType::UcMinus),
    ("wc", MemoryType::Wc),
    ("wt", MemoryType::Wt),
];

/// Memory type under test.
pub(super) const TYPE: Param =
    Param::axis("type", Kind::Choice(&words_of(&TYPES)), "wb").asks(&["uc", "wc", "wt"]).help(
        "memory type; uc is the kernel's UC-, which pgprot_noncached gives; wt is for reserved \
           frames; all but wb need the kernel module",
    );
/// Where the frames come from.
pub(super) const FRAMES: Param = Param::axis(
    "frames",
    Kind::Choice(&["auto", "ordinary", "scattered", "contiguous", "reserved", "nodes"]),
    "auto",
)
.help(
    "ordinary: anonymous memory; scattered, contiguous, reserved: by the module; nodes: what its \
           /dev/memcache_* have; auto: scattered where the module is (reserved for wt), else \
           ordinary for wb",
);
/// Size of a page-table leaf.
pub(super) const LEAF: Param =
    Param::axis("leaf", Kind::Choice(&["auto", "4k", "2m", "1g"]), "auto").help(
        "size of a page-table leaf; auto: the largest that the module offers for these frames \
           and that divides the size, and 4k for ordinary and scattered ones",
    );
/// CPUs of the workers.
pub(super) const CPU: Param = Param::axis("cpu", Kind::Cpus(&["auto"]), "auto")
    .help("CPUs that workers are pinned to: a list, or auto (the least busy, then on)");
/// Node of the memory.
pub(super) const NODE: Param =
    Param::axis("node", Kind::Node(&["any"]), "any").help("node that the memory lies on");
