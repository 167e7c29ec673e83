//! Paths of a kernel side by side: counts, which differ exactly or not at all.
//!
//! The one idea: what an emulated machine counts is the same on every host, so that no fact of a
//! host forbids a comparison, nothing is uncertain, and there is no tie: a difference of one
//! instruction is one. What it consists of is told by function.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{WORKLOAD, profile::Profile};
use pagelab_report::{
    Block, Cell, Counting, Counts, Grid, Heading, Most, Named, Pair, Section, Standing, Tone,
    flame::Flame, group_thousands,
};

/// Paths side by side.
pub(crate) const COUNTING: Counting = Counting {
    name: "paths",
    threshold: ("instructions", Most::Number),
    lacks: None,
    has: |pair| sides(pair).is_some(),
    of: paths,
};

fn paths<'r>(pairs: Vec<Named<'r>>) -> Arc<dyn Counts + 'r> {
    let counted = |(pair, short)| Some(Counted { sides: sides(&pair)?, pair, short });
    Arc::new(Paths(pairs.into_iter().filter_map(counted).collect()))
}

/// The paths of a pair, where that is what it is of and no claim of it fails.
fn sides(pair: &Pair<'_>) -> Option<[Profile; 2]> {
    let path = |record: &pagelab_record::Record| {
        let is_path = record.workload == WORKLOAD && Standing::of(record) != Standing::Invalid;
        record.measured().filter(|_| is_path).and_then(Profile::of)
    };
    let [a, b] = [pair.a, pair.b].map(path);
    Some([a?, b?])
}

/// Every path of one side.
#[derive(Debug)]
struct Paths<'r>(Vec<Counted<'r>>);

/// Functions of a case that are shown; a page shows more.
const FUNCTIONS: usize = 12;
const FUNCTIONS_OF_A_PAGE: usize = 60;

/// A case whose path is known on both sides.
#[derive(Debug, Clone)]
struct Counted<'r> {
    pair: Pair<'r>,
    /// What the case is called among the others.
    short: String,
    sides: [Profile; 2],
}

/// A function that does not take the same on both sides: instructions of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Differs<'c> {
    function: &'c str,
    sides: [Option<i64>; 2],
}

impl Differs<'_> {
    fn difference(&self) -> i64 {
        let [a, b] = self.sides.map(|side| side.unwrap_or(0));
        b - a
    }

    fn what(&self) -> &'static str {
        match self.sides {
            [None, _] => "appeared",
            [_, None] => "vanished",
            _ if self.difference() > 0 => "grew",
            _ => "shrank",
        }
    }
}

impl Counted<'_> {
    /// Instructions of both sides.
    fn instructions(&self) -> [i64; 2] {
        self.sides.each_ref().map(Profile::instructions)
    }

    /// How many more the second side takes.
    fn difference(&self) -> i64 {
        let [a, b] = self.instructions();
        b - a
    }

    /// Functions that differ, those by most first.
    fn functions(&self) -> Vec<Differs<'_>> {
        let [a, b] = self.sides.each_ref().map(|profile| &profile.functions);
        let names: BTreeSet<&str> = a.keys().chain(b.keys()).map(String::as_str).collect();
        let own = |name: &str| [a, b].map(|side| side.get(name).map(|function| function.own));
        let all = names.into_iter().map(|function| Differs { function, sides: own(function) });
        let mut differs: Vec<_> = all.filter(|one| one.difference() != 0).collect();
        differs.sort_by_key(|one| (Reverse(one.difference().abs()), one.function));
        differs
    }

    /// The difference as the page draws it.
    fn flame(&self, names: [&str; 2]) -> Option<Flame> {
        let [a, b] = names;
        let title = format!("{}: {a} → {b}", self.short);
        let caption = "Stacks, the exception at the bottom; a bar is as wide as the larger of both \
                       sides. Red takes more than before, green less.";
        Flame::of(title, caption, self.stacks().into_iter())
    }

    /// Every stack with what it takes on either side, as flame graphs of a difference want it.
    fn stacks(&self) -> Vec<(&str, [i64; 2])> {
        let [a, b] = self.sides.each_ref().map(|profile| &profile.stacks);
        let names: BTreeSet<&str> = a.keys().chain(b.keys()).map(String::as_str).collect();
        let of = |name: &str| [a, b].map(|side| side.get(name).copied().unwrap_or(0));
        names.into_iter().map(|name| (name, of(name))).collect()
    }

    fn json(&self) -> Value {
        let [a, b] = self.instructions();
        let functions = self.functions();
        let functions = functions.iter().map(|one| {
            let [a, b] = one.sides;
            json!({ "function": one.function, "a": a, "b": b, "what": one.what() })
        });
        let kernels = self.sides.each_ref().map(|profile| &profile.kernel);
        json!({
            "workload": self.pair.a.workload,
            "case": self.pair.case,
            "kernels": kernels,
            "a": a,
            "b": b,
            "difference": b - a,
            "functions": functions.collect::<Vec<_>>(),
        })
    }

    /// `6.1.0-56-cloud-amd64 → 6.12.117`, or the one that both are of.
    fn kernels(&self) -> String {
        let [a, b] = self.sides.each_ref().map(|profile| profile.kernel.as_str());
        if a == b { a.to_owned() } else { format!("{a} → {b}") }
    }
}

