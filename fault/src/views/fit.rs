//! Fixed cost and cost by size, as a section.

use pagelab_record::{stats::Line, units};

use crate::latency::NAME as LATENCY;
use crate::views::line::{Fit, fits};
use pagelab_report::{
    Axis, Cell, Curve, Grid, Headline, Mark, Note, Plane, Quantity, Run, Scale, Section, Tone,
    Unit, headline, hue,
};

/// Cost by page size, of every group that has two.
fn plane(fits: &[Fit], run: &Run) -> Option<Plane> {
    let fits: Vec<&Fit> = fits.iter().filter(|fit| is_drawn(fit)).collect();
    let both = fits.iter().any(|fit| fit.workload != fits[0].workload);
    let mut sizes: Vec<f64> = fits.iter().flat_map(|fit| &fit.points).map(|(x, _)| *x).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let (low, high) = (sizes.first()? / 1.4, sizes.last()? * 1.4);
    let line = |fixed: f64, slope: f64| {
        let step = move |nth: u32| low * (high / low).powf(f64::from(nth) / 59.0);
        (0..60).map(move |nth| (step(nth), fixed / step(nth) + slope))
    };
    let mut curves = Vec::new();
    for (nth, fit) in fits.iter().enumerate() {
        let label = match (both, fit.workload) {
            (true, LATENCY) => format!("{}, one fault", fit.label),
            (true, _) => format!("{}, in bulk", fit.label),
            (false, _) => fit.label.clone(),
        };
        let each = |(x, cost): &(f64, Quantity)| (*x, cost.times(1.0 / x, Unit::NsPerKib));
        let points: Vec<(f64, Quantity)> = fit.points.iter().map(each).collect();
        curves.push(Curve::of(label.clone(), Some(hue(nth)), Mark::Points, &points));
        if let Some(Line { intercept, slope, .. }) = fit.line {
            curves.push(Curve::new(label, Some(hue(nth)), Mark::Line, line(intercept, slope)));
        }
    }
    if let Some(clear) = run.limits.clear() {
        let each = line(0.0, 1024.0 * 1e9 / clear.value);
        curves.push(Curve::new("clearing alone", None, Mark::Line, each));
    }
    let named = |kib: &f64| match *kib {
        small if small < 1024.0 => (small, format!("{small}k")),
        large => (large, format!("{}m", large / 1024.0)),
    };
    let x = Axis::new("page size", Unit::Count, Scale::Doublings).between(low, high);
    Plane::new(
        "What a fault adds to each KiB, by page size",
        "The cost of a fault divided by the size of its page: points are medians, lines the fixed \
         cost spread over the page plus the cost by size; the dashed line is clearing alone.",
        [
            x.at(sizes.iter().map(named).collect()),
            Axis::new("cost of a fault, ns per KiB", Unit::NsPerKib, Scale::Linear),
        ],
        curves,
    )
    .shown()
}

/// How the faults of a fit were timed.
fn way(fit: &Fit) -> &'static str {
    if fit.workload == LATENCY { "each timed alone" } else { "in bulk" }
}

fn is_drawn(fit: &Fit) -> bool {
    fit.points.len() > 1
}

/// The fixed cost of the case that people ask for, or that its sizes do not lie on a line.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    // What may as well be nothing is no headline.
    let is_known = |line: Line| line.intercept > line.intercept_error;
    let is_told = |fit: &&Fit| fit.line.is_some_and(is_known) || fit.refused.is_some();
    let fits = fits(&run.entries);
    let tried = || fits.iter().filter(is_told);
    let Some(usual) = tried().map(|fit| fit.unusual).min() else { return Vec::new() };
    let mut asked: Vec<&Fit> = tried().filter(|fit| fit.unusual == usual).collect();
    asked.sort_by_key(|fit| fit.line.is_none());
    asked.first().map(|fit| at_size_0(fit)).into_iter().collect()
}

fn at_size_0(fit: &Fit) -> Headline {
    let Some(line) = fit.line else { return refused(fit) };
    let slope = units::display_number(line.slope);
    let detail = format!("{}, + {slope} ns/KiB, R² {:.3}", fit.label, line.r_squared);
    let label = format!("a fault extrapolated to page size 0, {}", way(fit));
    Headline { tone: Tone::Plain, ..headline(fixed(&line), label, &[Some(detail)]) }
}

/// The line's value at size 0, whose interval says how far the sizes lie from the line.
fn fixed(line: &Line) -> Quantity {
    let value = line.intercept;
    let (low, high) = (value - line.intercept_error, value + line.intercept_error);
    Quantity { low, high, coverage: 0.95, ..Quantity::exact(value, Unit::Ns) }
}

/// What stands in place of a fixed cost that no line gives.
fn refused(fit: &Fit) -> Headline {
    let r_squared = fit.refused.map_or_else(String::new, |r| format!(", R² {r:.3}"));
    Headline {
        value: "no line".to_owned(),
        label: format!("through the cost of a fault by page size, {}", way(fit)),
        detail: format!("{}{r_squared}", fit.label),
        tone: Tone::Warn,
    }
}

/// The groups whose sizes do not lie on a line.
fn note(fits: &[Fit]) -> Option<Note> {
    let bent = fits.iter().filter(|fit| fit.refused.is_some());
    let bent: Vec<String> = bent.map(|fit| format!("{} ({})", fit.label, way(fit))).collect();
    let text = format!("the sizes do not lie on a line: {}", bent.join("; "));
    (!bent.is_empty()).then(|| Note::warn("no fit", text, ""))
}

/// The table of lines, where there is at least one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let fits = fits(&run.entries);
    let fitted: Vec<(&Fit, Line)> = fits.iter().filter_map(|fit| Some((fit, fit.line?))).collect();
    let note = note(&fits);
    if fitted.is_empty() && note.is_none() {
        return None;
    }
    let mut section = Section::new("fit", "Fixed cost and cost by size");
    section.all(plane(&fits, run));
    if fitted.is_empty() {
        section.all(note);
        return Some(section);
    }
    let slope = |line: &Line| Quantity::exact(line.slope, Unit::NsPerKib);
    let table = Grid::<(&Fit, Line)>::new()
        .words("cases", 0, |(fit, _)| fit.label.clone())
        .words("faults", 0, |(fit, _)| way(fit))
        .number("at size 0", 0, |(_, line)| {
            Cell::toned(fixed(line).display_with_spread(), Tone::Strong)
        })
        .number("by size", 0, |(_, line)| Cell::toned(slope(line).display(), Tone::Strong))
        .number("which is", 2, |(_, line)| slope(line).under(1024.0 * 1e9, Unit::BytesPerSecond))
        .number("R²", 1, |(_, line)| format!("{:.4}", line.r_squared))
        .number("sizes", 3, |(fit, _)| Cell::toned(fit.points.len().to_string(), Tone::Quiet))
        .table(fitted);
    section.add(table);
    section.all(note);
    Some(section.with(
        "Cost of a fault = at size 0 + by size · KiB: least squares with relative weights over \
         the page sizes of otherwise equal cases; the interval says how far these lie from the \
         line. No fault was measured at size 0. Sizes whose R² \
         is below 0.98, or whose line begins above the smallest fault, have no line. In bulk: per \
         fault of fault/throughput; each timed alone: p50 of fault/latency, which leaves out the \
         tail and the faults that allocate page tables.",
    ))
}
