//! `tier/curve`: what the same accesses take with a share of their pages in slow memory.
//!
//! The one idea: a curve is its bend. Beside each share stands what it takes against everything
//! fast, and against the straight line between both ends: what lies below the line says that a tier
//! is faster for each access when it has less of them.

use pagelab_record::{Case, Measured, Nature};

use pagelab_record::vocabulary::series::SCORE;
use pagelab_report::{
    Cell, Entry, Grid, Headline, Numbers, Quantity, Run, Section, Unit, all_rows, columns, elapsed,
    headline,
};

/// The workload that this view reads.
pub(crate) const WORKLOAD: &str = "tier/curve";

/// The arms, which are shares in percent.
const SHARES: [&str; 11] = ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"];
/// The time over that of everything fast.
const OVER_FAST: &str = "ratio_to_fast";
/// The time over that of the straight line between both ends.
const OVER_LINE: &str = "ratio_to_line";

/// Adds what each share takes against everything fast, and against the line between both ends.
pub(crate) fn derive(_: &Case, _: &Measured, numbers: &mut Numbers) {
    let score = |numbers: &Numbers, share| numbers.get(elapsed(share, SCORE), "p50");
    let Some(fast) = score(numbers, SHARES[0]) else { return };
    let slow = score(numbers, SHARES[SHARES.len() - 1]);
    for (tenth, share) in (0_u32..).zip(SHARES) {
        let Some(time) = score(numbers, share) else { continue };
        let at = elapsed(share, SCORE);
        numbers.add(at, OVER_FAST, time.over(fast, Unit::Ratio));
        let line =
            slow.map(|slow| fast.value + (slow.value - fast.value) * f64::from(tenth) / 10.0);
        let bend = line.filter(|line| *line > 0.0);
        let bend = bend.map(|line| Quantity::exact(time.value / line, Unit::Ratio));
        numbers.add(at, OVER_LINE, bend);
    }
}

/// A share of a case.
struct Row<'e> {
    entry: &'e Entry,
    share: &'static str,
}

impl Row<'_> {
    fn number(&self, statistic: &str) -> Option<Quantity> {
        self.entry.numbers.get(elapsed(self.share, SCORE), statistic)
    }
}

/// The curve of each case, where any was measured.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let shown = columns(&mine, &[]);
    let rows = mine.iter().flat_map(|entry| {
        let is_there = |share: &&str| entry.numbers.get(elapsed(share, SCORE), "p50").is_some();
        let there: Vec<&'static str> = SHARES.into_iter().filter(is_there).collect();
        // A record without numbers has a row all the same: its witness says why.
        let shares = if there.is_empty() { vec![SHARES[0]] } else { there };
        shares.into_iter().map(move |share| Row { entry, share })
    });
    let table = Grid::<Row<'_>>::new()
        .case(&shown, |row| row.entry)
        .number("slow pages", 0, |row| format!("{} %", row.share))
        .number("score", 0, |row| Cell::of(row.number("p50")).strong())
        .number("interval", 2, |row| Cell::spread(row.number("p50")))
        .number("of all fast", 0, |row| row.number(OVER_FAST))
        .number("of a straight line", 1, |row| row.number(OVER_LINE))
        .number("proc×rep", 4, |row| row.entry.counts(elapsed(row.share, SCORE)))
        .words("witness", 0, |row| row.entry.proof())
        .table(rows);
    let mut section = Section::new("curve", "A share of the accesses in slow memory").with(table);
    section.add(format!(
        "{}Score: from the first thread's start to the last one's end. The same accesses over each \
         placement, in which nothing moves. A straight line: between everything fast and \
         everything slow.{}",
        all_rows(&mine, &shown),
        caveat(&mine)
    ));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

/// A curve with two ends was measured on no machine yet.
fn caveat(mine: &[&Entry]) -> &'static str {
    let is_real = |entry: &&&Entry| {
        let end = entry.numbers.get(elapsed(SHARES[SHARES.len() - 1], SCORE), "p50");
        entry.record.nature == Nature::Measured && end.is_some()
    };
    if mine.iter().any(|entry| is_real(&entry)) {
        ""
    } else {
        " Not yet seen on hardware with two tiers."
    }
}

/// What everything slow takes.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let told = |entry: &Entry| {
        let slow = elapsed(SHARES[SHARES.len() - 1], SCORE);
        let ratio = entry.numbers.get(slow, OVER_FAST)?;
        let label = "of the time in fast memory, the same accesses in slow memory".to_owned();
        Some(headline(ratio, label, &[]))
    };
    run.valid(WORKLOAD).into_iter().filter_map(told).take(1).collect()
}
