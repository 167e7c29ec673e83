//! The static program that `exec-block` pretends to run: functions, their code and data accesses.
//!
//! The one idea: every share that was published (fetches of a page, lengths of runs, widths,
//! regions of data) is a budget, and each slot of the program takes the entry of the table that is
//! furthest behind its budget, weighted by how often the function runs. So the whole matches the
//! tables as closely as whole slots can, whatever the order of calls is. The tables are the fit:
//! what they were fitted to is said in [`super`]. Weights are thousands of fetches in the
//! published trace of 4,160,787,522 operations.

#![expect(
    clippy::cast_possible_truncation,
    reason = "fetches of a run and bytes of a page are below 2^16"
)]

use super::{
    super::random::Random,
    budget::{Budget, Lengths},
};

/// log2 of the bytes of a page.
pub(super) const PAGE_SHIFT: u32 = 12;
const PAGE_BYTES: u64 = 1 << PAGE_SHIFT;

/// First page of the heap; its pages follow each other.
pub(super) const HEAP: u64 = 0x200;
/// Pages of the heap: with stack, code and constants they make the 14,487 published ones.
pub(super) const HEAP_PAGES: u64 = 14_247;
/// The page of constants: it is read and never written.
pub(super) const CONSTANTS: u64 = 0x13f;
/// Code and constants: first page, and the one after the last. These are the 236 published absent
/// pages: nothing writes them.
pub(super) const TEXT: [(u64, u64); 2] = [(0x1f, 0x80), (0xc1, 0x14c)];

/// What the data accesses of a function go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    /// The stack page alone, without a break between slots: the unrolled keccak.
    Keccak,
    /// Its frame.
    Frame,
    /// An object of the heap.
    Object,
    /// From one to the other, slot by slot: copying.
    Copy,
    /// Some slots on one, some on the other.
    Mixed,
    /// Constants and its frame, slot by slot.
    Table,
    /// Its frame, once in a long loop without data.
    Rare,
}

/// Pages of the stack, as published.
pub(super) const STACK: [u64; 4] = [STACK_KECCAK, STACK_HOT, STACK_WARM, STACK_COOL];
const STACK_KECCAK: u64 = 0x7ff9;
const STACK_HOT: u64 = 0x7ffc;
const STACK_WARM: u64 = 0x7ffb;
const STACK_COOL: u64 = 0x7ff8;

/// A function in the table.
struct Row {
    /// Address of its first instruction.
    pc: u64,
    /// Fetches of one pass, about: the last run of fetches is not cut.
    fetches: u64,
    /// Thousands of fetches in the published trace.
    weight: u64,
    /// Passes that are due, on average, when it is called.
    passes: u64,
    frame: u64,
    data: Data,
}

const fn row(pc: u64, fetches: u64, weight: u64, passes: u64, frame: u64, data: Data) -> Row {
    Row { pc, fetches, weight, passes, frame, data }
}

