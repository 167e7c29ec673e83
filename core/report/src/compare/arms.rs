//! The two arms of one run, set against each other.
//!
//! The one idea: processes of one block stand beside each other, so that whatever disturbed a block
//! is in neither side of its quotient. The blocks also say what coming second did: the order was
//! drawn, so that it is no part of any ratio, and can be asked by itself.

use std::collections::BTreeMap;

use pagelab_record::{Ab, Arm, Case, Record, ab::Change, verdict::Ratio};

use super::{
    Side,
    facts::{Class, Difference},
    pairs::{self, Left, Pair, Paired},
};
use crate::metric::Found;

/// The records of a run by their cells, each of the one arm beside that of the other.
pub(super) fn of_run<'r>(side: &Side<'r>, ab: &Ab) -> Paired<'r> {
    let mut cells: BTreeMap<u32, [Option<&'r Record>; 2]> = BTreeMap::new();
    for record in side.records {
        let Some(turns) = &record.ab else { continue };
        if let Some(index) = ab.index(&turns.arm) {
            cells.entry(turns.cell).or_default()[index] = Some(record);
        }
    }
    let names = ab.arms.each_ref().map(|arm| arm.name.as_str());
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    for (cell, both) in cells {
        match both {
            [Some(a), Some(b)] => {
                let pair = Pair {
                    a,
                    b,
                    case: common(&a.case, &b.case),
                    more: [Vec::new(), Vec::new()],
                    cell: Some(cell),
                };
                pairs::add(pair, names, &mut pairs, &mut left);
            }
            [Some(record), None] => left.push(Left::of(record, format!("only {}", names[0]))),
            [None, Some(record)] => left.push(Left::of(record, format!("only {}", names[1]))),
            [None, None] => {}
        }
    }
    (pairs, left)
}

/// What two arms differ in that no fact tells: those are read between the processes, of what the
/// machine is to both.
pub(super) fn difference(pair: &Pair<'_>) -> Option<Difference> {
    let arm = |record: &Record| record.ab.as_ref().map(|turns| told(&turns.arm));
    let ((key, a), (_, b)) = arm(pair.a)?.zip(arm(pair.b)?)?;
    Some(Difference::new(Class::Settings, &key, [a, b]))
}

/// The key of that difference, which is what the run is about.
pub(super) fn allowed(ab: &Ab) -> Option<String> {
    told(&ab.arms[0]).map(|(key, _)| key)
}

/// A setting or program of an arm, and what it is.
fn told(arm: &Arm) -> Option<(String, String)> {
    match &arm.change {
        Change::Nothing | Change::Parameter { .. } | Change::Environment { .. } => None,
        Change::Setting { path, value } => Some((path.clone(), value.clone())),
        Change::Program { digest, version, .. } => {
            let digest = digest.get(..12).unwrap_or(digest);
            Some(("program".to_owned(), format!("pagelab {version}, sha256 {digest}")))
        }
    }
}

/// What two cases agree in.
fn common(a: &Case, b: &Case) -> Case {
    let both = a.0.iter().filter(|(name, value)| b.get(name) == Some(value.as_str()));
    Case(both.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The numbers of two arms, block by block.
pub(super) fn blocks<'f>(a: &'f Found, b: &'f Found) -> impl Iterator<Item = (u32, [f64; 2])> + 'f {
    let of_b: BTreeMap<u32, f64> = b.numbered().collect();
    a.numbered().filter_map(move |(number, a)| Some((number, [a, *of_b.get(&number)?])))
}

/// The ratio of two arms, over the blocks that both have.
pub(crate) fn ratio(a: &Found, b: &Found) -> Option<Ratio> {
    let pairs: Vec<[f64; 2]> = blocks(a, b).map(|(_, [a, b])| [b, a]).collect();
    Ratio::of_pairs(&pairs)
}
