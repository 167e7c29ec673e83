//! A small RV64I interpreter over the emulated memory, which can go back in time.
//!
//! `cargo run --release -p pagelab-emu --example rv64i [primes below]`. The guest is a sieve. Every
//! few thousand instructions the machine is kept: its registers, and a snapshot of its memory,
//! which copies no page. Afterwards a question is put that only a debugger with a history can
//! answer: which instruction was the last one to write this byte? The code is protected, so that a
//! guest that stores into it ends with a fault.
//!
//! It knows the base instructions of 64 bits; `ecall` ends the guest, and `a0` is what it returns.
#![expect(clippy::cast_possible_truncation, reason = "instructions for words cut registers")]

use std::{error::Error, fmt, time::Instant};

use pagelab_emu::{Builder, Fault, Memory, Permissions, Snapshot, Tlb};

/// Where the guest's code starts.
const CODE: u64 = 0x8000_0000;
/// Where the sieve has a byte for each number: 0 while it may be a prime.
const TABLE: u64 = 0x1000_0000;
/// The register of the first argument, and of what is returned.
const A0: usize = 10;

/// Counts the primes below `a0`.
const SIEVE: &[u32] = &[
    0x1000_02b7, //        lui  t0, 0x10000    the table
    0x0020_0313, //        addi t1, zero, 2    a number
    0x0000_0593, //        addi a1, zero, 0    how many primes there are below it
    0x02a3_5a63, // next:  bge  t1, a0, done
    0x0062_83b3, //        add  t2, t0, t1
    0x0003_ce03, //        lbu  t3, 0(t2)
    0x020e_1063, //        bne  t3, zero, skip it is a multiple
    0x0015_8593, //        addi a1, a1, 1
    0x0063_0eb3, //        add  t4, t1, t1
    0x00ae_da63, // mark:  bge  t4, a0, skip
    0x01d2_8f33, //        add  t5, t0, t4
    0x006f_0023, //        sb   t1, 0(t5)
    0x006e_8eb3, //        add  t4, t4, t1
    0xff1f_f06f, //        jal  zero, mark
    0x0013_0313, // skip:  addi t1, t1, 1
    0xfd1f_f06f, //        jal  zero, next
    0x0005_8513, // done:  addi a0, a1, 0
    0x0000_0073, //        ecall
];

/// Why the guest cannot go on.
#[derive(Debug, PartialEq, Eq)]
enum Trap {
    /// The memory refused an access.
    Fault(Fault),
    /// There is no such instruction.
    Illegal { pc: u64, word: u32 },
}

impl Error for Trap {}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Illegal { pc, word } => write!(f, "no instruction: {word:#010x} at {pc:#x}"),
        }
    }
}