/// Functions of the pages that were published one by one; the first is keccak.
///
/// A function may run from one page into the next: that is where the published trace changes the
/// page without a data access in between.
const HOT: &[Row] = &[
    row(0xd_103e, 11_229, 1_225_342, 8, STACK_KECCAK, Data::Keccak),
    row(0x14_9fb0, 60, 210_000, 20, STACK_HOT, Data::Frame),
    row(0x14_9f88, 100, 100_000, 20, STACK_HOT, Data::Mixed),
    row(0x14_9000, 200, 212_254, 7, STACK_HOT, Data::Frame),
    row(0x14_9200, 150, 120_000, 7, STACK_HOT, Data::Copy),
    row(0x14_9400, 250, 142_000, 6, STACK_HOT, Data::Object),
    row(0x14_9800, 220, 48_000, 7, STACK_COOL, Data::Mixed),
    row(0x14_a100, 200, 100_000, 7, STACK_HOT, Data::Frame),
    row(0x14_a400, 180, 40_000, 7, STACK_HOT, Data::Copy),
    row(0x14_a800, 240, 94_263, 7, STACK_HOT, Data::Object),
    row(0x14_aa00, 200, 55_000, 7, STACK_HOT, Data::Table),
    row(0xc_b100, 200, 104_765, 7, STACK_WARM, Data::Frame),
    row(0xc_b400, 220, 45_000, 6, STACK_HOT, Data::Object),
    row(0xc_bfb0, 60, 36_000, 14, STACK_HOT, Data::Mixed),
    row(0xc_c200, 240, 40_770, 6, STACK_HOT, Data::Frame),
    row(0xc_c800, 200, 23_000, 6, STACK_HOT, Data::Table),
    row(0xc_d200, 160, 50_000, 9, STACK_HOT, Data::Copy),
    row(0xc_d800, 260, 31_900, 6, STACK_HOT, Data::Object),
    row(0xc_dc00, 350, 44_000, 4, STACK_HOT, Data::Rare),
    row(0xd_7100, 200, 95_400, 6, STACK_COOL, Data::Frame),
    row(0xd_7fd8, 40, 80_000, 14, STACK_HOT, Data::Object),
    row(0xd_8200, 180, 34_000, 6, STACK_COOL, Data::Frame),
    row(0xd_8400, 180, 97_842, 6, STACK_HOT, Data::Object),
    row(0x6_d100, 340, 96_470, 4, STACK_HOT, Data::Rare),
    row(0x14_0100, 220, 59_805, 6, STACK_COOL, Data::Frame),
    row(0x14_3800, 250, 56_440, 6, STACK_WARM, Data::Frame),
    row(0x14_1000, 200, 22_000, 6, STACK_HOT, Data::Table),
    row(0x14_2000, 200, 20_000, 6, STACK_HOT, Data::Table),
];

/// Thousands of fetches of all other pages of code together.
pub(super) const COLD_WEIGHT: u64 = 163_810;

/// Longest runs of fetches between two data accesses, bucket by bucket, and shares of each
/// function's slots.
const KECCAK_ENDS: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 9, 12];
const KECCAK_SHARES: &[u64] = &[2050, 2960, 1700, 1150, 800, 550, 340, 240, 170];
const COPY_ENDS: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 9, 15];
const COPY_SHARES: &[u64] = &[130, 260, 280, 220, 160, 120, 60, 40, 25];
const PLAIN_ENDS: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 9, 12, 15, 19, 24, 31, 40, 50, 63, 80, 127];
const PLAIN_SHARES: &[u64] = &[
    4900, 1700, 1250, 1800, 1650, 1650, 1400, 1950, 1150, 950, 1120, 660, 340, 570, 230, 125, 110,
    48,
];

/// Loads of 1, 2, 4 and 8 bytes, then stores: the kinds of data access, as [`Slot::kind`] counts.
/// Thousands in the published trace, less keccak's and those of constants.
const KINDS: &[u64] = &[53_270, 0, 550, 124_030, 22_430, 450, 590, 103_800];
/// Loads of constants: 1 byte, and 8.
const CONSTANT_KINDS: &[u64] = &[7, 3];
/// Keccak: loads and stores of 8 bytes.
const KECCAK_KINDS: &[u64] = &[53, 47];
/// In thousandths: how often the next slot of such a function is on the object.
const FRAME_OBJECT: &[u64] = &[990, 10];
const OBJECT_OBJECT: &[u64] = &[10, 990];
/// In thousandths: how often it is on the other operand than the slot before.
const COPY_CHANGE: &[u64] = &[150, 850];
const MIXED_CHANGE: &[u64] = &[700, 300];

/// No data access: the end of a function.
pub(super) const NONE: u8 = 8;
/// The kind of a load of 8 bytes.
pub(super) const LOAD_8: u8 = 3;
/// The kind of a store of 8 bytes.
pub(super) const STORE_8: u8 = 7;

/// Where the data access of a slot goes: an index of the operands of a call.
pub(super) const FRAME: u8 = 0;
/// The object that the call was given.
pub(super) const OBJECT: u8 = 1;
const CONSTANT: u8 = 2;

/// Some fetches, then one data access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) fetches: u16,
    pub(super) operand: u8,
    pub(super) kind: u8,
    pub(super) offset: u16,
}

/// A function of the program.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) pc: u64,
    /// Its slots in [`Program::slots`].
    pub(super) slots: std::ops::Range<usize>,
    /// Fetches of one pass.
    pub(super) fetches: u64,
    /// Operations of one pass.
    pub(super) ops: u64,
    pub(super) weight: u64,
    pub(super) passes: u64,
    /// Address of the page of its frame.
    pub(super) frame: u64,
}

