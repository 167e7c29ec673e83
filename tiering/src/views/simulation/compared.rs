//! What was published of a scenario beside what a model makes of it.
//!
//! The one idea: a row says what it is worth. *Identity*: the model was given this number.
//! *Fitted*: a constant was chosen so that it comes out. *Predicted*: neither, so it is the test.
//!
//! Where the difference is more than chance allows, that is said in standard deviations, also
//! where it is small in percent.
//!
//! It knows no number of any mail: both sides are in the record of the simulation.

use super::{WORKLOAD, title};
use crate::views::published::{self as published, Compared, Kind};
use pagelab_report::{Cell, Entry, Grid, Note, Run, Section, Table, Tone, same_order};

/// Standard deviations up to which a difference may be chance.
const CHANCE: f64 = 3.0;

/// The comparisons of every simulation that has published results beside it.
pub(crate) fn compared_section(run: &Run) -> Option<Section> {
    let mine = run.entries.iter().filter(|e| e.record.workload == WORKLOAD && e.is_valid());
    let with: Vec<(&Entry, Vec<Compared>)> = mine
        .filter_map(|entry| Some((entry, published::compared(entry.measured()?))))
        .filter(|(_, rows)| rows.iter().any(|row| row.published.is_some()))
        .collect();
    with.first()?;
    let mut section = Section::new("compared", "Published beside simulated");
    section.add(
        "Published times are a machine's, ours a model's. identity: the model was given this \
         number; fitted: a constant was chosen so that it comes out; predicted: neither, so it is \
         the test. σ: the difference in standard deviations of the published mean, as far as the \
         model's own chance explains any.",
    );
    for (entry, rows) in &with {
        section.head(title(entry.case()));
        section.add(table(rows));
        section.add(freedom(entry, rows));
        section.all(order(rows));
        section.all(rows.iter().filter_map(remark));
        section.all(constants(entry));
    }
    Some(section)
}

fn table(rows: &[Compared]) -> Table {
    let kind = |row: &Compared| match row.kind {
        _ if row.published.is_none() => Cell::none(),
        Kind::Predicted => Cell::toned("predicted", Tone::Strong),
        kind => Cell::toned(kind.name(), Tone::Quiet),
    };
    // What nobody published and the model does not count says nothing.
    let said = |row: &&Compared| row.published.is_some() || row.simulated > 0.0;
    Grid::<&Compared>::new()
        .words("source", 0, |row| row.source.clone())
        .words("metric", 0, |row| Cell::toned(row.metric.name.as_str(), Tone::Quiet))
        .number("published", 0, |row| row.published.map(|value| row.metric.display(value)))
        .number("simulated", 0, |row| Cell::toned(row.metric.display(row.simulated), Tone::Strong))
        .number("error", 0, |row| row.error().map_or_else(Cell::none, error))
        .number("σ", 1, |row| row.sigmas().map(|sigmas| format!("{sigmas:+.1}")))
        .words("kind", 0, |row| kind(row))
        .table(rows.iter().filter(said))
}

fn error(error: f64) -> Cell {
    let tone = match error.abs() {
        by if by <= 0.02 => Tone::Good,
        by if by <= 0.15 => Tone::Plain,
        _ => Tone::Warn,
    };
    Cell::toned(percent(error), tone)
}

/// A relative difference with as many digits as it needs.
fn percent(error: f64) -> String {
    let digits = if error.abs() < 0.0995 { 2 } else { 1 };
    format!("{:+.digits$} %", error * 100.0)
}

/// How many numbers were put in, and how many came out.
fn freedom(entry: &Entry, rows: &[Compared]) -> String {
    let main = || rows.iter().filter(|row| row.published.is_some() && !row.is_variant());
    let of = |kind: Kind| main().filter(|row| row.kind == kind).count();
    let fitted = published::constants(entry)
        .iter()
        .filter(|constant| constant.is_fitted() && !constant.is_variant())
        .count();
    let (identity, chosen, tested) = (of(Kind::Identity), of(Kind::Fitted), of(Kind::Predicted));
    let left = chosen.saturating_sub(fitted);
    format!(
        "{} published numbers: {identity} put in (identity), {chosen} fitted by {fitted} \
         constant{}, which leaves {left} degree{} of freedom among them, and {tested} predicted.",
        main().count(),
        if fitted == 1 { "" } else { "s" },
        if left == 1 { "" } else { "s" },
    )
}

/// Whether the sources come in the published order of their times.
fn order(rows: &[Compared]) -> Option<String> {
    let times = rows.iter().filter(|row| row.metric.is_time() && !row.is_variant());
    let both = times.filter_map(|row| Some((row.source.as_str(), [row.published?, row.simulated])));
    let (agree, pairs, wrong) = same_order(&both.collect::<Vec<_>>());
    (pairs > 0).then(|| {
        let but = if wrong.is_empty() {
            String::new()
        } else {
            format!("; the other way round: {wrong}")
        };
        format!("Order of the times: {agree} of {pairs} pairs as published{but}.")
    })
}