impl From<Fault> for Trap {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The registers.
#[derive(Debug, Clone, Copy)]
struct Hart {
    x: [u64; 32],
    pc: u64,
}

impl Hart {
    /// Does one instruction; whether another one follows. What traps has changed nothing.
    #[inline]
    fn step(&mut self, memory: &mut impl Memory) -> Result<bool, Trap> {
        let pc = self.pc;
        let word = u32::from_le_bytes(memory.fetch(pc)?);
        let illegal = Err(Trap::Illegal { pc, word });
        let field = |from: u32, bits: u32| word >> from & ((1 << bits) - 1);
        let (rd, funct3, funct7) = (field(7, 5) as usize, field(12, 3), field(25, 7));
        let (a, b) = (self.x[field(15, 5) as usize], self.x[field(20, 5) as usize]);
        // The top bits of each immediate, with the sign of the instruction's first bit.
        let top = |bits: u32| i64::from(word.cast_signed() >> (32 - bits)).cast_unsigned();
        let immediate = top(12);
        let mut next = pc.wrapping_add(4);
        let result = match word & 0x7f {
            0x37 => Some(top(20) << 12),
            0x17 => Some(pc.wrapping_add(top(20) << 12)),
            0x6f => {
                let low = field(12, 8) << 12 | field(20, 1) << 11 | field(21, 10) << 1;
                next = pc.wrapping_add(top(1) << 20 | u64::from(low));
                Some(pc.wrapping_add(4))
            }
            0x67 if funct3 == 0 => {
                next = a.wrapping_add(immediate) & !1;
                Some(pc.wrapping_add(4))
            }
            0x63 => {
                let Some(taken) = taken(funct3, a, b) else { return illegal };
                let low = field(7, 1) << 11 | field(25, 6) << 5 | field(8, 4) << 1;
                if taken {
                    next = pc.wrapping_add(top(1) << 12 | u64::from(low));
                }
                None
            }
            0x03 => load(funct3, a.wrapping_add(immediate), memory)?,
            0x23 => {
                let addr = a.wrapping_add(top(7) << 5 | u64::from(field(7, 5)));
                match funct3 {
                    0 => memory.store_u8(addr, b as u8)?,
                    1 => memory.store_u16(addr, b as u16)?,
                    2 => memory.store_u32(addr, b as u32)?,
                    3 => memory.store_u64(addr, b)?,
                    _ => return illegal,
                }
                None
            }
            // A shift has six bits of distance, and above them says which shift it is.
            0x13 if funct3 & 3 == 1 => wide(funct3, funct7 & !1, a, immediate),
            0x13 => wide(funct3, 0, a, immediate),
            0x33 => wide(funct3, funct7, a, b),
            0x1b if funct3 == 0 => Some(signed(a.wrapping_add(immediate) as u32)),
            0x1b => narrow(funct3, funct7, a as u32, immediate as u32),
            0x3b => narrow(funct3, funct7, a as u32, b as u32),
            0x0f => None, // a fence: there is one hart
            0x73 if word == 0x73 => return Ok(false),
            _ => return illegal,
        };
        // Stores, branches and fences have no result; others without one are no instructions.
        match (result, word & 0x7f) {
            (Some(value), _) if rd != 0 => self.x[rd] = value,
            (None, 0x03 | 0x13 | 0x33 | 0x1b | 0x3b) => return illegal,
            _ => {}
        }
        self.pc = next;
        Ok(true)
    }
}

/// Whether a branch is taken; `None` where there is no such branch, as below.
#[inline]
fn taken(funct3: u32, a: u64, b: u64) -> Option<bool> {
    Some(match funct3 {
        0 => a == b,
        1 => a != b,
        4 => a.cast_signed() < b.cast_signed(),
        5 => a.cast_signed() >= b.cast_signed(),
        6 => a < b,
        7 => a >= b,
        _ => return None,
    })
}

/// What a load gives.
#[inline]
fn load(funct3: u32, addr: u64, memory: &mut impl Memory) -> Result<Option<u64>, Fault> {
    Ok(Some(match funct3 {
        0 => i64::from(memory.load_u8(addr)?.cast_signed()).cast_unsigned(),
        1 => i64::from(memory.load_u16(addr)?.cast_signed()).cast_unsigned(),
        2 => signed(memory.load_u32(addr)?),
        3 => memory.load_u64(addr)?,
        4 => memory.load_u8(addr)?.into(),
        5 => memory.load_u16(addr)?.into(),
        6 => memory.load_u32(addr)?.into(),
        _ => return Ok(None),
    }))
}

/// 32 bits as a register holds them.
fn signed(value: u32) -> u64 {
    i64::from(value.cast_signed()).cast_unsigned()
}

/// Arithmetic of 64 bits.
#[inline]
fn wide(funct3: u32, funct7: u32, a: u64, b: u64) -> Option<u64> {
    Some(match (funct7, funct3) {
        (0, 0) => a.wrapping_add(b),
        (0x20, 0) => a.wrapping_sub(b),
        (0, 1) => a.wrapping_shl(b as u32),
        (0, 2) => (a.cast_signed() < b.cast_signed()).into(),
        (0, 3) => (a < b).into(),
        (0, 4) => a ^ b,
        (0, 5) => a.wrapping_shr(b as u32),
        (0x20, 5) => a.cast_signed().wrapping_shr(b as u32).cast_unsigned(),
        (0, 6) => a | b,
        (0, 7) => a & b,
        _ => return None,
    })
}

/// Arithmetic of 32 bits, whose results are extended by their sign.
fn narrow(funct3: u32, funct7: u32, a: u32, b: u32) -> Option<u64> {
    Some(signed(match (funct7, funct3) {
        (0, 0) => a.wrapping_add(b),
        (0x20, 0) => a.wrapping_sub(b),
        (0, 1) => a.wrapping_shl(b),
        (0, 5) => a.wrapping_shr(b),
        (0x20, 5) => a.cast_signed().wrapping_shr(b).cast_unsigned(),
        _ => return None,
    }))
}

/// A guest.
struct Machine {
    hart: Hart,
    memory: Box<Tlb>,
    /// Instructions so far.
    done: u64,
}

/// A machine as it was.
struct Moment {
    hart: Hart,
    memory: Snapshot,
    done: u64,
}

impl Machine {
    /// A machine that is about to start this code.
    fn new(code: &[u32], argument: u64) -> Result<Self, Fault> {
        let mut memory = Box::new(Builder::new().page_limit(1 << 30).tlb());
        for (at, word) in (CODE..).step_by(4).zip(code) {
            memory.store_u32(at, *word)?;
        }
        memory.protect(CODE, 4 * code.len() as u64, Permissions::READ_EXECUTE);
        let mut hart = Hart { x: [0; 32], pc: CODE };
        hart.x[A0] = argument;
        Ok(Self { hart, memory, done: 0 })
    }

