//! What an instruction of x86-64 is, as far as a window counts it.
//!
//! The one idea: prefixes and one opcode byte tell calls, returns from interrupts, locked
//! operations and string instructions; nothing else of it is decoded.

/// What a window wants to know of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Shape {
    /// It pushes the address of the next one and goes elsewhere.
    pub(super) calls: bool,
    /// It goes back to what an interrupt or an exception came into.
    pub(super) resumes: bool,
    /// Its access of memory is locked.
    pub(super) locks: bool,
    /// It moves or stores a string: QEMU executes it once for each piece.
    pub(super) repeats: bool,
    /// It reaches memory by way of GS: in the kernel, what belongs to a processor.
    pub(super) is_of_cpu: bool,
}

/// What the guest says to us by an instruction that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// From here on every block is watched.
    Watch,
    /// And no more.
    Rest,
    /// A window begins after this one.
    Begin,
    /// The window ended before this one.
    End,
    /// The next instruction loads from where a message is described.
    Say,
}

/// `nopl disp32(%rax)`, and the upper 24 bits of its displacement: `pag`.
const NOP: [u8; 3] = [0x0F, 0x1F, 0x80];
const MAGIC: [u8; 3] = [b'g', b'a', b'p'];

/// The mark that an instruction is, if it is one.
pub(super) fn mark(code: &[u8]) -> Option<Mark> {
    let rest = code.strip_prefix(&NOP)?;
    match rest {
        [number, magic @ ..] if magic == MAGIC => match number {
            1 => Some(Mark::Watch),
            2 => Some(Mark::Rest),
            3 => Some(Mark::Begin),
            4 => Some(Mark::End),
            5 => Some(Mark::Say),
            _ => None,
        },
        _ => None,
    }
}

/// The shape of an instruction.
pub(super) fn shape(code: &[u8]) -> Shape {
    let mut shape = Shape::default();
    let mut is_repeated = false;
    let mut rest = code;
    while let [byte, more @ ..] = rest {
        match byte {
            0xF0 => shape.locks = true,
            0xF2 | 0xF3 => is_repeated = true,
            0x65 => shape.is_of_cpu = true,
            0x26 | 0x2E | 0x36 | 0x3E | 0x64 | 0x66 | 0x67 | 0x40..=0x4F => (),
            _ => break,
        }
        rest = more;
    }
    match rest {
        [0xE8, ..] => shape.calls = true,
        [0xCF, ..] => shape.resumes = true,
        // The second three bits of the byte behind the opcode choose the operation: call.
        [0xFF, modrm, ..] => shape.calls = matches!(modrm >> 3 & 7, 2 | 3),
        // An exchange with memory is locked without a prefix.
        [0x86 | 0x87, modrm, ..] => shape.locks = modrm >> 6 != 3,
        [0xA4..=0xA7 | 0xAA..=0xAF | 0x6C..=0x6F, ..] => shape.repeats = is_repeated,
        _ => (),
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_jumps_by_the_byte_behind_the_opcode() {
        let calls = |code: &[u8]| shape(code).calls;
        assert!(calls(&[0xE8, 0, 0, 0, 0]) && calls(&[0xFF, 0xD0]) && calls(&[0x41, 0xFF, 0xD3]));
        assert!(!calls(&[0xE9, 0, 0, 0, 0]) && !calls(&[0xFF, 0xE0]) && !calls(&[0xC3]));
        assert!(!calls(&[0xFF, 0x30]), "a push");
    }

    #[test]
    fn an_exchange_with_memory_is_locked_and_one_of_registers_is_not() {
        let locks = |code: &[u8]| shape(code).locks;
        assert!(locks(&[0xF0, 0x0F, 0xB1, 0x0A]) && locks(&[0x48, 0x87, 0x07]));
        assert!(!locks(&[0x48, 0x87, 0xC7]) && !locks(&[0x48, 0x89, 0x07]));
    }

    #[test]
    fn a_string_repeats_only_with_its_prefix() {
        assert!(shape(&[0xF3, 0xAA]).repeats && shape(&[0xF3, 0x48, 0xA5]).repeats);
        assert!(!shape(&[0xAA]).repeats && !shape(&[0xF3, 0xC3]).repeats);
        assert!(shape(&[0x65, 0x48, 0x8B, 0x04, 0x25]).is_of_cpu);
        assert!(shape(&[0x48, 0xCF]).resumes && !shape(&[0xC3]).resumes);
    }

    #[test]
    fn a_mark_is_a_nop_with_our_displacement() {
        let code = |number| [0x0F, 0x1F, 0x80, number, b'g', b'a', b'p'];
        assert_eq!(mark(&code(3)), Some(Mark::Begin));
        assert_eq!(mark(&code(9)), None);
        assert_eq!(mark(&[0x0F, 0x1F, 0x80, 3, 0, 0, 0]), None);
        assert_eq!(mark(&code(4)[..6]), None);
    }
}