/// The paths of one side against the base: how long they are, and the functions that differ.
fn sections(counted: &[Counted<'_>], heading: &Heading<'_>) -> Vec<Section> {
    let Heading { names: [a, b], for_page, .. } = *heading;
    let (id, title) = (|name: &str| heading.id(name), |text: &str| heading.title(text));
    let side =
        |which: usize| move |one: &&Counted<'_>| group_thousands(one.instructions()[which] as f64);
    let table = Grid::<&Counted<'_>>::new()
        .words("case", 0, |one| one.short.clone())
        .number(a, 0, side(0))
        .number(b, 0, side(1))
        .number("difference", 0, |one| signed(one.difference()))
        .number("change", 1, |one| {
            let [a, b] = one.instructions();
            (a > 0).then(|| format!("{:+.1} %", (b as f64 / a as f64 - 1.0) * 100.0))
        })
        .words("Linux", 2, |one| one.kernels())
        .table(counted);
    let said = "Instructions of the path that most samples took, counted in an emulated machine: \
                the difference is exact.";
    let paths = Section::new(id("paths"), &title("Paths")).with(table);
    let mut sections = vec![paths.with(said)];
    let most = if for_page { FUNCTIONS_OF_A_PAGE } else { FUNCTIONS };
    let rows: Vec<_> = counted
        .iter()
        .flat_map(|one| one.functions().into_iter().take(most).map(move |differs| (one, differs)))
        .collect();
    if rows.is_empty() {
        return sections;
    }
    let all: usize = counted.iter().map(|one| one.functions().len()).sum();
    let shown = rows.len();
    let many = counted.len() > 1;
    let own = |which: usize| {
        move |(_, differs): &(&Counted<'_>, Differs<'_>)| {
            differs.sides[which].map(|own| group_thousands(own as f64))
        }
    };
    let table = Grid::<(&Counted<'_>, Differs<'_>)>::new()
        .only_if(many, |grid| grid.words("case", 0, |(one, _)| one.short.clone()))
        .words("function", 0, |(_, differs)| differs.function.to_owned())
        .number(a, 1, own(0))
        .number(b, 1, own(1))
        .number("difference", 0, |(_, differs)| signed(differs.difference()))
        .words("", 0, |(_, differs)| differs.what())
        .table(rows);
    let more = if shown < all {
        format!(" The {shown} that differ by most, of {all}; --format json has them all.")
    } else {
        String::new()
    };
    let functions = Section::new(id("functions"), &title("Functions that differ"));
    let mut functions = functions.with(table);
    functions.blocks.push(Block::Text(format!("Instructions of the function itself.{more}")));
    if for_page {
        let flames = counted.iter().filter_map(|one| one.flame([a, b]));
        functions.blocks.extend(flames.map(Block::Flame));
    }
    sections.push(functions);
    sections
}

fn signed(difference: i64) -> Cell {
    let tone = match difference {
        0 => Tone::Plain,
        1.. => Tone::Bad,
        _ => Tone::Good,
    };
    Cell::toned(format!("{difference:+}"), tone)
}

/// Lines for a mail: each case, and the functions that differ by most.
fn lines(all: &[Counted<'_>], columns: usize) -> Vec<String> {
    /// Columns of the three numbers.
    const NUMBERS: usize = 30;
    let width = columns.saturating_sub(NUMBERS).max(12);
    let mut lines = Vec::new();
    let mut row = |name: &str, a: &str, b: &str, difference: &str| {
        let mut name = name;
        if name.chars().count() > width {
            lines.push(name.chars().take(columns).collect());
            name = "";
        }
        lines.push(format!("{name:width$} {a:>9} {b:>9} {difference:>9}"));
    };
    for counted in all {
        row("instructions", "before", "after", "more");
        let [a, b] = counted.instructions();
        let difference = format!("{:+}", counted.difference());
        row(&counted.short, &a.to_string(), &b.to_string(), &difference);
        for differs in counted.functions().into_iter().take(FUNCTIONS) {
            let [a, b] = differs.sides.map(|own| own.map_or("-".to_owned(), |own| own.to_string()));
            let difference = format!("{:+}", differs.difference());
            row(&format!("  {}", differs.function), &a, &b, &difference);
        }
    }
    lines
}

impl Counts for Paths<'_> {
    fn is_worse(&self, most: f64) -> bool {
        self.0.iter().any(|one| one.difference() as f64 > most)
    }

    fn is_slower(&self) -> bool {
        self.is_worse(0.0)
    }

    fn sections(&self, heading: &Heading<'_>) -> Vec<Section> {
        sections(&self.0, heading)
    }

    fn json(&self) -> Vec<Value> {
        self.0.iter().map(Counted::json).collect()
    }

    fn mail(&self, columns: usize) -> Vec<String> {
        lines(&self.0, columns)
    }

    /// `case;function;…;function A B`, a line each.
    fn folded(&self) -> String {
        let mut text = String::new();
        for counted in &self.0 {
            let case = counted.short.replace([' ', ';'], "_");
            for (stack, [a, b]) in counted.stacks() {
                text.push_str(&format!("{case};{stack} {a} {b}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use pagelab_record::{Case, Host, Nature, Outcome, Record, schema::SCHEMA};

    use super::*;
    use crate::views::path::profile::tests::measured as with_stacks;

    fn record(stacks: &[(&str, i64)]) -> Record {
        Record {
            schema: SCHEMA.to_owned(),
            run: "r".to_owned(),
            boot: String::new(),
            workload: WORKLOAD.to_owned(),
            nature: Nature::Emulated,
            case: Case::default().with("kind", "write"),
            ab: None,
            host: Host::default(),
            outcome: Outcome::Measured(with_stacks(stacks)),
        }
    }

    /// What is said of two records.
    fn said<T>(a: &Record, b: &Record, of: impl FnOnce(&Counted<'_>) -> T) -> Option<T> {
        let pair = Pair { a, b, case: a.case.clone(), more: [vec![], vec![]], cell: None };
        let sides = sides(&pair)?;
        Some(of(&Counted { sides, pair, short: "write 4k".to_owned() }))
    }

    #[test]
    fn functions_that_differ_are_told_by_most_first_and_those_that_do_not_are_not() {
        let a = record(&[("e", 10), ("e;same", 5), ("e;gone", 3), ("e;less", 9)]);
        let b = record(&[("e", 11), ("e;same", 5), ("e;new", 20), ("e;less", 2)]);
        let told = said(&a, &b, |counted| {
            assert_eq!((counted.instructions(), counted.difference()), ([27, 38], 11));
            let functions = counted.functions();
            let told =
                functions.iter().map(|one| (one.function.to_owned(), one.difference(), one.what()));
            let sum: i64 = functions.iter().map(Differs::difference).sum();
            assert_eq!(sum, counted.difference(), "they add up");
            told.collect::<Vec<_>>()
        });
        let expected = [
            ("new", 20, "appeared"),
            ("less", -7, "shrank"),
            ("gone", -3, "vanished"),
            ("e", 1, "grew"),
        ];
        let expected = expected.map(|(name, difference, what)| (name.to_owned(), difference, what));
        assert_eq!(told.unwrap(), expected);
    }

    #[test]
    fn a_record_with_a_claim_that_fails_has_no_path_to_compare() {
        let (good, mut bad) = (record(&[("e", 1)]), record(&[("e", 2)]));
        if let Outcome::Measured(measured) = &mut bad.outcome {
            measured.witness.push(pagelab_record::Claim::check(
                pagelab_record::vocabulary::Check::PathWindows,
                "",
                1,
                2,
                0,
            ));
        }
        let difference = |a, b| said(a, b, |counted| Some(counted.difference())).flatten();
        assert_eq!(difference(&good, &bad), None);
        assert_eq!(difference(&good, &good), Some(0));
    }

    #[test]
    fn a_mail_is_as_wide_as_it_was_asked_for() {
        let long = format!("e;{}", "x".repeat(60));
        let (a, b) = (record(&[("e", 10)]), record(&[("e", 10), (&long, 7)]));
        let pair = Pair { a: &a, b: &b, case: a.case.clone(), more: [vec![], vec![]], cell: None };
        let counts = (COUNTING.of)(vec![(pair, "write 4k".to_owned())]);
        let lines = counts.mail(72);
        assert!(lines.iter().all(|line| line.chars().count() <= 72), "{lines:#?}");
        assert!(lines.iter().any(|line| line.ends_with("+7")), "{lines:#?}");
        assert_eq!(counts.folded(), format!("write_4k;e 10 10\nwrite_4k;{long} 0 7\n"));
    }
}
