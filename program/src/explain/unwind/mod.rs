//! Callers from the registers and the stack of a thread, by the unwind tables of its files.
//!
//! `.eh_frame` says for each instruction where its caller's registers are (LSB Core, "Exception
//! Frames"); compilers write it for x86-64 whether or not the code keeps frame pointers, and
//! `strip` leaves it. Code without a table, as of a JIT compiler, is taken to keep frame pointers.
//!
//! Files, registers and stacks are those of another program, which may have made them up: every
//! read is checked, each step goes towards the end of the stack, and tables, expressions and frames
//! are bounded.

use std::{collections::HashMap, path::Path, rc::Rc};

use elf::{ElfStream, abi::PT_LOAD, endian::AnyEndian};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, Evaluation, EvaluationResult, LittleEndian,
    Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value,
};
use pagelab_sys::{
    counts::perf::Stack,
    files::regular::{self, Links},
};

use super::frame::Frame;

/// DWARF numbers of registers of x86-64.
const BP: usize = 6;
const SP: usize = 7;
const IP: usize = 16;

/// The longest section that is read, in bytes, and all of them together.
const SECTION_MAX: u64 = 64 << 20;
const ALL_MAX: u64 = 256 << 20;
/// Files that are looked into.
const FILES_MAX: usize = 4096;
/// The longest entry of a table that is followed, in bytes.
const ENTRY_MAX: usize = 64 << 10;
/// Operations of one expression.
const OPERATIONS_MAX: u32 = 1000;

type Registers = [u64; IP + 1];
type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Why no further caller was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There is none, or no more were asked for.
    Whole,
    /// The part of the stack that was told ends there.
    Short,
    /// The last function has no unwind table, and keeps no frame pointer.
    Lost,
}

/// What unwinds: the tables of the files that were met so far.
#[derive(Debug, Default)]
pub struct Unwinder {
    files: HashMap<Rc<str>, Option<Tables>>,
    bytes: u64,
    context: UnwindContext<usize>,
}

/// The unwind tables of a file.
#[derive(Debug)]
pub struct Tables {
    /// File offset, length and address of each loaded segment.
    segments: Vec<(u64, u64, u64)>,
    /// `.eh_frame` and `.eh_frame_hdr`, each with its address.
    frames: (u64, Box<[u8]>),
    header: (u64, Box<[u8]>),
}

impl Unwinder {
    /// Return addresses, innermost first, the instruction itself first of all; at most so many.
    /// `at` says which file an instruction lies in, and which offset; `None` where no code is.
    pub fn unwind(
        &mut self,
        stack: &Stack,
        most: usize,
        mut at: impl FnMut(u64) -> Option<Frame>,
    ) -> (Vec<u64>, End) {
        let mut registers = stack.registers;
        let mut addresses = vec![registers[IP]];
        // A return address may be the first of the next function.
        let mut back = 0;
        while addresses.len() < most {
            let Some(frame) = at(registers[IP].wrapping_sub(back)) else {
                addresses.pop();
                return (addresses, End::Lost);
            };
            let mut memory = Memory::of(stack);
            let step = self.step(&frame, &registers, &mut memory);
            let step = step.unwrap_or_else(|| by_frame_pointer(&registers, &mut memory));
            match step {
                Step::Caller(caller, _) if caller[IP] == 0 => return (addresses, End::Whole),
                Step::Caller(caller, is_signal) if caller[SP] > registers[SP] => {
                    addresses.push(caller[IP]);
                    registers = *caller;
                    back = u64::from(!is_signal);
                }
                Step::Last => return (addresses, End::Whole),
                _ if memory.is_short => return (addresses, End::Short),
                _ => return (addresses, End::Lost),
            }
        }
        (addresses, End::Whole)
    }

