//! Cells and their verdicts: one side against the base.
//!
//! The one idea: what forbids a comparison is asked before any number is looked at; the verdicts of
//! what is left are those of a family, the cells of one workload.

use std::{collections::BTreeMap, sync::Arc};

use pagelab_record::{
    Record,
    verdict::{self, Better, Block, DELTA, Position, Question, Ratio, Verdict},
    vocabulary::{counter, series::PLANTED},
};

use super::{
    Asked, arms, busy,
    counts::{Counting, Counts},
    facts::{self, Class, Difference},
    pairs::{self, Left, Pair},
};
use crate::{
    entry::Standing,
    metric::{self, Found, Place, Statistic},
};

/// A case with a metric, on two sides.
#[derive(Debug, Clone)]
pub(super) struct Cell<'r> {
    pub(super) pair: Pair<'r>,
    /// What the case is called among the others.
    pub(super) short: String,
    pub(super) statistic: Statistic,
    pub(super) place: Option<Place>,
    pub(super) sides: [Option<Found>; 2],
    /// Boots of either side; where one has several, they are the units.
    pub(super) boots: [usize; 2],
    pub(super) ratio: Option<Ratio>,
    /// Its ratio's, for the family of its workload.
    pub(super) p: f64,
    pub(super) verdict: Verdict,
    /// Why there is no other verdict.
    pub(super) why: String,
    /// Processes of each side that would decide it, or boots where a side has several.
    pub(super) needs: Option<u32>,
}

impl Cell<'_> {
    /// Processes of either side.
    pub(super) fn counts(&self) -> [usize; 2] {
        self.sides.each_ref().map(|side| side.as_ref().map_or(0, |found| found.processes.len()))
    }

    /// Whether more processes would decide it.
    pub(super) fn is_open(&self) -> bool {
        self.verdict == Verdict::Inconclusive && self.ratio.is_some() && self.why.is_empty()
    }

    pub(super) fn metric(&self) -> String {
        match &self.place {
            Some(place) => place.metric(self.statistic),
            None => self.statistic.name(),
        }
    }
}

/// One side against the base.
#[derive(Debug, Clone)]
pub(super) struct Against<'r> {
    pub(super) name: String,
    pub(super) cells: Vec<Cell<'r>>,
    /// What was counted, with what says how that is compared.
    pub(super) counts: Vec<(&'static Counting, Arc<dyn Counts + 'r>)>,
    /// What one side alone has.
    pub(super) left: Vec<Left>,
    pub(super) differences: Vec<Difference>,
    /// Whether every pair was skipped on one side or the other.
    pub(super) all_skipped: bool,
    /// Whether both sides are of one boot each, and not of the same.
    pub(super) boots_differ: bool,
    /// What coming second did, where processes stand in blocks.
    pub(super) position: Option<Position>,
}

impl Against<'_> {
    /// Whether nothing was measured on both sides.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.counts.is_empty()
    }
}

/// A difference of less is none.
pub(super) fn delta_of(asked: &Asked) -> f64 {
    asked.delta.unwrap_or_else(|| DELTA.max(asked.floor.unwrap_or(0.0)))
}

