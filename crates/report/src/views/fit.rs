//! Fixed cost and cost by size, as a section.

use pagelab_record::{stats::Line, units, vocabulary::workload::LATENCY};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    document::{Block, Cell, ChartPlace, Column, Headline, Section, Table, Tone},
    fit::Fit,
    quantity::{Quantity, Unit},
    run::Run,
};

/// Cost by page size, and the line through it.
#[derive(Debug, Clone, Serialize)]
struct Cost {
    label: String,
    /// KiB of the page; value and ends of its interval, nanoseconds.
    points: Vec<(f64, f64, f64, f64)>,
    /// Nanoseconds at no size, and for each KiB.
    line: Option<(f64, f64)>,
}

/// Cost by page size, of every group that has two.
pub(crate) fn charts(run: &Run) -> Vec<(&'static str, Value)> {
    let fits = &run.fits;
    let both = fits.iter().any(|fit| fit.workload != fits[0].workload);
    let cost = |fit: &Fit| Cost {
        label: match (both, fit.workload) {
            (true, LATENCY) => format!("{}, one fault", fit.label),
            (true, _) => format!("{}, in bulk", fit.label),
            (false, _) => fit.label.clone(),
        },
        points: fit
            .points
            .iter()
            .map(|(x, Quantity { value, low, high, .. })| (*x, *value, *low, *high))
            .collect(),
        line: fit.line.map(|line| (line.intercept, line.slope)),
    };
    let drawn: Vec<Cost> = fits.iter().filter(|fit| is_drawn(fit)).map(cost).collect();
    vec![("cost", json!(drawn))]
}

fn is_drawn(fit: &Fit) -> bool {
    fit.points.len() > 1
}

/// The fixed cost of the case that people ask for.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let fitted = run.fits.iter().filter_map(|fit| Some((fit, fit.line?)));
    let headline = |(fit, line): (&Fit, Line)| Headline {
        value: units::display_ns(line.intercept),
        label: format!("fixed cost of a fault ({})", fit.label),
        detail: format!("+ {} ns/KiB, R² {:.3}", units::display_number(line.slope), line.r_squared),
        tone: Tone::Plain,
    };
    fitted.min_by_key(|(fit, _)| fit.unusual).map(headline).into_iter().collect()
}

/// The table of lines, where there is at least one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let fits = &run.fits;
    let fitted: Vec<(&Fit, Line)> = fits.iter().filter_map(|fit| Some((fit, fit.line?))).collect();
    if fitted.is_empty() {
        return None;
    }
    let mut section = Section::new("fit", "Fixed cost and cost by size");
    if fitted.iter().any(|(fit, _)| is_drawn(fit)) {
        section.blocks.push(Block::Chart(ChartPlace {
            id: "cost",
            nth: 0,
            title: "What a fault adds to each KiB, by page size".to_owned(),
            caption: "The cost of a fault divided by the size of its page: points are medians, \
                      lines the fixed cost spread over the page plus the cost by size; the \
                      dashed line is clearing alone."
                .to_owned(),
        }));
    }
    let columns = vec![
        Column::words("workload"),
        Column::words("cases"),
        Column::number("fixed"),
        Column::number("by size"),
        Column::number("which is").rank(2),
        Column::number("R²").rank(1),
        Column::number("sizes").rank(3),
    ];
    let rows = fitted.iter().map(|(fit, line)| row(fit, *line)).collect();
    Some(section.with(Block::Table(Table { columns, rows })).with(Block::Text(
        "cost = fixed + by size · KiB, least squares with relative weights over the page sizes \
         of otherwise equal cases."
            .to_owned(),
    )))
}

fn row(fit: &Fit, line: Line) -> Vec<Cell> {
    let slope = Quantity::exact(line.slope, Unit::NsPerKib);
    let rate = slope.under(1024.0 * 1e9, Unit::BytesPerSecond).map(Quantity::display);
    vec![
        fit.workload.into(),
        fit.label.clone().into(),
        Cell::toned(Quantity::exact(line.intercept, Unit::Ns).display(), Tone::Strong),
        Cell::toned(slope.display(), Tone::Strong),
        Cell::maybe(rate),
        format!("{:.4}", line.r_squared).into(),
        Cell::toned(fit.points.len().to_string(), Tone::Quiet),
    ]
}
