//! What is executed between two marks.
//!
//! The one idea: a path is a list of runs, each some instructions that lie one behind the other
//! with what they did. Two samples that did the same are one path, so that a log holds a path once,
//! however often it was taken. Where data lies differs from sample to sample; of it only how many
//! lines and pages of each sort of memory were reached is kept, for each sample.

use std::collections::HashSet;

use super::insn::Shape;

/// Bits of an address within a line of the cache, and within a page.
const LINE: u32 = 6;
const PAGE: u32 = 12;
/// Bits of an address within a kernel stack: 16 KiB, aligned (`THREAD_SIZE` of x86-64).
const STACK: u32 = 14;
/// The last run of a window that never ends.
const RUNS_MAX: usize = 1 << 22;

/// An instruction as it was translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insn {
    pub(super) addr: u64,
    pub(super) bytes: u32,
    pub(super) shape: Shape,
}

/// How the last instruction of a run goes elsewhere, as the log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// Not at all, or by a jump, a return, an exception.
    Plain,
    Calls,
    /// Back to what an interrupt or an exception came into.
    Resumes,
}

/// Instructions that lie one behind the other, executed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) bytes: u32,
    pub(super) insns: u32,
    pub(super) loads: u32,
    pub(super) stores: u32,
    pub(super) locked: u32,
    /// Bytes that its string instructions stored.
    pub(super) string: u64,
    pub(super) end: End,
    /// The stack that its call pushed to: numbers from 1, in the order in which the window came to
    /// them; 0 where it calls nothing.
    pub(super) stack: u32,
}

/// Sorts of memory, in the order of [`Window::places`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    User,
    /// The array of `struct page`.
    Pages,
    Cpu,
    Stack,
    /// The kernel's image: its data.
    Image,
    /// The rest: slab, page tables, the page itself.
    Other,
}

pub(super) const PLACES: usize = 6;

/// A window that is open, or was.
#[derive(Debug, Default)]
pub(super) struct Window {
    runs: Vec<Run>,
    last: Option<Insn>,
    /// String instructions that something came into before they were through.
    halted: Vec<u64>,
    lines: Vec<u64>,
    /// Pages that were ever reached by way of GS, and stacks that a call ever pushed to.
    of_cpu: HashSet<u64>,
    stacks: HashSet<u64>,
    /// Stacks of this window.
    pushed: Vec<u64>,
}