/// Judges the pairs of one side.
pub(super) fn against<'r>(
    names: [&str; 2],
    mut pairs: Vec<Pair<'r>>,
    mut left: Vec<Left>,
    version: Option<&Difference>,
    asked: &Asked,
) -> Against<'r> {
    let statistics: &[Statistic] =
        if asked.statistics.is_empty() { &[Statistic::MEDIAN] } else { &asked.statistics };
    let all_skipped = pairs.is_empty() && !left.is_empty() && left.iter().all(Left::is_skipped);
    let boots_differ = pairs.iter().any(|pair| {
        pair.a.boot != pair.b.boot && pair.all().iter().all(|side| boots(side).len() == 1)
    });
    // The limits of the machine are measured with every grid: what was asked for comes before them.
    pairs.sort_by_key(|pair| asked.views.of(&pair.a.workload).is_limit);
    let mut differences: Vec<Difference> = Vec::new();
    let (mut cells, mut counted) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    let told = pairs.iter().map(|pair| (pair.a.workload.as_str(), &pair.case));
    let shorts = pairs::short_names(&told.collect::<Vec<_>>(), &asked.views);
    for (pair, short) in pairs.into_iter().zip(shorts) {
        let counting = asked.views.of(&pair.a.workload).counting;
        let has_counts = counting.filter(|counting| (counting.has)(&pair));
        if let Some(Counting { name, lacks: None, .. }) = has_counts {
            counted.entry(*name).or_default().push((pair, short));
            continue;
        }
        let mut mine: Vec<Difference> = version.into_iter().cloned().collect();
        // What differs within a side forbids as much as what differs between the two.
        let others = pair.more.iter().flatten().copied();
        for other in [pair.b].into_iter().chain(others) {
            for class in [Class::Identity, Class::Settings, Class::Volatile] {
                mine.extend(facts::differences(class, pair.a, other));
            }
        }
        if pair.a.nature != pair.b.nature {
            let natures = [pair.a, pair.b].map(|record| record.nature.name().to_owned());
            mine.push(Difference::new(Class::Identity, "nature", natures));
        }
        mine.extend(arms::difference(&pair));
        let planted = [pair.a, pair.b].map(planted);
        if planted[0] != planted[1] {
            mine.push(Difference::new(Class::Settings, PLANTED, planted));
        }
        let is_blocked = mine.iter().any(|difference| !difference.is_allowed(&asked.allow));
        if let Some(counting) = has_counts.filter(|_| !is_blocked) {
            counted.entry(counting.name).or_default().push((pair, short));
        } else {
            let mut made = cells_of(&pair, &short, names, (statistics, asked), is_blocked);
            let lacks = counting.and_then(|counting| counting.lacks);
            made.retain(|cell| lacks.is_none() || cell.place.is_none());
            if made.is_empty() {
                left.push(pairs::alone(&pair, lacks.unwrap_or("no series in common")));
            }
            cells.extend(made);
        }
        for difference in mine {
            // Of what always moves one example says enough.
            let moves = difference.class == Class::Volatile;
            let is_known =
                |known: &Difference| *known == difference || (moves && known.key == difference.key);
            if !differences.iter().any(is_known) {
                differences.push(difference);
            }
        }
    }
    left.sort_by_key(|left| asked.views.of(&left.workload).is_limit);
    differences.sort();
    judge(&mut cells, delta_of(asked));
    withhold(&mut cells, names);
    let name = names[1].to_owned();
    let position = position(&cells);
    let made = |counting: &'static Counting| {
        Some((counting, (counting.of)(counted.remove(counting.name)?)))
    };
    let counts = asked.views.countings().filter_map(made).collect();
    Against { name, cells, counts, left, differences, all_skipped, boots_differ, position }
}

/// What coming second did, over some cells; each case is asked once, however many metrics it has.
fn position(cells: &[Cell<'_>]) -> Option<Position> {
    let mut seen = Vec::new();
    let mut told = Vec::new();
    for cell in cells {
        let (Some(number), Some(turns)) = (cell.pair.cell, &cell.pair.a.ab) else { continue };
        let [Some(a), Some(b)] = &cell.sides else { continue };
        if seen.contains(&number) {
            continue;
        }
        seen.push(number);
        let block = |(number, [a, b]): (u32, [f64; 2])| Block {
            // As times: of a rate, less is slower.
            ratio: if cell.statistic.better() == Better::Less { b / a } else { a / b },
            in_order: turns.first.contains(&number),
        };
        told.push(arms::blocks(a, b).map(block).collect());
    }
    Position::of(&told)
}

/// The cells of a pair, before they are judged.
fn cells_of<'r>(
    pair: &Pair<'r>,
    short: &str,
    names: [&str; 2],
    (statistics, asked): (&[Statistic], &Asked),
    is_blocked: bool,
) -> Vec<Cell<'r>> {
    let by_default = asked.statistics.is_empty();
    let cell = |statistic, place: Option<Place>, verdict, why: String| Cell {
        pair: pair.clone(),
        short: short.to_owned(),
        statistic,
        place,
        sides: [None, None],
        boots: [0, 0],
        ratio: None,
        p: 1.0,
        verdict,
        why,
        needs: None,
    };
    let none = |verdict, why: &str| {
        statistics.iter().map(|s| cell(*s, None, verdict, why.to_owned())).collect()
    };
    let all = pair.all();
    let has = |standing| {
        all.each_ref().map(|side| side.iter().any(|record| Standing::of(record) == standing))
    };
    if has(Standing::Invalid).contains(&true) {
        let invalid = has(Standing::Invalid).into_iter().zip(names).filter(|(is_it, _)| *is_it);
        let which: Vec<&str> = invalid.map(|(_, name)| name).collect();
        return none(Verdict::Invalid, &format!("a claim fails in {}", which.join(" and ")));
    }
    if has(Standing::Emulated).contains(&true) {
        return none(Verdict::NotComparable, "times of an emulated machine mean nothing");
    }
    if is_blocked {
        return none(Verdict::NotComparable, "facts differ");
    }
    let [Some(a), Some(b)] = [pair.a, pair.b].map(Record::measured) else { return Vec::new() };
    // What was published may be any of the times that we take.
    let any =
        [pair.a, pair.b].iter().any(|record| record.nature == pagelab_record::Nature::Published);
    let [here, there] = [(pair.a, a), (pair.b, b)].map(|(record, measured)| {
        metric::places(asked.views.main(&record.workload), &record.case, measured, any)
    });
    let mut cells = Vec::new();
    for place in here {
        let Some(other) = there.iter().find(|other| place.meets(other)) else { continue };
        for statistic in statistics {
            let sides = [(&all[0][..], &place), (&all[1][..], other)];
            let (statistic, found) = like_things(sides, *statistic, by_default);
            let mut made =
                cell(statistic, Some(place.clone()), Verdict::Inconclusive, String::new());
            match found {
                [Ok((a, _)), Ok((b, _))] if a.unit != b.unit => {
                    made.verdict = Verdict::NotComparable;
                    made.why = format!("{} and {}", a.unit.name(), b.unit.name());
                }
                [Ok((a, boots)), Ok((b, other_boots))] => {
                    made.ratio = if pair.cell.is_some() {
                        arms::ratio(&a, &b)
                    } else {
                        Ratio::of(&boots, &other_boots)
                    };
                    made.boots = [boots.len(), other_boots.len()];
                    made.sides = [Some(a), Some(b)];
                }
                [Err(why), _] | [_, Err(why)] => why.clone_into(&mut made.why),
            }
            cells.push(made);
        }
    }
    cells
}

