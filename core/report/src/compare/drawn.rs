//! What the page of a comparison draws: ratios in order, and distributions over each other.
//!
//! The one idea: everything at a glance, then the cells that changed most in full. What is drawn is
//! bounded, so that the page of a thousand cells still opens.

use pagelab_record::{Data, Record, verdict::Verdict, vocabulary::arm::OURS};

use super::{
    Comparison,
    judged::{Against, Cell},
    sections,
};
use crate::{
    chart::{Axis, Curve, Key, Lanes, Mark, Plane, Row, Scale, hue},
    document::{Block, Document, Section},
    metric::{self, steps_of},
    quantity::{Quantity, Unit},
};

/// Ratios that are drawn, those that are farthest from 1.
const RATIOS_MAX: usize = 60;
/// Cells whose distributions are drawn.
const DISTRIBUTIONS_MAX: usize = 12;

/// Adds the drawings of every side in front of its cells.
pub(super) fn add(comparison: &Comparison<'_>, document: &mut Document) {
    for (nth, against) in comparison.against.iter().enumerate() {
        let mut blocks: Vec<Block> =
            forest(comparison, against).map(Block::Lanes).into_iter().collect();
        blocks.extend(distributions(comparison, against).into_iter().map(Block::Plane));
        if blocks.is_empty() {
            continue;
        }
        let several = comparison.against.len() > 1;
        let id = if several { format!("drawn-{}", nth + 1) } else { "drawn".to_owned() };
        let title = if several {
            format!("{}: at a glance", against.name)
        } else {
            "At a glance".to_owned()
        };
        let mut section = Section::new(id, &title);
        section.page_only = true;
        section.blocks = blocks;
        let cells = if several { format!("cells-{}", nth + 1) } else { "cells".to_owned() };
        let at = document.sections.iter().position(|section| section.id == cells).unwrap_or(0);
        document.sections.insert(at, section);
    }
}

/// The cells that are drawn, the farthest from 1 first.
fn farthest<'c, 'r>(against: &'c Against<'r>) -> Vec<&'c Cell<'r>> {
    let mut cells: Vec<&Cell<'r>> =
        against.cells.iter().filter(|cell| cell.ratio.is_some()).collect();
    let far = |cell: &Cell<'_>| cell.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    cells.sort_by(|one, other| far(other).total_cmp(&far(one)));
    cells
}

/// The ratio of each cell with its interval, from the least to the greatest.
fn forest(comparison: &Comparison<'_>, against: &Against<'_>) -> Option<Lanes> {
    let mut cells = farthest(against);
    let all = cells.len();
    cells.truncate(RATIOS_MAX);
    let value = |cell: &Cell<'_>| cell.ratio.map_or(1.0, |ratio| ratio.value);
    cells.sort_by(|one, other| value(one).total_cmp(&value(other)));
    let order = [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Inconclusive];
    let keys = [Some(hue(2)), Some(hue(1)), Some(hue(0)), None];
    let keys = order.iter().zip(keys).map(|(verdict, hue)| {
        Key::new(verdict.name(), hue).hollow(*verdict == Verdict::Inconclusive)
    });
    let row = |cell: &&Cell<'_>| -> Option<Row> {
        let ratio = cell.ratio?;
        let key = order.iter().position(|verdict| *verdict == cell.verdict)?;
        let [low, high] = ratio.interval().unwrap_or([ratio.value; 2]);
        let quantity = Quantity { low, high, ..Quantity::exact(ratio.value, Unit::Ratio) };
        Some((format!("{} {}", cell.short, cell.metric()), vec![(key, quantity)]))
    };
    let rows: Vec<Row> = cells.iter().filter_map(row).collect();
    let mut caption = format!(
        "The ratio of each cell and its 95 % interval, in order; the lines are at 1 and at the \
         ends of a tie, {}.",
        sections::share(comparison.delta)
    );
    if all > RATIOS_MAX {
        caption.push_str(&format!(" Of {all} the {RATIOS_MAX} that are farthest from 1."));
    }
    let title = format!("{} over {}", against.name, comparison.base_name);
    Lanes::ratios([&title, &caption], keys.collect(), rows, comparison.delta).shown()
}

/// Both sides of a cell over each other, for those that changed most.
fn distributions(comparison: &Comparison<'_>, against: &Against<'_>) -> Vec<Plane> {
    let cells = farthest(against);
    let mut drawn: Vec<Plane> = Vec::new();
    let mut seen = Vec::new();
    for cell in cells {
        let Some(place) = &cell.place else { continue };
        // One case may have several metrics of one distribution.
        let is_known = seen.contains(&(&cell.short, place));
        if drawn.len() == DISTRIBUTIONS_MAX || is_known {
            continue;
        }
        seen.push((&cell.short, place));
        let curve = |record: &Record, name: &str, hue| {
            let (samples, first) = metric::samples(record.measured()?, place)?;
            let each = matches!(first.data, Data::Histogram(_)) || first.ops == 1;
            // Of whole repetitions a few are no curve.
            if !each && samples.len() < 10 {
                return None;
            }
            let mut kept: Vec<(f64, f64)> = Vec::new();
            for point in steps_of(&samples) {
                if kept.last().is_none_or(|last| point.1 - last.1 >= 1.0 / 200.0) {
                    kept.push(point);
                }
            }
            (kept.len() > 1).then(|| Curve::new(name, hue, Mark::Steps, kept))
        };
        let a = curve(cell.pair.a, &comparison.base_name, None);
        let b = curve(cell.pair.b, &against.name, Some(hue(0)));
        let (Some(a), Some(b)) = (a, b) else { continue };
        let x = Axis::new(&place.series, Unit::Ns, Scale::Decades);
        let y = Axis::new("share done by then", Unit::Share, Scale::Linear).between(0.0, 1.0);
        // Arms of one case are drawn each by itself.
        let arm = if place.arm == OURS { "" } else { &place.arm };
        let title = format!("{} {arm}", cell.short);
        let title = format!("{}: {}", title.trim_end(), cell.verdict.name());
        let caption = "All observations of both sides; the dashed one is the base.";
        drawn.extend(Plane::new(&title, caption, [x, y], vec![a, b]).shown());
    }
    drawn
}
