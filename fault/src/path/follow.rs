//! From runs of instructions to functions and stacks.
//!
//! The one idea: nobody has to know how a kernel was compiled to follow it. A call is followed to
//! its function and back: where the next instructions lie behind a call that is open, it has
//! returned; where they lie in another function without a call, the function went on there (a tail
//! call, a thunk). Counts are exclusive, by stack, so that they add up to the whole. What lies
//! between the entry of an interrupt and its return is cut out and filed apart: whatever it came
//! into goes on behind it as if nothing had been. So is what the scheduler did to give the
//! processor to other tasks, and what those did, which are told by their stacks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    log::{Counts, End, Run},
    symbols::Symbols,
};

/// Addresses of the kernel begin here.
const KERNEL: u64 = 1 << 63;
/// Bits of an address within a line of the cache.
const LINE: u32 = 6;
/// Frames of a stack at most: the kernel's has no room for more.
const DEPTH_MAX: usize = 512;

/// How the names of functions begin that an interrupt enters the kernel by; those of devices have a
/// stub each below the first name.
const ENTRIES: &[&str] = &["irq_entries_start", "asm_sysvec_", "asm_exc_nmi"];
/// How those begin that other exceptions enter by.
const EXCEPTION: &str = "asm_exc_";
/// How the names of functions begin that somebody else's business goes through.
const DISTURBS: &[(&str, &str)] = &[("handle_softirqs", "softirq"), ("__do_softirq", "softirq")];
/// The function that chooses the next task, and returns when this one is chosen again.
const SCHEDULES: &str = "__schedule";
/// The function that changes from the stack of a task to that of another, and returns there.
const SWITCH: &str = "__switch_to_asm";

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
    /// Of the interrupts that came into it.
    pub(super) interrupted: Counts,
    /// Of the scheduler and of other tasks, from giving the processor away to having it again.
    pub(super) away: Counts,
    /// Whether the window ended within an interrupt or another task.
    is_lost: bool,
}

impl Folded {
    /// What disturbed it so that the rest is not its own, if anything did.
    pub(super) fn disturbed(&self) -> Option<&'static str> {
        if self.is_lost {
            return Some("interrupt");
        }
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

/// Which runs are another task's. A stack is known by the calls that push to it, so whose a piece
/// between two switches is shows in its first call.
fn away(runs: &[Run], symbols: &Symbols) -> Vec<bool> {
    let mut away = vec![false; runs.len()];
    let switch = symbols.address(SWITCH);
    let switches: Vec<usize> =
        (0..runs.len()).filter(|at| Some(runs[*at].start) == switch).collect();
    let stack = |run: &&Run| run.start >= KERNEL && run.stack != 0;
    let Some(first) = switches.first() else { return away };
    let mine = runs[..*first].iter().rev().find(stack).map(|run| run.stack);
    for (index, switch) in switches.iter().enumerate() {
        let end = switches.get(index + 1).copied().unwrap_or(runs.len() - 1);
        let piece = *switch + 1..end + 1;
        let theirs = runs[piece.clone()].iter().find(stack).map(|run| run.stack);
        if theirs != mine {
            away[piece].fill(true);
        }
    }
    away
}

/// What is known of an address of the kernel.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Index of its function's name.
    function: usize,
    /// Whether an interrupt, or an exception within one, enters the kernel here.
    interrupt: bool,
    exception: bool,
}

/// Functions by their number, and addresses: a path comes by the same ones again and again.
#[derive(Debug)]
struct Functions<'a> {
    symbols: &'a Symbols,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    known: HashMap<u64, Place>,
}

impl<'a> Functions<'a> {
    fn new(symbols: &'a Symbols) -> Self {
        let (numbers, known) = (HashMap::new(), HashMap::new());
        Self { symbols, names: Vec::new(), numbers, known }
    }

    fn at(&mut self, address: u64) -> Place {
        if let Some(place) = self.known.get(&address) {
            return *place;
        }
        let name = self.symbols.name(address);
        let is_entry = self.symbols.begins(address) || name == ENTRIES[0];
        let interrupt = is_entry && ENTRIES.iter().any(|start| name.starts_with(start));
        let exception = is_entry && name.starts_with(EXCEPTION);
        let function = *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() - 1
        });
        let place = Place { function, interrupt, exception };
        self.known.insert(address, place);
        place
    }
}

/// What tells the runs of interrupts from those that they came into.
#[derive(Debug, Default)]
struct Cut {
    /// Interrupts and exceptions that are open.
    depth: usize,
}

impl Cut {
    /// Whether a run is an interrupt's; where it is the kernel's, its place.
    fn takes(&mut self, run: &Run, place: Option<Place>) -> bool {
        let enters = place.is_some_and(|at| at.interrupt || (self.depth > 0 && at.exception));
        self.depth += usize::from(enters);
        let is_mine = self.depth > 0;
        if run.end == End::Resumes {
            self.depth = self.depth.saturating_sub(1);
        }
        is_mine
    }
}

