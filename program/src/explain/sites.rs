//! Where faults came from, by name: functions, and whole stacks.
//!
//! The one idea: a reader looks for the function that faults, so all its instructions and callers
//! are one site; the callers that all of them have in common are told. A stack is for a flame
//! graph, which folds by itself: there each way to a function stands alone.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use pagelab_record::{Table, vocabulary::table};

use super::{
    callers::Ways,
    counts::{Part, Seen},
    frame::Frame,
    parts::{SHOWN, part_tables},
    symbols::Symbols,
};

/// Sites that are named: several instructions and ways are one function.
const NAMED: usize = 20 * SHOWN;
/// Stacks that are told one by one.
const STACKS: usize = 1000;
/// Callers that are told of a function.
const CALLERS: usize = 3;
/// What is not told one by one.
const ELSEWHERE: &str = "elsewhere";

/// A function, and the callers that all the ways to it have in common.
#[derive(Debug, Default)]
struct Function {
    part: Part,
    callers: Option<Vec<String>>,
    differs: bool,
}

impl Function {
    fn add(&mut self, part: &Part, callers: Vec<String>) {
        self.part.add(part);
        // None is known, which says nothing of the others.
        if callers.is_empty() {
            return;
        }
        let Some(common) = &mut self.callers else {
            self.callers = Some(callers);
            return;
        };
        let same = common.iter().zip(&callers).take_while(|(one, other)| one == other).count();
        self.differs |= same < common.len() || same < callers.len();
        common.truncate(same);
    }

    /// `fill (prog) < main < start`, and an ellipsis where the ways differ from there.
    fn name(&self, function: &str) -> String {
        let callers = self.callers.iter().flatten().map(String::as_str);
        let callers = callers.chain(self.differs.then_some("…"));
        [function].into_iter().chain(callers).collect::<Vec<_>>().join(" < ")
    }
}

/// The functions that took the faults, and the stacks where they were asked for.
pub(super) fn tables(seen: &Seen, symbols: &mut Symbols) -> Vec<Table> {
    let mut sites: Vec<(&Vec<Frame>, &Part)> = seen.sites.iter().collect();
    sites.sort_by_key(|(frames, part)| (Reverse(part.weight()), *frames));
    let (named, rest) = sites.split_at(sites.len().min(NAMED.max(STACKS)));
    let mut elsewhere = Part::default();
    for (_, part) in rest {
        elsewhere.add(part);
    }
    let named = with_callers(seen, named, symbols);
    let mut functions: BTreeMap<String, Function> = BTreeMap::new();
    for (frames, part) in &named {
        let (function, callers) = function(frames, symbols);
        functions.entry(function).or_default().add(part, callers);
    }
    let functions = functions.into_iter().map(|(name, function)| {
        let name = function.name(&name);
        (name, function.part)
    });
    let mut tables = part_tables(("site", SHOWN), functions, (ELSEWHERE, elsewhere.clone()), None);
    if seen.whole_stacks {
        let mut stacks: BTreeMap<String, Part> = BTreeMap::new();
        for (frames, part) in &named {
            stacks.entry(stack(frames, symbols)).or_default().add(part);
        }
        let what = table::STACK.trim_end_matches('/');
        tables.extend(part_tables((what, STACKS), stacks, (ELSEWHERE, elsewhere), None));
    }
    tables
}

/// Sites with the callers that unwinding found: of the instruction, or where no stack was told
/// there, of the function.
fn with_callers(
    seen: &Seen,
    sites: &[(&Vec<Frame>, &Part)],
    symbols: &mut Symbols,
) -> Vec<(Vec<Frame>, Part)> {
    let mut name = |frame: &Frame| symbols.has_function(frame).then(|| of_file(frame, symbols));
    let functions: HashMap<String, Ways> = seen.callers.by_function(&mut name);
    let mut all = Vec::new();
    for (frames, part) in sites {
        let mut of_function = |first| functions.get(&name(first)?);
        let ways = frames.first().and_then(|first| {
            let here = seen.callers.at(first);
            Some((first, here.or_else(|| of_function(first))?.of(frames)))
        });
        let Some((first, ways)) = ways.filter(|(_, ways)| !ways.is_empty()) else {
            all.push(((*frames).clone(), (*part).clone()));
            continue;
        };
        let whole = ways.iter().map(|(_, count)| count).sum();
        let mut from = 0;
        for (callers, count) in ways {
            let part = part.share(&(from..from + count), whole);
            all.push(([std::slice::from_ref(first), callers].concat(), part));
            from += count;
        }
    }
    all
}

