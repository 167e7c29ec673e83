//! Who called the instructions that fault, as unwinding found it for some of their faults.
//!
//! The kernel follows frame pointers, for every fault told in full. Where a function keeps none,
//! its caller is missing, or a number that is no address is in its place. Of one fault in `EVERY`
//! the stack is told as well and unwound ([`super::unwind`]); what was found there counts for all
//! faults of the same instruction, in proportion. Where both ways agree each fault keeps its own.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{frame::Frame, unwind::End};

/// Of how many faults told in full the stack of one is told: a prime, so that no pattern of the
/// program's falls in with it.
pub(super) const EVERY: u64 = 31;

/// Instructions of which anything is kept.
const INSTRUCTIONS_MAX: usize = 4096;
/// Ways to one instruction that are told apart.
const WAYS_MAX: usize = 8;
/// Stacks of one instruction that are all unwound; of more one in eight.
const UNWOUND: u64 = 64;
/// Stacks that are unwound at one look at the rings: while they are, the rings fill.
const AT_ONCE: u32 = 8;

/// What unwinding found.
#[derive(Debug, Default)]
pub struct Callers {
    at: HashMap<Frame, Ways>,
    /// How many more are unwound before the next look.
    left: u32,
    /// Stacks that were unwound.
    pub unwound: u64,
    /// Of them, those whose callers could not all be found, by the file that has no table.
    pub lost: BTreeMap<Rc<str>, u64>,
}

/// The ways to an instruction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Ways {
    /// Each with how often it was found.
    found: Vec<(Vec<Frame>, u64)>,
    /// Whether frame pointers once had other callers.
    differs: bool,
    told: u64,
}

impl Callers {
    /// Begins another look at the rings.
    pub(super) fn look(&mut self) {
        self.left = AT_ONCE;
    }

    /// Whether any more stacks are to be unwound before the next look.
    pub(super) fn has_time(&self) -> bool {
        self.left > 0
    }

    /// Whether a stack of this instruction is to be unwound.
    pub(super) fn wants(&mut self, instruction: &Frame) -> bool {
        if !self.at.contains_key(instruction) && self.at.len() >= INSTRUCTIONS_MAX {
            return false;
        }
        let ways = self.at.entry(instruction.clone()).or_default();
        ways.told += 1;
        ways.told <= UNWOUND || ways.told.is_multiple_of(8)
    }

    /// Adds what one stack came to, and what frame pointers had.
    pub(super) fn add(&mut self, chain: &[Frame], way: Vec<Frame>, end: End) {
        self.unwound += 1;
        self.left = self.left.saturating_sub(1);
        let Some(instruction) = way.first() else { return };
        if let (End::Lost, Some(last)) = (end, way.last()) {
            *self.lost.entry(Rc::clone(&last.file)).or_default() += 1;
        }
        let Some(ways) = self.at.get_mut(instruction) else { return };
        ways.differs |= chain.len() < 2 || !way.starts_with(known(chain));
        ways.add(way, 1);
    }

    /// The ways to an instruction; none where no stack of it was unwound.
    pub(super) fn at(&self, instruction: &Frame) -> Option<&Ways> {
        self.at.get(instruction).filter(|ways| !ways.found.is_empty())
    }

    /// The ways to each function, by a name for each of its instructions.
    pub(super) fn by_function(
        &self,
        mut name: impl FnMut(&Frame) -> Option<String>,
    ) -> HashMap<String, Ways> {
        let mut all: HashMap<String, Ways> = HashMap::new();
        let mut instructions: Vec<_> = self.at.iter().collect();
        instructions.sort_by_key(|(instruction, _)| *instruction);
        for (instruction, ways) in instructions {
            let Some(name) = name(instruction) else { continue };
            let function = all.entry(name).or_default();
            function.differs |= ways.differs;
            ways.found.iter().for_each(|(way, count)| function.add(way.clone(), *count));
        }
        all
    }
}

impl Ways {
    fn add(&mut self, way: Vec<Frame>, count: u64) {
        // The instruction itself is known; its callers tell ways apart.
        if let Some((_, known)) = self.found.iter_mut().find(|(other, _)| other[1..] == way[1..]) {
            *known += count;
        } else if self.found.len() < WAYS_MAX {
            self.found.push((way, count));
        }
    }