    /// Does so many instructions, or fewer where the guest ends; whether it goes on.
    fn run(&mut self, instructions: u64) -> Result<bool, Trap> {
        // Apart from the machine, so that the registers can be the host's.
        let (mut hart, end) = (self.hart, self.done.saturating_add(instructions));
        let mut outcome = Ok(true);
        while self.done < end && outcome == Ok(true) {
            outcome = hart.step(&mut *self.memory);
            self.done += u64::from(outcome.is_ok());
        }
        self.hart = hart;
        outcome
    }

    /// Runs to the end, and keeps a moment before each `interval` instructions.
    fn history(&mut self, interval: u64) -> Result<Vec<Moment>, Trap> {
        let mut moments = vec![self.now()];
        while self.run(interval)? {
            moments.push(self.now());
        }
        Ok(moments)
    }

    fn now(&mut self) -> Moment {
        Moment { hart: self.hart, memory: self.memory.snapshot(), done: self.done }
    }

    fn go_back(&mut self, moment: &Moment) {
        self.memory.restore(&moment.memory);
        (self.hart, self.done) = (moment.hart, moment.done);
    }

    /// The number and the address of the last instruction that changed the byte at `addr`, where
    /// one did: the past is done again from the last moment backwards.
    fn last_change(&mut self, moments: &[Moment], addr: u64) -> Result<Option<(u64, u64)>, Trap> {
        let mut end = self.done;
        for moment in moments.iter().rev() {
            self.go_back(moment);
            let (mut byte, mut found) = (self.memory.load_u8(addr)?, None);
            while self.done < end {
                let pc = self.hart.pc;
                self.run(1)?;
                let now = self.memory.load_u8(addr)?;
                if now != byte {
                    (byte, found) = (now, Some((self.done, pc)));
                }
            }
            if found.is_some() {
                return Ok(found);
            }
            end = moment.done;
        }
        Ok(None)
    }
}

#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "for people; no measurement")]
fn main() -> Result<(), Box<dyn Error>> {
    let below: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let mut machine = Machine::new(SIEVE, below)?;
    let start = Instant::now();
    let moments = machine.history(100_000)?;
    let (took, done) = (start.elapsed().as_secs_f64(), machine.done);
    println!("{} primes below {below}", machine.hart.x[A0]);
    println!("{done} instructions, {:.0} million a second", done as f64 / took / 1e6);
    let kib = machine.memory.resident_bytes() >> 10;
    println!("{} moments kept of a memory of {kib} KiB", moments.len());
    for number in [91, below.saturating_sub(1)] {
        match machine.last_change(&moments, TABLE + number)? {
            Some((at, pc)) => println!("{number}: last written by instruction {at}, at {pc:#x}"),
            None => println!("{number}: never written"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pagelab_emu::Kind;

    use super::*;

    /// Name, word, `a0`, `a1`, and what is in `a2` afterwards.
    const INSTRUCTIONS: &[(&str, u32, u64, u64, u64)] = &[
        ("add", 0x00b5_0633, u64::MAX, 2, 1),
        ("sub", 0x40b5_0633, 1, 2, u64::MAX),
        ("sll", 0x00b5_1633, 1, 65, 2),
        ("slt", 0x00b5_2633, u64::MAX, 0, 1),
        ("sltu", 0x00b5_3633, u64::MAX, 0, 0),
        ("xor", 0x00b5_4633, 6, 3, 5),
        ("srl", 0x00b5_5633, 1 << 63, 63, 1),
        ("sra", 0x40b5_5633, 1 << 63, 63, u64::MAX),
        ("or", 0x00b5_6633, 6, 3, 7),
        ("and", 0x00b5_7633, 6, 3, 2),
        ("addi", 0xfff5_0613, 0, 0, u64::MAX),
        ("slti", 0xfff5_2613, 1 << 63, 0, 1),
        ("sltiu", 0xfff5_3613, 1, 0, 1),
        ("xori", 0xfff5_4613, 0, 0, u64::MAX),
        ("ori", 0x8005_6613, 1, 0, !0x7fe),
        ("andi", 0x00f5_7613, 255, 0, 15),
        ("slli", 0x03f5_1613, 1, 0, 1 << 63),
        ("srli", 0x03f5_5613, 1 << 63, 0, 1),
        ("srai", 0x43f5_5613, 1 << 63, 0, u64::MAX),
        ("addw", 0x00b5_063b, 0x7fff_ffff, 1, !0x7fff_ffff),
        ("subw", 0x40b5_063b, 0x1_0000_0000, 1, u64::MAX),
        ("sllw", 0x00b5_163b, 1, 31, !0x7fff_ffff),
        ("srlw", 0x00b5_563b, 0x8000_0000_8000_0000, 31, 1),
        ("sraw", 0x40b5_563b, 0x8000_0000, 31, u64::MAX),
        ("addiw", 0x0015_061b, 0x7fff_ffff, 0, !0x7fff_ffff),
        ("slliw", 0x01f5_161b, 1, 0, !0x7fff_ffff),
        ("srliw", 0x01f5_561b, 0x8000_0000, 0, 1),
        ("sraiw", 0x41f5_561b, 0x8000_0000, 0, u64::MAX),
        ("lui", 0x8000_0637, 0, 0, !0x7fff_ffff),
        ("auipc", 0x0000_1617, 0, 0, 0x8000_1000),
        ("jal", 0x0080_066f, 0, 0, 0x8000_0004),
        ("jalr", 0x0005_0667, 4097, 0, 0x8000_0004),
        ("lb", 0x0005_0603, 0x8000_0000, 0, 3),
        ("lh", 0x0005_1603, 0x8000_0000, 0, 5635),
        ("lw", 0x0005_2603, 0x8000_0000, 0, 0x5_2603),
        ("lbu", 0x0005_4603, 0x8000_0000, 0, 3),
        ("lhu", 0x0005_5603, 0x8000_0000, 0, 0x5603),
        ("lwu", 0x0005_6603, 0x8000_0000, 0, 0x5_6603),
        ("ld", 0x0005_3603, 0x8000_0000, 0, 0x5_3603),
    ];

    /// What one instruction leaves in `a2`, of `a0` and `a1`.
    fn result(word: u32, a: u64, b: u64) -> Result<u64, Trap> {
        let mut machine = Machine::new(&[word], a).unwrap();
        machine.hart.x[A0 + 1] = b;
        machine.run(1).map(|_| machine.hart.x[A0 + 2])
    }

    #[test]
    fn it_counts_primes() {
        for (below, primes) in [(0, 0), (3, 1), (100, 25), (10_000, 1229)] {
            let mut machine = Machine::new(SIEVE, below).unwrap();
            assert_eq!(machine.run(u64::MAX), Ok(false));
            assert_eq!(machine.hart.x[A0], primes, "below {below}");
        }
    }

    #[test]
    fn the_past_is_as_it_was() {
        let mut machine = Machine::new(SIEVE, 1000).unwrap();
        let moments = machine.history(500).unwrap();
        assert!(moments.len() > 5);
        // Of the primes that divide 966, 23 comes last and 7 before it; 997 is a prime.
        let (at, pc) = machine.last_change(&moments, TABLE + 966).unwrap().unwrap();
        assert_eq!((pc, machine.memory.load_u8(TABLE + 966)), (CODE + 0x2c, Ok(23)));
        assert_eq!(machine.last_change(&moments, TABLE + 997), Ok(None));
        machine.go_back(&moments[0]);
        assert_eq!(machine.memory.load_u8(TABLE + 966), Ok(0));
        machine.run(at - 1).unwrap();
        assert_eq!(machine.memory.load_u8(TABLE + 966), Ok(7));
        machine.run(1).unwrap();
        assert_eq!(machine.memory.load_u8(TABLE + 966), Ok(23));
    }

    #[test]
    fn instructions_do_what_the_manual_says() {
        const MIN: u64 = 1 << 63;
        for (name, word, a, b, expected) in INSTRUCTIONS {
            assert_eq!(result(*word, *a, *b), Ok(*expected), "{name} of {a:#x} and {b:#x}");
        }
        let illegal = |word| Err(Trap::Illegal { pc: CODE, word });
        for word in [0, 0x02b5_0633, 0xffff_ffff, 0x4215_1613] {
            assert_eq!(result(word, MIN, 1), illegal(word));
        }
    }

    #[test]
    fn code_cannot_be_written() {
        // sb a1, 0(a0)
        let denied = Fault::Denied { addr: CODE, kind: Kind::Store };
        assert_eq!(result(0x00b5_0023, CODE, 1), Err(Trap::Fault(denied)));
    }
}