impl Window {
    /// Forgets what was executed; what kind of memory lies where stays known.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.lines.clear();
        self.last = None;
        self.halted.clear();
        self.pushed.clear();
    }

    /// An instruction is about to be executed.
    pub(super) fn execute(&mut self, insn: &Insn) {
        let last = self.last.replace(*insn);
        // The next piece of a string: the processor has one instruction.
        if insn.shape.repeats && last == Some(*insn) {
            return;
        }
        let behind = |start: u64, bytes: u32| start.wrapping_add(u64::from(bytes)) == insn.addr;
        if let Some(last) = last
            && last.shape.repeats
            && !behind(last.addr, last.bytes)
        {
            self.halted.push(last.addr);
        }
        let has_resumed = last.is_some_and(|last| last.shape.resumes);
        let halted = self.halted.iter().rposition(|at| has_resumed && *at == insn.addr);
        let insns = u32::from(halted.map(|index| self.halted.truncate(index)).is_none());
        let end = match insn.shape {
            Shape { calls: true, .. } => End::Calls,
            Shape { resumes: true, .. } => End::Resumes,
            _ => End::Plain,
        };
        let is_full = self.runs.len() >= RUNS_MAX;
        match self.runs.last_mut() {
            Some(run) if behind(run.start, run.bytes) && run.end == End::Plain => {
                run.bytes += insn.bytes;
                run.insns += insns;
                run.locked += u32::from(insn.shape.locks);
                run.end = end;
            }
            _ if !is_full => self.runs.push(Run {
                start: insn.addr,
                bytes: insn.bytes,
                insns,
                loads: 0,
                stores: 0,
                locked: u32::from(insn.shape.locks),
                string: 0,
                end,
                stack: 0,
            }),
            _ => (),
        }
    }

    /// The instruction that was executed last has reached memory.
    pub(super) fn access(&mut self, insn: &Insn, at: u64, bytes: u64, reads: bool, writes: bool) {
        let Some(run) = self.runs.last_mut() else { return };
        if insn.shape.repeats {
            run.string += if writes { bytes } else { 0 };
            return;
        }
        run.loads += u32::from(reads);
        run.stores += u32::from(writes);
        if insn.shape.is_of_cpu {
            self.of_cpu.insert(at >> PAGE);
        }
        if insn.shape.calls && writes {
            let stack = at >> STACK;
            self.stacks.insert(stack);
            let known = self.pushed.iter().position(|one| *one == stack);
            let number = known.unwrap_or(self.pushed.len());
            if known.is_none() {
                self.pushed.push(stack);
            }
            run.stack = u32::try_from(number + 1).unwrap_or(u32::MAX);
        }
        let line = at >> LINE;
        if self.lines.last() != Some(&line) {
            self.lines.push(line);
        }
    }

    /// What was executed.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Distinct lines and pages of each [`Place`] that were reached.
    pub(super) fn places(&mut self) -> [[u64; 2]; PLACES] {
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_unstable();
        lines.dedup();
        let mut places = [[0; 2]; PLACES];
        let mut page = None;
        for line in &lines {
            let place = self.place(line << LINE) as usize;
            places[place][0] += 1;
            let mine = line >> (PAGE - LINE);
            if page.replace(mine) != Some(mine) {
                places[place][1] += 1;
            }
        }
        self.lines = lines;
        places
    }

    /// Where an address lies, by `Documentation/arch/x86/x86_64/mm.rst`: the bases of a kernel that
    /// does not choose them at random, for four and for five levels of page tables.
    fn place(&self, at: u64) -> Place {
        const PAGES: [std::ops::Range<u64>; 2] = [
            0xFFFF_EA00_0000_0000..0xFFFF_EB00_0000_0000,
            0xFFD4_0000_0000_0000..0xFFD6_0000_0000_0000,
        ];
        const IMAGE: u64 = 0xFFFF_FFFF_8000_0000;
        match at {
            _ if at >> 63 == 0 => Place::User,
            _ if self.of_cpu.contains(&(at >> PAGE)) => Place::Cpu,
            _ if self.stacks.contains(&(at >> STACK)) => Place::Stack,
            _ if PAGES.iter().any(|range| range.contains(&at)) => Place::Pages,
            IMAGE.. => Place::Image,
            _ => Place::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(addr: u64, shape: Shape) -> Insn {
        Insn { addr, bytes: 2, shape }
    }

    const PLAIN: Shape =
        Shape { calls: false, resumes: false, locks: false, repeats: false, is_of_cpu: false };

    #[test]
    fn instructions_behind_each_other_are_one_run_until_a_call() {
        let mut window = Window::default();
        let call = Shape { calls: true, ..PLAIN };
        for (addr, shape) in [(0, PLAIN), (2, PLAIN), (4, call), (6, PLAIN), (0, PLAIN)] {
            window.execute(&insn(addr, shape));
        }
        let runs: Vec<_> =
            window.runs().iter().map(|run| (run.start, run.insns, run.end)).collect();
        assert_eq!(runs, [(0, 3, End::Calls), (6, 1, End::Plain), (0, 1, End::Plain)]);
    }

    #[test]
    fn a_string_is_one_instruction_and_its_bytes_are_apart() {
        let mut window = Window::default();
        let string = insn(0, Shape { repeats: true, ..PLAIN });
        for piece in 0..512 {
            window.execute(&string);
            window.access(&string, 4096 + piece * 8, 8, false, true);
        }
        let run = window.runs()[0];
        assert_eq!((run.insns, run.stores, run.string), (1, 0, 4096));
        assert_eq!(window.places(), [[0; 2]; PLACES]);
    }

    #[test]
    fn a_string_that_an_interrupt_came_into_is_one_instruction_still() {
        let mut window = Window::default();
        let string = insn(0, Shape { repeats: true, ..PLAIN });
        let resume = insn(100, Shape { resumes: true, ..PLAIN });
        for one in [string, string, resume, string, resume, string, insn(2, PLAIN), string] {
            window.execute(&one);
        }
        let runs: Vec<_> = window.runs().iter().map(|run| (run.start, run.insns)).collect();
        // The last is another round of a loop.
        assert_eq!(runs, [(0, 1), (100, 1), (0, 0), (100, 1), (0, 1), (0, 1)]);
        assert_eq!(window.runs()[1].end, End::Resumes);
    }

    #[test]
    fn memory_is_what_its_address_says_or_how_it_was_reached() {
        let mut window = Window::default();
        let plain = insn(0, PLAIN);
        let of_cpu = insn(2, Shape { is_of_cpu: true, ..PLAIN });
        let call = insn(4, Shape { calls: true, ..PLAIN });
        window.execute(&plain);
        for at in [0x1000, 0xFFFF_EA00_0000_0040, 0xFFD4_0000_0000_0040, 0xFFFF_8880_0000_0000] {
            window.access(&plain, at, 8, true, false);
        }
        window.access(&of_cpu, 0xFFFF_8880_7DC0_0000, 8, true, true);
        window.access(&plain, 0xFFFF_8880_7DC0_0080, 8, true, false);
        window.access(&call, 0xFFFF_C900_0001_3F00, 8, false, true);
        window.access(&plain, 0xFFFF_C900_0001_0000, 8, false, true);
        window.access(&plain, 0xFFFF_FFFF_8200_0000, 8, true, false);
        assert_eq!(window.places(), [[1, 1], [2, 2], [2, 1], [2, 2], [1, 1], [1, 1]]);
        assert_eq!((window.runs()[0].loads, window.runs()[0].stores), (7, 3));
    }

    #[test]
    fn a_call_tells_the_stack_that_it_pushes_to() {
        let mut window = Window::default();
        let call = insn(0, Shape { calls: true, ..PLAIN });
        for at in [0x1_7FF8, 0x2_3FF8, 0x1_7F00] {
            window.execute(&call);
            window.access(&call, at, 8, false, true);
        }
        window.execute(&insn(2, PLAIN));
        let stacks = window.runs().iter().map(|run| run.stack);
        assert_eq!(stacks.collect::<Vec<_>>(), [1, 2, 1, 0]);
        window.clear();
        window.execute(&call);
        window.access(&call, 0x2_3FF8, 8, false, true);
        assert_eq!(window.runs()[0].stack, 1);
    }

    #[test]
    fn the_same_twice_is_the_same_path() {
        let mut window = Window::default();
        let mut once = || {
            window.clear();
            window.execute(&insn(8, PLAIN));
            window.access(&insn(8, PLAIN), 64, 8, true, false);
            window.runs().to_vec()
        };
        assert_eq!(once(), once());
    }
}