/// A call site: the function, and who called it.
pub(super) fn name(frames: &[Frame], symbols: &mut Symbols) -> String {
    let (function, callers) = function(frames, symbols);
    [vec![function], callers].concat().join(" < ")
}

/// The function with its file, and its callers.
fn function(frames: &[Frame], symbols: &mut Symbols) -> (String, Vec<String>) {
    let Some((first, callers)) = frames.split_first() else {
        return (ELSEWHERE.to_owned(), Vec::new());
    };
    let name = of_file(first, symbols);
    // Functions without a name are their file, which is said once.
    let known: Vec<&Frame> = callers.iter().filter(|frame| symbols.is_known(frame)).collect();
    let mut said: Vec<String> = known.iter().map(|frame| symbols.function(frame)).collect();
    // Nor is it said again where the function itself has no name; then the first that has one says
    // its file.
    let is_other = |caller: &String| !name.starts_with(&format!("{caller}+"));
    if !symbols.has_function(first)
        && let Some(nearest) = said.iter().position(is_other)
        && symbols.has_function(known[nearest])
    {
        said[nearest] = of_file(known[nearest], symbols);
    }
    said.retain(is_other);
    said.dedup();
    // What an interpreter runs is told however far out it is.
    let made = known.iter().find(|frame| frame.is_made()).map(|frame| symbols.function(frame));
    let made = made.filter(|made| said.iter().skip(CALLERS).any(|caller| caller == made));
    said.truncate(CALLERS);
    said.extend(made);
    (name, said)
}

/// A function and its file; the offset tells instructions apart, not functions.
fn of_file(frame: &Frame, symbols: &mut Symbols) -> String {
    let whole = symbols.name(frame);
    match whole.split_once("+0x") {
        Some((function, rest)) if rest.contains(" (") => {
            let file = rest.split_once(" (").map_or("", |(_, file)| file);
            format!("{function} ({file}")
        }
        _ => whole,
    }
}

/// From the outermost caller to the function, as flame graphs want it.
fn stack(frames: &[Frame], symbols: &mut Symbols) -> String {
    let Some((first, callers)) = frames.split_first() else { return ELSEWHERE.to_owned() };
    // A caller outside every file is what stood where a frame pointer was not kept.
    let known: Vec<_> = callers.iter().rev().filter(|frame| symbols.is_known(frame)).collect();
    let names =
        known.into_iter().chain([first]).map(|frame| symbols.function(frame).replace(';', ":"));
    names.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(ways: &[&[&str]]) -> String {
        let mut function = Function::default();
        for callers in ways {
            let callers = callers.iter().map(ToString::to_string).collect();
            function.add(&Part::default(), callers);
        }
        function.name("fill (prog)")
    }

    #[test]
    fn a_function_has_the_callers_that_all_ways_to_it_have() {
        assert_eq!(folded(&[&["grow", "main"]]), "fill (prog) < grow < main");
        let two: [&[&str]; 2] = [&["grow", "main"], &["grow", "work"]];
        assert_eq!(folded(&two), "fill (prog) < grow < …");
        assert_eq!(folded(&[&["main"], &["work"], &["main"]]), "fill (prog) < …");
        assert_eq!(folded(&[&["main"], &["main", "start"]]), "fill (prog) < main < …");
        assert_eq!(folded(&[&[], &[]]), "fill (prog)");
        assert_eq!(folded(&[&[], &["main"], &[]]), "fill (prog) < main", "of two none is known");
    }

    #[test]
    fn a_stack_goes_from_the_outermost_caller_to_the_function() {
        let frame = |file: &str| Frame { file: file.into(), at: 0x1234 };
        let mut symbols = Symbols::default();
        let way = [frame("/no/inner.so"), frame(""), frame("/no/ou;ter.so")];
        let told = stack(&way, &mut symbols);
        assert_eq!(told, "ou:ter.so;inner.so");
        assert_eq!(stack(&[], &mut symbols), ELSEWHERE);
    }
}