/// The boots that some records are of, in order.
fn boots(records: &[&Record]) -> Vec<String> {
    let mut boots: Vec<String> = records.iter().map(|record| record.boot.clone()).collect();
    boots.sort_unstable();
    boots.dedup();
    boots
}

/// The numbers of a side, of all processes together and boot by boot, or why there are none.
type Sought = Result<(Found, Vec<Vec<f64>>), &'static str>;

/// What is compared of two sides. Times of ranges that are not as long are no like things; unless
/// they were asked for, their bandwidths stand for them.
fn like_things(
    sides: [(&[&Record], &Place); 2],
    statistic: Statistic,
    by_default: bool,
) -> (Statistic, [Sought; 2]) {
    let both = |statistic| sides.map(|(records, place)| found(records, place, statistic));
    match both(statistic) {
        [Ok((a, _)), Ok((b, _))] if by_default && a.range != b.range => {
            (Statistic::BANDWIDTH, both(Statistic::BANDWIDTH))
        }
        found => (statistic, found),
    }
}

/// The numbers of a side: of all processes together, and boot by boot.
fn found(records: &[&Record], place: &Place, statistic: Statistic) -> Sought {
    let boots = boots(records);
    let mut by_boot = vec![Vec::new(); boots.len()];
    let mut whole: Option<Found> = None;
    for record in records {
        let measured = record.measured().ok_or("not measured")?;
        let found = metric::find(measured, place, statistic)?;
        if let Ok(at) = boots.binary_search(&record.boot) {
            by_boot[at].extend(found.processes.clone());
        }
        match &mut whole {
            Some(whole) if whole.unit != found.unit => return Err("its runs differ in unit"),
            Some(whole) => whole.processes.extend(found.processes),
            None => whole = Some(found),
        }
    }
    Ok((whole.ok_or("not measured")?, by_boot))
}

/// Gives every cell its verdict, within its family: the cells of one workload, or all of a run of
/// two arms, which is one question.
fn judge(cells: &mut [Cell<'_>], delta: f64) {
    let mut families: BTreeMap<Option<String>, Vec<&mut Cell<'_>>> = BTreeMap::new();
    for cell in cells.iter_mut().filter(|cell| cell.ratio.is_some()) {
        let family = cell.pair.cell.is_none().then(|| cell.pair.a.workload.clone());
        families.entry(family).or_default().push(cell);
    }
    for mut mine in families.into_values() {
        let asked: Vec<Question> = mine.iter().filter_map(|cell| question(cell)).collect();
        for (cell, judged) in mine.iter_mut().zip(verdict::judge(&asked, delta)) {
            cell.p = judged.p;
            cell.verdict = judged.verdict;
            cell.needs = judged.needs;
        }
    }
}

/// Decides nothing of cells that differ where others used the CPUs of one side. Arms that took
/// turns had the same company.
fn withhold(cells: &mut [Cell<'_>], names: [&str; 2]) {
    for cell in cells.iter_mut().filter(|cell| cell.ratio.is_some() && cell.pair.cell.is_none()) {
        if matches!(cell.verdict, Verdict::Faster | Verdict::Slower | Verdict::Inconclusive)
            && let Some(side) = busy::side(&cell.pair)
        {
            cell.verdict = Verdict::Inconclusive;
            (cell.needs, cell.why) = (None, format!("busy: {}", names[side]));
        }
    }
}

fn question(cell: &Cell<'_>) -> Option<Question> {
    let look = cell.pair.a.ab.as_ref().and_then(|turns| turns.looks);
    Some(Question { ratio: cell.ratio?, better: cell.statistic.better(), look })
}

/// What a self-test planted into the bodies of a record.
fn planted(record: &Record) -> String {
    let turns = record.measured().and_then(|m| m.counter(counter::PLANTED_TURNS));
    turns.map_or_else(|| "nothing".to_owned(), |turns| format!("{turns} turns"))
}
