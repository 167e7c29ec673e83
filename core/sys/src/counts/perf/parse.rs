//! The records that the kernel writes into a ring, as values.
//!
//! The one idea: every event of a session asks for the same head (`IP TID TIME ADDR CPU`, in brief
//! `TID TIME ADDR`), so one reader serves all and records of several rings can be put in order of
//! time. Layouts are those of `perf_event_open(2)`; what is shorter than its layout is no record.
//!
//! It is no general parser: what a session does not ask the kernel for is not read here.

use super::plan::{Callers, Event, Source, When};

/// One thing that happened to a watched process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Which of the session's sources it comes from.
    pub source: usize,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// When, in nanoseconds of `CLOCK_MONOTONIC_RAW`.
    pub time_ns: u64,
    /// What.
    pub body: Body,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A sample of the source's event.
    Sample {
        /// The instruction; 0 where it is told in brief.
        ip: u64,
        /// The address that the event is about, 0 where it is about none.
        addr: u64,
        /// The CPU; 0 where it is told in brief.
        cpu: u32,
        /// Whether the processor was in kernel mode.
        kernel: bool,
        /// Return addresses in user space, innermost first, the instruction itself first of all.
        chain: Vec<u64>,
        /// The fields of a tracepoint.
        raw: Vec<u8>,
    },
    /// A mapping that is new or has changed.
    Map(Mapping),
    /// A thread got this name; with `exec` the process became another program.
    Name {
        /// The name.
        name: String,
        /// Whether by `execve`: all mappings are new.
        exec: bool,
    },
    /// The process or thread was made by this process.
    Fork {
        /// The process that made it; the same process where a thread was made.
        parent: u32,
    },
    /// The thread ended.
    Exit,
    /// The kernel had no room for so many records of the source.
    Lost(u64),
    /// Where the program was at an event, with what its callers can be found from.
    Stack(Stack),
}

/// The registers of a thread in user space, and the upper end of its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Return addresses as in [`Body::Sample`].
    pub chain: Vec<u64>,
    /// The general registers by their DWARF number, the instruction pointer last.
    pub registers: [u64; 17],
    /// Bytes from the stack pointer on.
    pub bytes: Vec<u8>,
}

/// A mapping of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Protection: `PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4.
    pub protection: u32,
    /// The flags of `mmap`: `MAP_SHARED` 1, `MAP_PRIVATE` 2, `MAP_HUGETLB` 0x40000.
    pub flags: u32,
    /// Inode of the file, 0 without one.
    pub inode: u64,
    /// Path of the file, or the kernel's name for it: `//anon`, `[heap]`, `[stack]`.
    pub name: String,
}

/// The types of records.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;

const MISC_MODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;

/// Values above this mark a context in a callchain, they are no addresses.
const CONTEXT_MAX: u64 = u64::MAX - 4095;

/// Bytes of the stack that are asked for.
pub(super) const STACK_BYTES: u32 = 8 << 10;
/// The DWARF numbers of registers in the order of their bits in `perf_regs.h`: `AX BX CX DX SI DI
/// BP SP IP`, and `R8` to `R15` (x86-64 psABI, figure 3.36).
const DWARF: [usize; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15];
/// `PERF_SAMPLE_REGS_ABI_64`.
const ABI_64: u64 = 2;

/// What a source asked for.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shape {
    /// Callers.
    pub(super) chain: bool,
    /// The fields of a tracepoint.
    pub(super) raw: bool,
    /// Thread, time and address alone: half the bytes, at half the cost to the program.
    pub(super) brief: bool,
    /// Registers and the stack.
    pub(super) stack: bool,
}

impl Shape {
    pub(super) fn of(source: &Source) -> Self {
        Self {
            chain: source.callers != Callers::None,
            raw: matches!(source.event, Event::Tracepoint(_)),
            brief: source.when == When::InBrief,
            stack: matches!(source.callers, Callers::Stack(_)),
        }
    }

    /// Bytes that `sample_id_all` adds to records that are no samples: `TID TIME`, and `CPU`.
    fn trailer(self) -> usize {
        if self.brief { 16 } else { 24 }
    }
}

