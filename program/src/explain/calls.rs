//! What a process asks the kernel to do with its memory: the calls that no mapping record tells of.
//!
//! The one idea: a few system calls decide whether a later fault could have been larger: what is
//! given back comes again, what is advised against stays small. Each is told when it is entered,
//! in order with the faults; that it may fail is neglected.

use pagelab_sys::counts::perf::tracefs::Tracepoint;

/// The tracepoints, which take root and `CONFIG_FTRACE_SYSCALLS`.
pub const POINTS: [&str; 7] = [
    "syscalls:sys_enter_madvise",
    "syscalls:sys_enter_munmap",
    "syscalls:sys_enter_brk",
    "syscalls:sys_enter_prctl",
    "syscalls:sys_enter_mmap",
    "syscalls:sys_enter_mremap",
    "syscalls:sys_exit_mremap",
];

/// One such call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Memory was advised to be, or not to be, of huge pages.
    Advise(u64, u64, bool),
    /// The pages were given back; the mapping stays.
    Release(u64, u64),
    /// The mapping is gone.
    Unmap(u64, u64),
    /// The heap ends here.
    Break(u64),
    /// The process may have larger pages, or not.
    Thp(bool),
    /// What the thread maps next is a stack.
    Stack,
    /// What lies here, from one address to another, becomes so many bytes elsewhere...
    Move(u64, u64, u64),
    /// ...from this address on; `None` where the kernel refused.
    Moved(Option<u64>),
}

const MADV_DONTNEED: u64 = 4;
const MADV_HUGEPAGE: u64 = 14;
const MADV_NOHUGEPAGE: u64 = 15;
const MADV_DONTNEED_LOCKED: u64 = 24;
const PR_SET_THP_DISABLE: u64 = 41;
const MAP_FIXED: u64 = 0x10;
const MAP_STACK: u64 = 0x2_0000;
const MREMAP_DONTUNMAP: u64 = 4;
/// Addresses of programs end below this; an error of a call is above.
const ADDRESSES: u64 = 1 << 63;

impl Call {
    /// What it is called, where it gives pages back.
    pub fn gives_back(self) -> Option<&'static str> {
        match self {
            Self::Release(..) => Some("MADV_DONTNEED"),
            Self::Unmap(..) => Some("munmap"),
            Self::Break(_) => Some("brk"),
            _ => None,
        }
    }

    /// Reads a sample of one of [`POINTS`]; `None` for a call that changes nothing here.
    pub fn of(point: &Tracepoint, raw: &[u8]) -> Option<Self> {
        let field = |name| point.field(raw, name);
        let range = |start: u64, length: u64| {
            Some((start, start.checked_add(length)?.checked_next_multiple_of(4096)?))
        };
        match point.name.strip_prefix("syscalls:sys_")? {
            "enter_madvise" => {
                let (start, end) = range(field("start")?, field("len_in")?)?;
                match field("behavior")? {
                    MADV_HUGEPAGE => Some(Self::Advise(start, end, true)),
                    MADV_NOHUGEPAGE => Some(Self::Advise(start, end, false)),
                    MADV_DONTNEED | MADV_DONTNEED_LOCKED => Some(Self::Release(start, end)),
                    _ => None,
                }
            }
            "enter_munmap" => {
                let (start, end) = range(field("addr")?, field("len")?)?;
                Some(Self::Unmap(start, end))
            }
            // In place of whatever was there.
            "enter_mmap" if field("flags")? & MAP_FIXED != 0 => {
                let (start, end) = range(field("addr")?, field("len")?)?;
                Some(Self::Unmap(start, end))
            }
            "enter_mmap" if field("flags")? & MAP_STACK != 0 => Some(Self::Stack),
            // What stays mapped as well is another mapping, which nothing tells of.
            "enter_mremap" if field("flags")? & MREMAP_DONTUNMAP == 0 => {
                let (start, end) = range(field("addr")?, field("old_len")?)?;
                Some(Self::Move(start, end, field("new_len")?.checked_next_multiple_of(4096)?))
            }
            "exit_mremap" => {
                let start = field("ret")?;
                Some(Self::Moved(Some(start).filter(|start| *start < ADDRESSES)))
            }
            "enter_brk" => {
                let end = field("brk")?.checked_next_multiple_of(4096)?;
                (end > 0).then_some(Self::Break(end))
            }
            // With flags (since Linux 6.18) memory that is advised may still have them.
            "enter_prctl" if field("option")? == PR_SET_THP_DISABLE => {
                Some(Self::Thp(field("arg2")? == 0 || field("arg3")? != 0))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, fields: &[&str], words: &[u64]) -> Option<Call> {
        let line = |(index, field): (usize, &&str)| {
            format!("\tfield:unsigned long {field};\toffset:{};\tsize:8;\n", index * 8)
        };
        let lines: String = fields.iter().enumerate().map(line).collect();
        let name = format!("syscalls:sys_enter_{name}");
        let point = Tracepoint::parse(&name, &format!("ID: 7\nformat:\n{lines}")).unwrap();
        let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Call::of(&point, &raw)
    }

    #[test]
    fn calls_are_told_by_what_they_do_to_memory() {
        let advise = |behavior| {
            call("madvise", &["start", "len_in", "behavior"], &[0x20_0000, 5000, behavior])
        };
        let (start, end) = (0x20_0000, 0x20_2000);
        assert_eq!(advise(14), Some(Call::Advise(start, end, true)));
        assert_eq!(advise(15), Some(Call::Advise(start, end, false)));
        assert_eq!(advise(4), Some(Call::Release(start, end)));
        assert_eq!(advise(8), None, "freed pages are there until somebody needs them");
        let mmap = |flags| call("mmap", &["addr", "len", "flags"], &[0x1000, 0x1000, flags]);
        assert_eq!(mmap(0x32), Some(Call::Unmap(0x1000, 0x2000)), "in place of what was there");
        assert_eq!((mmap(0x22), mmap(0x2_0022)), (None, Some(Call::Stack)));
        let fields = ["addr", "old_len", "new_len", "flags"];
        let moved = call("mremap", &fields, &[0x1000, 0x1000, 0x3000, 1]);
        assert_eq!(moved, Some(Call::Move(0x1000, 0x2000, 0x3000)));
        let unmap = call("munmap", &["addr", "len"], &[0x1000, 0x1000]);
        assert_eq!(unmap, Some(Call::Unmap(0x1000, 0x2000)));
        assert_eq!(call("munmap", &["addr", "len"], &[u64::MAX, 2]), None);
        assert_eq!(call("brk", &["brk"], &[0]), None, "it only asks");
        assert_eq!(call("brk", &["brk"], &[0x5001]), Some(Call::Break(0x6000)));
        let thp = |words: &[u64]| call("prctl", &["option", "arg2", "arg3"], words);
        assert_eq!(thp(&[41, 1, 0]), Some(Call::Thp(false)));
        assert_eq!(thp(&[41, 0, 0]), Some(Call::Thp(true)));
        assert_eq!(thp(&[41, 1, 2]), Some(Call::Thp(true)));
        assert_eq!(thp(&[15, 0, 0]), None);
    }
}