    /// By the table of the file; `None` where it has none for the instruction.
    fn step(&mut self, at: &Frame, registers: &Registers, memory: &mut Memory<'_>) -> Option<Step> {
        if !self.files.contains_key(&at.file) && self.files.len() < FILES_MAX {
            let tables = Tables::read(&at.file, ALL_MAX - self.bytes);
            self.bytes += tables.as_ref().map_or(0, Tables::bytes);
            self.files.insert(Rc::clone(&at.file), tables);
        }
        let tables = self.files.get(&at.file)?.as_ref()?;
        tables.step(at.at, registers, memory, &mut self.context)
    }

    /// Takes these tables to be those of a file.
    pub fn suppose(&mut self, file: &str, tables: Tables) {
        self.files.insert(file.into(), Some(tables));
    }
}

/// What one step came to.
enum Step {
    /// The registers of the caller, and whether it was interrupted there by a signal.
    Caller(Box<Registers>, bool),
    /// The function has no caller.
    Last,
    /// What the table refers to is not known.
    Unknown,
}

/// The part of the stack that was told.
struct Memory<'a> {
    start: u64,
    bytes: &'a [u8],
    /// Whether something behind its end was wanted.
    is_short: bool,
}

impl<'a> Memory<'a> {
    fn of(stack: &'a Stack) -> Self {
        Self { start: stack.registers[SP], bytes: &stack.bytes, is_short: false }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(offset..).and_then(|rest| rest.first_chunk());
        self.is_short |= word.is_none();
        word.map(|word| u64::from_le_bytes(*word))
    }
}

/// The caller of a function that keeps a frame pointer.
fn by_frame_pointer(registers: &Registers, memory: &mut Memory<'_>) -> Step {
    let base = registers[BP];
    if base == 0 {
        return Step::Last;
    }
    let mut caller = Box::new(*registers);
    let found = memory.word(base).zip(memory.word(base.wrapping_add(8)));
    let Some((base_before, address)) = found else {
        // A frame pointer that points elsewhere is none.
        memory.is_short &= base > registers[SP] && base - registers[SP] < 1 << 20;
        return Step::Unknown;
    };
    (caller[BP], caller[IP], caller[SP]) = (base_before, address, base.wrapping_add(16));
    Step::Caller(caller, false)
}

impl Tables {
    /// Those of a file; `None` where it has none, or they are larger than what is left of the room.
    fn read(path: &str, room: u64) -> Option<Self> {
        let file = regular::open(Path::new(path), Links::Followed).ok()?;
        let mut elf = ElfStream::<AnyEndian, _>::open_stream(file).ok()?;
        let loaded = elf.segments().iter().filter(|segment| segment.p_type == PT_LOAD);
        let segments = loaded.map(|s| (s.p_offset, s.p_filesz, s.p_vaddr)).collect();
        let mut section = |name| {
            let header = *elf.section_header_by_name(name).ok()??;
            if header.sh_size > SECTION_MAX {
                return None;
            }
            let (bytes, compression) = elf.section_data(&header).ok()?;
            compression.is_none().then(|| (header.sh_addr, Box::from(bytes)))
        };
        let tables =
            Self { segments, frames: section(".eh_frame")?, header: section(".eh_frame_hdr")? };
        (tables.bytes() <= room).then_some(tables)
    }

    /// Tables of one segment, which lies in its file where it lies in memory.
    pub fn of(frames: (u64, Box<[u8]>), header: (u64, Box<[u8]>)) -> Self {
        Self { segments: vec![(0, u64::MAX, 0)], frames, header }
    }

    fn bytes(&self) -> u64 {
        (self.frames.1.len() + self.header.1.len()) as u64
    }