/// Reads one record without its header; `None` for one of no interest, or too short.
pub(super) fn parse(
    source: usize,
    kind: u32,
    misc: u16,
    bytes: &[u8],
    shape: Shape,
) -> Option<Record> {
    if kind == SAMPLE {
        return sample(source, misc, bytes, shape);
    }
    let (payload, mut trailer) = (
        Words(bytes.get(..bytes.len().checked_sub(shape.trailer())?)?),
        Words(bytes.get(bytes.len() - shape.trailer()..)?),
    );
    let (pid, tid, time_ns) = (trailer.half()?, trailer.half()?, trailer.word()?);
    let mut words = payload;
    let (pid, tid, body) = match kind {
        MMAP2 => {
            let (pid, tid) = (words.half()?, words.half()?);
            (pid, tid, Body::Map(mapping(&mut words)?))
        }
        COMM => {
            let (pid, tid) = (words.half()?, words.half()?);
            let exec = misc & MISC_COMM_EXEC != 0;
            (pid, tid, Body::Name { name: words.text(), exec })
        }
        FORK | EXIT => {
            let (pid, parent, tid) = (words.half()?, words.half()?, words.half()?);
            (pid, tid, if kind == FORK { Body::Fork { parent } } else { Body::Exit })
        }
        LOST => {
            words.word()?;
            (pid, tid, Body::Lost(words.word()?))
        }
        LOST_SAMPLES => (pid, tid, Body::Lost(words.word()?)),
        _ => return None,
    };
    Some(Record { source, pid, tid, time_ns, body })
}

fn sample(source: usize, misc: u16, bytes: &[u8], shape: Shape) -> Option<Record> {
    let mut words = Words(bytes);
    let ip = if shape.brief { 0 } else { words.word()? };
    let (pid, tid, time_ns) = (words.half()?, words.half()?, words.word()?);
    let addr = words.word()?;
    let cpu = if shape.brief { 0 } else { words.half()? };
    if !shape.brief {
        words.half()?;
    }
    let mut chain = Vec::new();
    if shape.chain {
        let count = usize::try_from(words.word()?).ok()?;
        let values = words.take(count.checked_mul(8)?)?;
        chain.reserve_exact(count);
        chain.extend(
            values
                .chunks_exact(8)
                .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
                .filter(|value| *value < CONTEXT_MAX),
        );
    }
    let mut raw = Vec::new();
    if shape.raw {
        let length = usize::try_from(words.half()?).ok()?;
        raw = words.take(length)?.to_vec();
    }
    if shape.stack {
        let (registers, bytes) = stack(&mut words)?;
        let body = Body::Stack(Stack { chain, registers, bytes });
        return Some(Record { source, pid, tid, time_ns, body });
    }
    let kernel = misc & MISC_MODE == MISC_KERNEL;
    let body = Body::Sample { ip, addr, cpu, kernel, chain, raw };
    Some(Record { source, pid, tid, time_ns, body })
}

/// The registers and the stack of a thread; `None` of one that has none in user space, or is of 32
/// bits.
fn stack(words: &mut Words<'_>) -> Option<([u64; 17], Vec<u8>)> {
    if words.word()? != ABI_64 {
        return None;
    }
    let mut registers = [0; DWARF.len()];
    for number in DWARF {
        registers[number] = words.word()?;
    }
    let asked = usize::try_from(words.word()?).ok()?;
    let bytes = words.take(asked)?;
    // What there was: the stack may end before.
    let told = if asked == 0 { 0 } else { usize::try_from(words.word()?).ok()? };
    Some((registers, bytes.get(..told)?.to_vec()))
}

fn mapping(words: &mut Words<'_>) -> Option<Mapping> {
    let (start, length, offset) = (words.word()?, words.word()?, words.word()?);
    words.word()?; // device
    let inode = words.word()?;
    words.word()?; // generation of the inode
    let (protection, flags) = (words.half()?, words.half()?);
    Some(Mapping { start, length, offset, protection, flags, inode, name: words.text() })
}

