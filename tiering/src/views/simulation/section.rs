//! The tables of `tier/simulation`.
//!
//! The one idea: an arm is a row; what nobody counted is left out as a column. The heat map
//! is a table, so that a terminal shows it; the page shades its cells.

use pagelab_record::units;

use super::{COUNTS, RUN, WORKLOAD, arms, charts, count, policies, title, titles, with_regret};
use pagelab_report::{
    Block, Cell, Entry, Grid, Quantity, Run, Section, Table, Tone, elapsed, group_thousands, tally,
};

/// What every simulation of a run came to.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let mut section = Section::new("tier", "Tiering, simulated").with(
        "Times and counts are a model's. Regret is the time above that of the oracle, which knows \
         the expected accesses, starts from the best placement without a move, and pays for the \
         later ones. A promotion is wasted when its page is not used often enough to pay for the \
         move before it leaves again or the run ends.",
    );
    if let Some(heat) = heat(&mine) {
        section.head("Regret against the oracle".to_owned());
        section.add(heat);
    }
    for entry in mine {
        section.head(title(entry.case()));
        section.add(arms_table(entry));
        section.all(hot(entry));
        if let Some(measured) = entry.measured().filter(|_| entry.is_valid()) {
            section.all(charts::blocks(measured));
        }
        section.all(entry.notes());
    }
    Some(section)
}

/// One row for each arm.
fn arms_table(entry: &Entry) -> Table {
    let names = entry.measured().map(arms).unwrap_or_default();
    let of = |arm: &str, what: &str| entry.numbers.get(tally(arm, what), "count");
    let timed = |arm: &str, statistic| entry.numbers.get(elapsed(arm, RUN), statistic);
    // What no arm did is no column.
    let did =
        |what: &str| names.iter().any(|arm| of(arm, what).is_some_and(|count| count.value > 0.0));
    let grid = Grid::<&str>::new()
        .words("arm", 0, |arm| *arm)
        .number("time", 0, |arm| Cell::of(timed(arm, "p50")).strong())
        .number("× none", 0, |arm| timed(arm, "ratio_to_none"))
        .number("regret", 0, |arm| regret(timed(arm, "regret")))
        .number("fast accesses", 1, |arm| {
            let fast = entry.numbers.get(tally(arm, "fast_accesses"), "share");
            fast.map(|q| format!("{:.1} %", q.value * 100.0))
        });
    let counted = COUNTS.into_iter().filter(|(what, ..)| did(what));
    let grid = counted.fold(grid, |grid, (what, word, rank)| {
        grid.number(word, rank, move |arm| of(arm, what).map(|count| counted_as(what, count)))
    });
    grid.words("witness", 0, |_| entry.proof()).told(names.iter().copied())
}

/// What the map and the daemon of pghot did, where an arm has them.
fn hot(entry: &Entry) -> Option<Block> {
    let measured = entry.measured().filter(|_| entry.is_valid())?;
    let of = |what: &str, arm: &&str| count(measured, what, arm).unwrap_or_default();
    let text = |what: &'static str| move |arm: &&str| group_thousands(of(what, arm) as f64);
    let names = arms(measured);
    let mine = names.iter().copied().filter(|arm| of("pghot_map_bytes_per_tib", arm) > 0);
    let mine: Vec<&str> = mine.collect();
    if mine.is_empty() {
        return None;
    }
    let useful = |arm: &&str| {
        let hints = of("pghot_recorded_hintfaults", arm) + of("pghot_recorded_hwhints", arm);
        let used = of("pghot_recorded_accesses", arm) as f64 / hints as f64;
        (hints > 0).then(|| format!("{:.1} %", used * 100.0))
    };
    let grid = Grid::new()
        .words("pghot's map", 0, |arm: &&str| *arm)
        .number("hints", 2, move |arm| {
            let hints = of("pghot_recorded_hintfaults", arm) + of("pghot_recorded_hwhints", arm);
            group_thousands(hints as f64)
        })
        .number("of use", 0, useful)
        .number("useful samples", 3, text("hwhint_useful_events"))
        .number("candidates", 0, text("pgpromote_candidate"))
        .number("candidates_nrl", 0, text("pgpromote_candidate_nrl"))
        .number("pages a flush", 0, text("kmigrated_flush_pages"))
        .number("map of a TiB", 0, move |arm| {
            units::display_bytes(of("pghot_map_bytes_per_tib", arm) as f64)
        });
    Some(Block::Table(grid.table(mine)))
}

fn counted_as(what: &str, count: Quantity) -> String {
    match what {
        "migrated_bytes" => units::display_bytes(count.value),
        "stall_ns" => units::display_ns(count.value),
        _ => group_thousands(count.value),
    }
}

/// A regret, toned by how much it is.
fn regret(regret: Option<Quantity>) -> Cell {
    let Some(regret) = regret else { return Cell::none() };
    let tone = match regret.value {
        value if value <= 0.05 => Tone::Good,
        value if value <= 0.5 => Tone::Plain,
        _ => Tone::Warn,
    };
    // 1 % is where the shade begins, ten times as long as the oracle where it ends.
    let depth = ((regret.value.max(0.01) / 0.01).log10() / 3.0).min(1.0) * 100.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    let depth = depth as u8;
    Cell { depth, ..Cell::toned(format!("{:+.1} %", regret.value * 100.0), tone) }
}

/// Policies by workloads: how much longer than the oracle, where more than one case has one.
fn heat(mine: &[&Entry]) -> Option<Table> {
    let with: Vec<&Entry> = with_regret(mine);
    if with.len() < 2 {
        return None;
    }
    let grid = Grid::<(&&Entry, String)>::new().words("workload", 0, |(_, label)| label.clone());
    let grid = policies(&with).into_iter().fold(grid, |grid, policy| {
        grid.number(policy, 0, move |(entry, _)| {
            regret(entry.numbers.get(elapsed(policy, RUN), "regret"))
        })
    });
    Some(grid.table(with.iter().zip(titles(&with))))
}
