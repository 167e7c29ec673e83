//! From runs of instructions to functions and stacks.
//!
//! The one idea: nobody has to know how a kernel was compiled to follow it. A call is followed to
//! its function and back: where the next instructions lie behind a call that is open, it has
//! returned; where they lie in another function without a call, the function went on there (a tail
//! call, a thunk). Counts are exclusive, by stack, so that they add up to the whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    log::{Counts, Run},
    symbols::Symbols,
};

/// Addresses of the kernel begin here.
const KERNEL: u64 = 1 << 63;
/// Bits of an address within a line of the cache.
const LINE: u32 = 6;
/// Frames of a stack at most: the kernel's has no room for more.
const DEPTH_MAX: usize = 512;

/// How the names of functions begin that somebody else's business goes through.
const DISTURBS: &[(&str, &str)] = &[
    ("asm_sysvec_", "interrupt"),
    ("asm_common_interrupt", "interrupt"),
    ("asm_exc_nmi", "interrupt"),
    ("handle_softirqs", "softirq"),
    ("__do_softirq", "softirq"),
    ("__schedule", "reschedule"),
];

/// A path, by function.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Folded {
    /// Of the kernel, all together.
    pub(super) total: Counts,
    /// Of the program.
    pub(super) user: Counts,
    /// Exclusive, by stack: the outermost function first, with `;` between.
    pub(super) stacks: BTreeMap<String, Counts>,
    /// Exclusive, by function.
    pub(super) own: BTreeMap<String, Counts>,
    /// Distinct lines of the kernel's code.
    pub(super) text_lines: u64,
}

impl Folded {
    /// What disturbed it, if anything did.
    pub(super) fn disturbed(&self) -> Option<&'static str> {
        let by = |name: &String| {
            DISTURBS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, what)| *what)
        };
        self.own.keys().find_map(by)
    }
}

/// A function that is open, and where it returns to.
#[derive(Debug, Clone)]
struct Frame {
    function: usize,
    back: Option<u64>,
}

/// Follows a path.
pub(super) fn follow(runs: &[Run], symbols: &Symbols) -> Folded {
    let mut names: Vec<String> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut stacks: HashMap<Vec<usize>, Counts> = HashMap::new();
    let mut own: BTreeMap<usize, Counts> = BTreeMap::new();
    let mut folded = Folded::default();
    let mut frames: Vec<Frame> = Vec::new();
    let mut lines = BTreeSet::new();
    let mut before: Option<&Run> = None;
    for run in runs {
        if run.start < KERNEL {
            folded.user += run.counts;
            frames.clear();
            before = None;
            continue;
        }
        let name = symbols.name(run.start);
        let function = *known.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        });
        let end = before.map(|run| run.start.wrapping_add(run.bytes));
        let returned = frames.iter().rposition(|frame| frame.back == Some(run.start));
        if before.is_some_and(|run| run.calls) && frames.len() < DEPTH_MAX {
            frames.push(Frame { function, back: end });
        } else if let Some(index) = returned {
            frames.truncate(index);
        }
        match frames.last_mut() {
            Some(top) => top.function = function,
            None => frames.push(Frame { function, back: None }),
        }
        let stack = frames.iter().map(|frame| frame.function).collect();
        *stacks.entry(stack).or_default() += run.counts;
        *own.entry(function).or_default() += run.counts;
        folded.total += run.counts;
        lines.extend(run.start >> LINE..=(run.start.wrapping_add(run.bytes.max(1) - 1)) >> LINE);
        before = Some(run);
    }
    let joined = |stack: Vec<usize>| {
        let names: Vec<&str> = stack.into_iter().map(|function| names[function].as_str()).collect();
        names.join(";")
    };
    for (stack, counts) in stacks {
        *folded.stacks.entry(joined(stack)).or_default() += counts;
    }
    folded.own =
        own.into_iter().map(|(function, counts)| (names[function].clone(), counts)).collect();
    folded.text_lines = lines.len() as u64;
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = KERNEL;

    fn run(start: u64, instructions: u64, calls: bool) -> Run {
        let counts = Counts { instructions, ..Counts::default() };
        Run { start: BASE + start, bytes: 4, counts, calls }
    }

    fn symbols() -> Symbols {
        let at = |offset: u64, name: &str| format!("{:x} {name};", BASE + offset);
        Symbols::read(
            &[at(0, "entry"), at(100, "a"), at(200, "b"), at(300, "thunk"), at(400, "c")].concat(),
        )
    }

    fn followed(runs: &[Run]) -> Vec<(String, u64)> {
        let folded = follow(runs, &symbols());
        let sum: u64 = folded.own.values().map(|counts| counts.instructions).sum();
        assert_eq!(sum, folded.total.instructions);
        let stacks = folded.stacks.into_iter();
        stacks.map(|(stack, counts)| (stack, counts.instructions)).collect()
    }

    fn stacks(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect()
    }

    #[test]
    fn a_call_is_followed_there_and_back() {
        let found = followed(&[
            run(0, 1, true),
            run(100, 2, true),
            run(200, 3, false),
            run(104, 4, false),
            run(4, 5, false),
        ]);
        assert_eq!(found, stacks(&[("entry", 6), ("entry;a", 6), ("entry;a;b", 3)]));
    }

    #[test]
    fn a_tail_call_takes_the_place_of_its_function_and_returns_for_it() {
        let found =
            followed(&[run(0, 1, true), run(100, 2, false), run(200, 3, false), run(4, 5, false)]);
        assert_eq!(found, stacks(&[("entry", 6), ("entry;a", 2), ("entry;b", 3)]));
    }

    #[test]
    fn a_thunk_that_calls_itself_to_jump_is_no_function_of_the_stack() {
        // call thunk; call 1f; 1: ret to c; back to behind the first call.
        let found = followed(&[
            run(0, 1, true),
            run(300, 1, true),
            run(308, 2, false),
            run(400, 7, false),
            run(4, 1, false),
        ]);
        let of = |name: &str| found.iter().find(|(stack, _)| stack == name).map(|(_, n)| *n);
        assert_eq!((of("entry"), of("entry;thunk;c")), (Some(2), Some(7)));
    }

    #[test]
    fn the_program_is_counted_apart() {
        let user = Run { start: 16, ..run(0, 1, false) };
        let folded = follow(&[user, run(0, 9, false), user], &symbols());
        assert_eq!((folded.user.instructions, folded.total.instructions), (2, 9));
    }

    #[test]
    fn what_an_interrupt_took_part_in_is_disturbed() {
        let symbols = Symbols::read(&format!("{BASE:x} asm_sysvec_apic_timer_interrupt;"));
        assert_eq!(follow(&[run(0, 1, false)], &symbols).disturbed(), Some("interrupt"));
        assert_eq!(follow(&[run(0, 1, false)], &self::symbols()).disturbed(), None);
    }
}