/// The program: the same for every seed.
#[derive(Debug)]
pub(super) struct Program {
    /// Keccak, the other hot functions, then those of cold pages.
    pub(super) functions: Vec<Function>,
    /// Functions before the cold ones.
    pub(super) hot: usize,
    pub(super) slots: Vec<Slot>,
}

impl Program {
    pub(super) fn new() -> Self {
        Builder::new().build()
    }
}

/// A program in the making, with what is left of each budget.
struct Builder {
    random: Random,
    keccak: Lengths,
    copy: Lengths,
    plain: Lengths,
    kinds: Budget,
    constant_kinds: Budget,
    keccak_kinds: Budget,
    frame_object: Budget,
    object_object: Budget,
    copy_change: Budget,
    mixed_change: Budget,
    slots: Vec<Slot>,
}

impl Builder {
    fn new() -> Self {
        Self {
            random: Random::new(7),
            keccak: Lengths::new(KECCAK_ENDS, KECCAK_SHARES),
            copy: Lengths::new(COPY_ENDS, COPY_SHARES),
            plain: Lengths::new(PLAIN_ENDS, PLAIN_SHARES),
            kinds: Budget::new(KINDS),
            constant_kinds: Budget::new(CONSTANT_KINDS),
            keccak_kinds: Budget::new(KECCAK_KINDS),
            frame_object: Budget::new(FRAME_OBJECT),
            object_object: Budget::new(OBJECT_OBJECT),
            copy_change: Budget::new(COPY_CHANGE),
            mixed_change: Budget::new(MIXED_CHANGE),
            slots: Vec::new(),
        }
    }

    fn build(mut self) -> Program {
        let mut functions: Vec<Function> = HOT.iter().map(|row| self.function(row)).collect();
        let taken = |page| {
            page == CONSTANTS
                || HOT.iter().any(|row| (row.pc >> PAGE_SHIFT..=last_page(row)).contains(&page))
        };
        let cold: Vec<u64> =
            TEXT.iter().flat_map(|&(first, end)| first..end).filter(|&page| !taken(page)).collect();
        let weight = COLD_WEIGHT / cold.len() as u64;
        for page in cold {
            let row = self.cold_row(page, weight);
            functions.push(self.function(&row));
        }
        Program { functions, hot: HOT.len(), slots: self.slots }
    }

    /// A page of cold code has one function.
    fn cold_row(&mut self, page: u64, weight: u64) -> Row {
        const DATA: [Data; 4] = [Data::Frame, Data::Object, Data::Mixed, Data::Copy];
        let fetches = 30 + self.random.below(300);
        // The last run is not cut, and must not leave the page.
        let room = PAGE_BYTES - 2 * (fetches + 128);
        let at = self.random.below(3000).min(room) & !1;
        let data = DATA[(self.random.next() >> 62) as usize];
        // Few pairs of code and stack share a slot of 4 pages but none of 8.
        let frame = if (page ^ STACK_HOT) & 7 == 4 { STACK_COOL } else { STACK_HOT };
        row((page << PAGE_SHIFT) + at, fetches, weight, 4, frame, data)
    }

    fn function(&mut self, row: &Row) -> Function {
        let start = self.slots.len();
        let mut on_object = false;
        let weight = 1000 * row.weight / row.fetches;
        let runs = self.runs(row, weight);
        let mut ops = 0;
        for (index, &fetches) in runs.iter().enumerate() {
            let last = index + 1 == runs.len();
            let mut slot = Slot { fetches: fetches as u16, operand: FRAME, kind: NONE, offset: 0 };
            if !last || row.data == Data::Rare {
                self.access(row.data, weight, &mut on_object, &mut slot);
            }
            ops += fetches + u64::from(slot.kind != NONE);
            self.slots.push(slot);
        }
        let slots = start..self.slots.len();
        let fetches = runs.iter().sum();
        let &Row { pc, weight, passes, frame, .. } = row;
        Function { pc, slots, fetches, ops, weight, passes, frame: frame << PAGE_SHIFT }
    }