/// What the model does not explain.
fn remark(row: &Compared) -> Option<Note> {
    let (error, sigmas) = (row.error()?, row.sigmas());
    let text = match sigmas {
        Some(sigmas) if sigmas.abs() > CHANCE => format!(
            "{}, {}: {} is {:.0} standard deviations of the published mean ({:.0} of one run), so \
             chance does not explain it.",
            row.source,
            row.metric.name,
            percent(error),
            sigmas.abs(),
            (sigmas / f64::from(row.runs).sqrt()).abs(),
        ),
        None if row.kind == Kind::Predicted && error.abs() > 0.02 => {
            format!("{}, {}: off by {}.", row.source, row.metric.name, percent(error))
        }
        _ => return None,
    };
    let tag = if row.is_variant() { "left out" } else { "not explained" };
    Some(Note::warn(tag, text, ""))
}

/// Every constant of the model with what it was chosen by.
fn constants(entry: &Entry) -> Option<Table> {
    let all = published::constants(entry);
    all.first()?;
    let tone = |one: &published::Constant| if one.is_fitted() { Tone::Strong } else { Tone::Plain };
    let table = Grid::<&published::Constant>::new()
        .words("constant", 0, |constant| constant.name.clone())
        .number("value", 0, |constant| constant.display())
        .words("from", 0, |constant| Cell::toned(constant.word.as_str(), tone(constant)))
        .words("that is", 1, |constant| Cell::toned(constant.text.as_str(), Tone::Quiet))
        .table(&all);
    Some(table)
}

#[cfg(test)]
mod tests {
    use pagelab_record::{Column as Of, Measured, Outcome, Table as Rows};

    use pagelab_record::vocabulary::Check;

    use super::*;
    use crate::views::simulation::tests::{record, with_time};

    fn compared(source: &str, columns: &[(&str, &str)], rows: [&[i64]; 5]) -> Rows {
        let column =
            |(name, unit): &(&str, &str)| Of { name: (*name).to_owned(), unit: (*unit).to_owned() };
        Rows {
            name: format!("compared/{source}"),
            columns: columns.iter().map(column).collect(),
            rows: rows.iter().map(|row| row.to_vec()).collect(),
        }
    }

    fn entry() -> Entry {
        let time = &[("time_s", "s")];
        let both = &[("time_s", "s"), ("pgpromote_success", "pages")];
        let constant = |name: &str, unit: &str| Of { name: name.to_owned(), unit: unit.to_owned() };
        let constants = Rows {
            name: "constants".to_owned(),
            columns: vec![
                constant("curve.fast", "fitted: B/time_s"),
                constant("B (g = 1).curve.fast", "fitted: A/time_s"),
            ],
            rows: vec![vec![26_600_000_000, 17], vec![-9, 0]],
        };
        let tables = vec![
            compared("A", time, [&[90_000], &[90_000], &[0], &[-1], &[3]]),
            compared(
                "B",
                both,
                [
                    &[50_000, 2_000_000_000],
                    &[50_500, 1_990_000_000],
                    &[1, 2],
                    &[-1, 500_000],
                    &[3, 4],
                ],
            ),
            compared("B (g = 1)", time, [&[50_000], &[75_000], &[2], &[-1], &[3]]),
            constants,
        ];
        let series = ["A", "B", "B (g = 1)"].map(|arm| with_time(arm, 1)).to_vec();
        Entry::of(&record(Measured { series, tables, ..Measured::default() }))
    }

    fn of(entries: Vec<Entry>) -> Option<Section> {
        let mut run = Run::default();
        run.entries = entries;
        compared_section(&run)
    }

    fn words(section: &Section) -> String {
        serde_json::to_string(&section.blocks).unwrap()
    }

    #[test]
    fn a_row_says_what_it_is_worth() {
        let text = words(&of(vec![entry()]).unwrap());
        for said in [
            "3 published numbers: 1 put in (identity), 1 fitted by 1 constant, which leaves 0 \
             degrees of freedom among them, and 1 predicted.",
            "Order of the times: 1 of 1 pairs as published.",
            // 10 000 pages are 20 deviations of one run, 40 of a mean of four.
            "B, pgpromote_success: -0.50 % is 40 standard deviations of the published mean (20 of \
             one run), so chance does not explain it.",
            "B (g = 1), time_s: off by +50.0 %.",
            "26.6",
        ] {
            assert!(text.contains(said), "no `{said}` in {text}");
        }
    }

    #[test]
    fn what_is_not_valid_is_not_compared() {
        let mut entry = entry();
        let Outcome::Measured(measured) = &mut entry.record.outcome else { panic!() };
        measured.witness.push(pagelab_record::Claim::check(Check::Present, "A", 1, 2, 0));
        assert!(of(vec![Entry::of(&entry.record)]).is_none());
        assert!(of(Vec::new()).is_none());
    }
}