/// Follows a path.
pub(super) fn follow(runs: &[Run], symbols: &Symbols) -> Folded {
    let mut functions = Functions::new(symbols);
    let mut stacks: HashMap<Vec<usize>, Counts> = HashMap::new();
    let mut own: BTreeMap<usize, Counts> = BTreeMap::new();
    let mut folded = Folded::default();
    let mut frames: Vec<Frame> = Vec::new();
    let mut lines = BTreeSet::new();
    let mut before: Option<&Run> = None;
    let mut cut = Cut::default();
    let away = away(runs, symbols);
    for (run, is_away) in runs.iter().zip(&away) {
        if *is_away {
            folded.away += run.counts;
            continue;
        }
        let place = (run.start >= KERNEL).then(|| functions.at(run.start));
        if cut.takes(run, place) {
            folded.interrupted += run.counts;
            continue;
        }
        let Some(Place { function, .. }) = place else {
            folded.user += run.counts;
            frames.clear();
            before = None;
            continue;
        };
        let end = before.map(|run| run.start.wrapping_add(run.bytes));
        let returned = frames.iter().rposition(|frame| frame.back == Some(run.start));
        if before.is_some_and(|run| run.end == End::Calls) && frames.len() < DEPTH_MAX {
            frames.push(Frame { function, back: end });
        } else if let Some(index) = returned {
            frames.truncate(index);
        }
        match frames.last_mut() {
            Some(top) => top.function = function,
            None => frames.push(Frame { function, back: None }),
        }
        before = Some(run);
        if frames.iter().any(|frame| functions.names[frame.function] == SCHEDULES) {
            folded.away += run.counts;
            continue;
        }
        let stack = frames.iter().map(|frame| frame.function).collect();
        *stacks.entry(stack).or_default() += run.counts;
        *own.entry(function).or_default() += run.counts;
        folded.total += run.counts;
        lines.extend(run.start >> LINE..=(run.start.wrapping_add(run.bytes.max(1) - 1)) >> LINE);
    }
    let names = functions.names;
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
    folded.is_lost = cut.depth > 0 || away.last() == Some(&true);
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = KERNEL;

    fn run(start: u64, instructions: u64, calls: bool) -> Run {
        let counts = Counts { instructions, ..Counts::default() };
        let end = if calls { End::Calls } else { End::Plain };
        Run { start: BASE + start, bytes: 4, counts, end, stack: u64::from(calls) }
    }

    fn symbols() -> Symbols {
        let at = |offset: u64, name: &str| format!("{:x} T {name};", BASE + offset);
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
    fn an_interrupt_is_cut_out_and_the_rest_goes_on() {
        let names = ["0 entry", "100 a", "200 asm_sysvec_timer", "280 handle_softirqs"];
        let more = ["300 asm_exc_int3", "400 __schedule"];
        let text = names.iter().chain(&more).map(|name| {
            let (at, name) = name.split_once(' ').unwrap();
            format!("{:x} T {name};", BASE + u64::from_str_radix(at, 16).unwrap())
        });
        let symbols = Symbols::read(&text.collect::<String>());
        let resume = |start| Run { end: End::Resumes, ..run(start, 1, false) };
        let all = [
            run(0, 1, true),
            run(0x200, 5, true),
            run(0x280, 7, true),
            run(0x300, 1, false),
            resume(0x310),
            run(0x284, 1, false),
            resume(0x210),
            run(0x100, 2, false),
            run(4, 3, false),
        ];
        let whole = follow(&all, &symbols);
        assert_eq!((whole.interrupted.instructions, whole.total.instructions), (16, 6));
        assert_eq!(whole.stacks["entry;a"].instructions, 2);
        assert_eq!(whole.disturbed(), None);
        let open = follow(&all[..4], &symbols);
        assert_eq!(open.disturbed(), Some("interrupt"));
        let waits = [run(0, 1, true), run(0x400, 7, true), run(0x100, 2, false), run(4, 3, false)];
        let waits = follow(&waits, &symbols);
        assert_eq!((waits.total.instructions, waits.away.instructions), (4, 9));
        assert_eq!(waits.disturbed(), None);
        assert_eq!(follow(&[run(0x280, 1, true)], &symbols).disturbed(), Some("softirq"));
    }

    #[test]
    fn what_other_tasks_do_is_cut_out_and_the_task_goes_on_where_it_waited() {
        let names =
            [(0, "entry"), (0x100, "a"), (0x200, "__switch_to_asm"), (0x300, "asm_sysvec_x")];
        let symbols = names
            .iter()
            .fold(String::new(), |text, (at, name)| text + &format!("{:x} T {name};", BASE + at));
        let symbols = Symbols::read(&symbols);
        let on = |stack, run: Run| Run { stack, ..run };
        let there = [
            on(3, run(0, 1, true)),
            on(1, run(0x100, 2, true)),
            run(0x200, 10, false),
            run(0x110, 20, false),
            on(2, run(0x120, 20, true)),
            run(0x300, 20, false),
        ];
        let back = [run(0x200, 10, false), on(1, run(0x104, 4, true)), run(4, 8, false)];
        let whole = follow(&[&there[..], &back].concat(), &symbols);
        assert_eq!((whole.total.instructions, whole.away.instructions), (25, 70));
        assert_eq!(whole.disturbed(), None);
        assert_eq!(follow(&there, &symbols).disturbed(), Some("interrupt"));
    }
}