    /// The runs of fetches of one pass, in random order.
    fn runs(&mut self, row: &Row, weight: u64) -> Vec<u64> {
        let mut runs = Vec::new();
        let mut left = row.fetches;
        let crosses = last_page(row) > row.pc >> PAGE_SHIFT;
        while left > 0 {
            let run = match row.data {
                Data::Keccak => self.keccak.take(weight),
                Data::Rare => row.fetches,
                Data::Copy | Data::Mixed | Data::Table => self.copy.take(weight),
                Data::Frame | Data::Object => self.plain.take(weight),
            };
            // How much of a function lies on which page is published.
            let run = if crosses { run.min(left) } else { run };
            runs.push(run);
            left = left.saturating_sub(run);
        }
        for index in (1..runs.len()).rev() {
            runs.swap(index, self.random.below(index as u64 + 1) as usize);
        }
        runs
    }

    /// What follows the fetches of a slot.
    fn access(&mut self, data: Data, weight: u64, on_object: &mut bool, slot: &mut Slot) {
        if data == Data::Keccak {
            slot.kind = [LOAD_8, STORE_8][self.keccak_kinds.take(1)];
            slot.offset = 0x400 + 8 * self.random.below(64) as u16;
            return;
        }
        *on_object = match data {
            Data::Object => self.object_object.take(weight) == 1,
            Data::Mixed => *on_object ^ (self.mixed_change.take(weight) == 1),
            Data::Copy | Data::Table => *on_object ^ (self.copy_change.take(weight) == 1),
            _ => self.frame_object.take(weight) == 1,
        };
        let constant = *on_object && data == Data::Table;
        slot.operand = if constant { CONSTANT } else { u8::from(*on_object) };
        slot.kind = if constant {
            [0, LOAD_8][self.constant_kinds.take(weight)]
        } else {
            self.kinds.take(weight) as u8
        };
        slot.offset = 8 * self.random.below(PAGE_BYTES / 8) as u16;
    }
}

/// Number of the page that holds the function's last instruction, if its last run is cut.
fn last_page(row: &Row) -> u64 {
    (row.pc + 2 * row.fetches - 2) >> PAGE_SHIFT
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Thousands of fetches of a page: of each function what its code on the page weighs.
    fn weights(program: &Program) -> HashMap<u64, f64> {
        let mut weights = HashMap::new();
        for function in &program.functions {
            for at in 0..function.fetches {
                let page = (function.pc + 2 * at) >> PAGE_SHIFT;
                let part = function.weight as f64 / function.fetches as f64;
                *weights.entry(page).or_insert(0.0) += part;
            }
        }
        weights
    }

    #[test]
    fn every_published_page_of_code_has_its_weight() {
        let weights = weights(&Program::new());
        for (page, published) in [
            (0x149, 722_254.0),
            (0x14a, 399_263.0),
            (0xd1, 220_092.0),
            (0xd2, 223_478.0),
            (0xd5, 223_478.0),
            (0xd6, 111_340.0),
            (0xcb, 173_765.0),
            (0xd8, 171_842.0),
            (0xd7, 135_402.0),
            (0xcd, 125_896.0),
            (0x6d, 96_470.0),
            (0xcc, 75_770.0),
            (0x140, 59_805.0),
            (0x143, 56_440.0),
        ] {
            let error = weights[&page] / published - 1.0;
            assert!(error.abs() < 0.001, "{page:#x}: {} for {published}", weights[&page]);
        }
        let total: f64 = weights.values().sum();
        assert!((total / 3_448_064.0 - 1.0).abs() < 0.001, "{total}");
    }

    #[test]
    fn code_lies_on_the_pages_of_the_image_and_on_all_of_them() {
        let weights = weights(&Program::new());
        let text = || TEXT.iter().flat_map(|&(first, end)| first..end);
        assert_eq!(text().count(), 236);
        assert!(text().all(|page| page == CONSTANTS || weights.contains_key(&page)));
        assert_eq!(weights.len(), 235);
    }

    #[test]
    fn keccak_is_as_long_as_published_and_never_leaves_its_stack_page() {
        let program = Program::new();
        let keccak = &program.functions[0];
        assert_eq!(keccak.fetches, 11_229);
        let slots = &program.slots[keccak.slots.clone()];
        assert!(slots.iter().all(|slot| slot.operand == FRAME));
    }
}
