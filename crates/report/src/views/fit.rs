//! Fixed cost and cost by size, as a section.

use pagelab_record::{stats::Line, units, vocabulary::workload::LATENCY};

use crate::{
    Axis, Block, Cell, Curve, Grid, Headline, Mark, Plane, Quantity, Run, Scale, Section, Tone,
    Unit, fit::Fit, hue,
};

/// Cost by page size, of every group that has two.
fn plane(run: &Run) -> Option<Block> {
    let fits: Vec<&Fit> = run.fits.iter().filter(|fit| is_drawn(fit)).collect();
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
    .map(Block::Plane)
}

/// How the faults of a fit were timed.
fn way(fit: &Fit) -> &'static str {
    if fit.workload == LATENCY { "each timed alone" } else { "in bulk" }
}

fn is_drawn(fit: &Fit) -> bool {
    fit.points.len() > 1
}

/// The fixed cost of the case that people ask for.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let fitted = run.fits.iter().filter_map(|fit| Some((fit, fit.line?)));
    let headline = |(fit, line): (&Fit, Line)| Headline {
        value: units::display_ns(line.intercept),
        label: format!("a fault extrapolated to page size 0, {}", way(fit)),
        detail: format!(
            "{}, + {} ns/KiB, R² {:.3}",
            fit.label,
            units::display_number(line.slope),
            line.r_squared
        ),
        tone: Tone::Plain,
    };
    fitted.min_by_key(|(fit, _)| fit.unusual).map(headline).into_iter().collect()
}

/// The table of lines, where there is at least one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let fits = &run.fits;
    let fitted: Vec<(&Fit, Line)> = fits.iter().filter_map(|fit| Some((fit, fit.line?))).collect();
    fitted.first()?;
    let mut section = Section::new("fit", "Fixed cost and cost by size");
    section.blocks.extend(plane(run));
    let slope = |line: &Line| Quantity::exact(line.slope, Unit::NsPerKib);
    let fixed = |line: &Line| Quantity::exact(line.intercept, Unit::Ns);
    let table = Grid::<(&Fit, Line)>::new()
        .words("cases", 0, |(fit, _)| fit.label.clone())
        .words("faults", 0, |(fit, _)| way(fit))
        .number("at size 0", 0, |(_, line)| Cell::toned(fixed(line).display(), Tone::Strong))
        .number("by size", 0, |(_, line)| Cell::toned(slope(line).display(), Tone::Strong))
        .number("which is", 2, |(_, line)| slope(line).under(1024.0 * 1e9, Unit::BytesPerSecond))
        .number("R²", 1, |(_, line)| format!("{:.4}", line.r_squared))
        .number("sizes", 3, |(fit, _)| Cell::toned(fit.points.len().to_string(), Tone::Quiet))
        .table(fitted);
    Some(section.with(Block::Table(table)).with(Block::Text(
        "Cost of a fault = at size 0 + by size · KiB: least squares with relative weights over \
         the page sizes of otherwise equal cases. No fault was measured at size 0. In bulk: per \
         fault of fault/throughput; each timed alone: p50 of fault/latency, which leaves out the \
         tail and the faults that allocate page tables."
            .to_owned(),
    )))
}