/// Takes numbers off the front of some bytes.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn word(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// What is left, up to the first zero byte.
    fn text(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn two(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[test]
    fn a_sample_has_its_callers_and_its_raw_data() {
        let mut sent = bytes(&[0x40_1000, two(7, 8), 99, 0x7f00, two(1, 0), 3, u64::MAX - 511]);
        sent.extend(bytes(&[0x40_1000, 0x40_2000]));
        sent.extend(4_u32.to_le_bytes());
        sent.extend([1, 2, 3, 4]);
        let shape = Shape { chain: true, raw: true, brief: false, stack: false };
        let record = parse(2, SAMPLE, 2, &sent, shape).unwrap();
        assert_eq!((record.source, record.pid, record.tid, record.time_ns), (2, 7, 8, 99));
        let chain = vec![0x40_1000, 0x40_2000];
        let raw = vec![1, 2, 3, 4];
        let kernel = false;
        let body = Body::Sample { ip: 0x40_1000, addr: 0x7f00, cpu: 1, kernel, chain, raw };
        assert_eq!(record.body, body);
    }

    #[test]
    fn in_brief_a_sample_is_a_thread_a_time_and_an_address() {
        let brief = Shape { brief: true, ..Shape::default() };
        let record = parse(3, SAMPLE, 2, &bytes(&[two(7, 8), 99, 0x7f00]), brief).unwrap();
        assert_eq!((record.source, record.pid, record.tid, record.time_ns), (3, 7, 8, 99));
        let (chain, raw) = (Vec::new(), Vec::new());
        let body = Body::Sample { ip: 0, addr: 0x7f00, cpu: 0, kernel: false, chain, raw };
        assert_eq!(record.body, body);
        let lost = parse(3, LOST, 0, &bytes(&[17, 3, two(7, 8), 5]), brief).unwrap();
        assert_eq!((lost.tid, lost.time_ns, lost.body), (8, 5, Body::Lost(3)));
    }

    #[test]
    fn a_stack_has_its_registers_by_their_dwarf_numbers() {
        let mut words = vec![0x40_1000, two(7, 8), 99, 0x7f00, two(1, 0), 1, 0x40_1000, ABI_64];
        words.extend(100..117);
        words.extend([16, 5, 6, 8]);
        let shape = Shape { chain: true, stack: true, ..Shape::default() };
        let record = parse(4, SAMPLE, 2, &bytes(&words), shape).unwrap();
        let Body::Stack(Stack { chain, registers, bytes: stack }) = record.body else { panic!() };
        let [ax, bx, sp, ip] = [0, 3, 7, 16].map(|number: usize| registers[number]);
        assert_eq!((chain, [ax, bx, sp, ip]), (vec![0x40_1000], [100, 101, 107, 108]));
        assert_eq!(stack, bytes(&[5]), "the stack ends there");
        // More than was asked for, a thread of 32 bits, and one without registers.
        for (at, value) in [(words.len() - 1, 17), (7, 1), (7, 0)] {
            let mut words = words.clone();
            words[at] = value;
            assert_eq!(parse(4, SAMPLE, 2, &bytes(&words), shape), None);
        }
    }

    #[test]
    fn a_mapping_has_the_time_of_its_trailer() {
        let mut sent = bytes(&[two(7, 7), 0x7f00_0000, 0x2000, 0x1000, 0, 42, 0, two(5, 2)]);
        sent.extend(*b"/lib/x.so\0\0\0\0\0\0\0");
        sent.extend(bytes(&[two(7, 7), 1234, 0]));
        let record = parse(0, MMAP2, 0, &sent, Shape::default()).unwrap();
        let Body::Map(mapping) = record.body else { panic!() };
        assert_eq!((record.time_ns, mapping.inode, mapping.offset), (1234, 42, 0x1000));
        assert_eq!((mapping.protection, mapping.flags), (5, 2));
        assert_eq!(mapping.name, "/lib/x.so");
    }

    #[test]
    fn an_exec_is_told_from_a_new_name() {
        let mut sent = bytes(&[two(7, 7)]);
        sent.extend(*b"sh\0\0\0\0\0\0");
        sent.extend(bytes(&[two(7, 7), 5, 0]));
        for (misc, exec) in [(0, false), (MISC_COMM_EXEC, true)] {
            let record = parse(0, COMM, misc, &sent, Shape::default()).unwrap();
            assert_eq!(record.body, Body::Name { name: "sh".into(), exec });
        }
    }

    #[test]
    fn what_was_lost_is_a_record_too() {
        let sent = bytes(&[17, 3, two(7, 7), 5, 0]);
        assert_eq!(parse(1, LOST, 0, &sent, Shape::default()).unwrap().body, Body::Lost(3));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_reader(
            kind in 0_u32..16,
            misc in any::<u16>(),
            sent in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let full = Shape { chain: true, raw: true, brief: false, stack: false };
            let stack = Shape { stack: true, ..full };
            let brief = Shape { brief: true, ..Shape::default() };
            for shape in [Shape::default(), full, brief, stack] {
                let _ = parse(0, kind, misc, &sent, shape);
            }
        }
    }
}