    /// The registers of the caller of what is at a file offset; `None` where no entry is for it.
    fn step(
        &self,
        at: u64,
        registers: &Registers,
        memory: &mut Memory<'_>,
        context: &mut UnwindContext<usize>,
    ) -> Option<Step> {
        let inside = |s: &&(u64, u64, u64)| at >= s.0 && at - s.0 < s.1;
        let (offset, _, start) = self.segments.iter().find(inside)?;
        let address = (at - offset).checked_add(*start)?;
        let section = EhFrame::new(&self.frames.1, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.frames.0);
        let entry = self.entry(address)?;
        let entry = section.fde_from_offset(&bases, entry.into(), EhFrame::cie_from_offset).ok()?;
        let is_sound = entry.contains(address)
            && entry.entry_len() <= ENTRY_MAX
            && entry.cie().entry_len() <= ENTRY_MAX;
        if !is_sound {
            return None;
        }
        let row = entry.unwind_info_for_address(&section, &bases, context, address).ok()?;
        let mut values =
            Values { section: &section, encoding: entry.cie().encoding(), registers, memory };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                values.register(*register).map(|value| value.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => values.evaluate(expression, None),
        };
        let Some(cfa) = cfa else { return Some(Step::Unknown) };
        let mut caller = Box::new(*registers);
        caller[SP] = cfa;
        for (number, value) in caller.iter_mut().enumerate().take(IP) {
            let rule = row.register(Register(u16::try_from(number).ok()?));
            // What is not known is not needed, as long as no rule asks for it.
            if let Some(found) = rule.and_then(|rule| values.follow(&rule, *value, cfa)) {
                *value = found;
            }
        }
        let rule = row.register(entry.cie().return_address_register());
        caller[IP] = match rule {
            None | Some(RegisterRule::Undefined) => return Some(Step::Last),
            Some(rule) => match values.follow(&rule, registers[IP], cfa) {
                Some(address) => address,
                None => return Some(Step::Unknown),
            },
        };
        Some(Step::Caller(caller, entry.is_signal_trampoline()))
    }

    /// Where in `.eh_frame` the entry is that may be for an address: `.eh_frame_hdr` is a table of
    /// pairs in order of address, in the one form that linkers write.
    fn entry(&self, address: u64) -> Option<usize> {
        let (start, bytes) = (self.header.0, &self.header.1);
        // Version 1; a relative address of `.eh_frame`, a count, addresses relative to this one.
        let table = bytes.strip_prefix(&[1, 0x1B, 3, 0x3B])?;
        let (count, rows) = table.get(4..)?.split_first_chunk()?;
        let (rows, _) = rows.as_chunks::<8>();
        let rows = rows.get(..u32::from_le_bytes(*count) as usize).unwrap_or(rows);
        let at = |bytes: &[u8]| {
            let offset = i32::from_le_bytes(*bytes.first_chunk()?);
            start.checked_add_signed(i64::from(offset))
        };
        let after = rows.partition_point(|row| at(&row[..4]).is_some_and(|from| from <= address));
        let row = rows.get(after.checked_sub(1)?)?;
        usize::try_from(at(&row[4..])?.checked_sub(self.frames.0)?).ok()
    }
}

/// What rules are followed with.
struct Values<'a, 'm> {
    section: &'a EhFrame<Bytes<'a>>,
    encoding: gimli::Encoding,
    registers: &'a Registers,
    memory: &'a mut Memory<'m>,
}

impl Values<'_, '_> {
    fn register(&self, register: Register) -> Option<u64> {
        self.registers.get(usize::from(register.0)).copied()
    }

    /// The value that a register had in the caller.
    fn follow(&mut self, rule: &RegisterRule<usize>, now: u64, cfa: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => Some(now),
            RegisterRule::Offset(offset) => self.memory.word(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(register) => self.register(*register),
            RegisterRule::Expression(expression) => {
                let address = self.evaluate(expression, Some(cfa))?;
                self.memory.word(address)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa)),
            _ => None,
        }
    }

    fn evaluate(
        &mut self,
        expression: &UnwindExpression<usize>,
        first: Option<u64>,
    ) -> Option<u64> {
        let bytes = expression.get(self.section).ok()?.0;
        let mut evaluation: Evaluation<Bytes<'_>> = Evaluation::new(bytes, self.encoding);
        evaluation.set_max_iterations(OPERATIONS_MAX);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.register(register)?);
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    let value = Value::Generic(self.memory.word(address)?);
                    evaluation.resume_with_memory(value).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