    /// The callers that are taken for those of a fault with this chain of frame pointers, each with
    /// its weight; none where the chain is right as it is.
    pub(super) fn of(&self, chain: &[Frame]) -> Vec<(&[Frame], u64)> {
        let callers = known(chain).get(1..).unwrap_or_default();
        let common = |way: &[Frame]| way.iter().zip(callers).take_while(|(a, b)| a == b).count();
        let most = self.found.iter().map(|(way, _)| common(&way[1..])).max().unwrap_or(0);
        if !self.differs && most < callers.len() {
            return Vec::new();
        }
        let ways = self.found.iter().filter(|(way, _)| common(&way[1..]) == most);
        ways.map(|(way, count)| (&way[1..], *count)).collect()
    }
}

/// A chain up to what is no code, which stood where a frame pointer was not kept.
fn known(chain: &[Frame]) -> &[Frame] {
    let end = chain.iter().skip(1).position(|frame| frame.file.is_empty());
    end.map_or(chain, |end| &chain[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(at: &[u64]) -> Vec<Frame> {
        let file = |at: &u64| if *at == 0 { "" } else { "/p" };
        at.iter().map(|at| Frame { file: file(at).into(), at: *at }).collect()
    }

    /// Callers of one instruction, by pairs of a chain and a way.
    fn learned(pairs: &[(&[u64], &[u64])]) -> Callers {
        let mut callers = Callers::default();
        for (chain, way) in pairs {
            assert!(callers.wants(&frames(way)[0]));
            callers.add(&frames(chain), frames(way), End::Whole);
        }
        callers
    }

    fn of(callers: &Callers, chain: &[u64]) -> Vec<(Vec<u64>, u64)> {
        let chain = frames(chain);
        let ways = callers.at(&chain[0]).map(|ways| ways.of(&chain)).unwrap_or_default();
        let at = |way: &[Frame]| way.iter().map(|frame| frame.at).collect();
        ways.into_iter().map(|(way, count)| (at(way), count)).collect()
    }

    #[test]
    fn callers_that_frame_pointers_miss_are_those_of_the_unwound_ones() {
        let callers = learned(&[(&[1, 0], &[1, 2, 3]), (&[1], &[1, 2, 3]), (&[1], &[1, 4, 3])]);
        assert_eq!(of(&callers, &[1]), [(vec![2, 3], 2), (vec![4, 3], 1)]);
        assert_eq!(of(&callers, &[1, 4, 0, 9]), [(vec![4, 3], 1)], "as far as it is known");
        assert_eq!(of(&callers, &[1, 3]), [(vec![2, 3], 2), (vec![4, 3], 1)], "one was left out");
        assert_eq!(of(&callers, &[7]), [], "of another instruction nothing is known");
    }

    #[test]
    fn where_both_agree_a_fault_keeps_its_own_callers() {
        let callers = learned(&[(&[1, 2, 3], &[1, 2, 3, 5]), (&[1, 2], &[1, 2, 3, 5])]);
        assert_eq!(of(&callers, &[1, 2, 3]), [(vec![2, 3, 5], 2)], "and those further out");
        assert_eq!(of(&callers, &[1, 6, 7]), []);
    }

    #[test]
    fn instructions_of_a_function_share_their_ways() {
        let callers = learned(&[(&[1], &[1, 2]), (&[8], &[8, 2]), (&[9], &[9, 3])]);
        let name = |frame: &Frame| (frame.at < 9).then(|| "fill".to_owned());
        let functions = callers.by_function(name);
        assert_eq!(functions.len(), 1);
        let callers = frames(&[2]);
        assert_eq!(functions["fill"].of(&frames(&[5])), [(&callers[..], 2)]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut callers = Callers::default();
        for at in 1..10_000 {
            let instruction = frames(&[1 + at % 5000, at]);
            if callers.wants(&instruction[0]) {
                callers.add(&[], instruction, End::Lost);
            }
        }
        assert_eq!((callers.at.len(), callers.lost.len()), (INSTRUCTIONS_MAX, 1));
        for at in 1..1000 {
            callers.add(&[], frames(&[2, at]), End::Whole);
        }
        assert_eq!(of(&callers, &[2]).len(), WAYS_MAX);
        let wanted = (0..8000).filter(|_| callers.wants(&frames(&[3])[0])).count();
        assert!((1000..1200).contains(&wanted), "{wanted}");
    }
}
