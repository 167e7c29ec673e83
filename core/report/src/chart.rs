//! What the page draws, as data.
//!
//! The one idea: there are two drawings. A [`Plane`] holds curves between two axes, which the
//! page's script draws; [`Lanes`] hold bars or dots for each of the things that are compared, which
//! need no script. A view says what is drawn; where a number lies and how it looks is decided here
//! and in the page, for all views alike.
//!
//! Every number that is drawn stands in a table as well.

use serde::Serialize;

use crate::{Quantity, Unit};

/// Directions on the circle of colours that are told apart; grey is none.
const HUES: [f64; 8] = [255.0, 40.0, 155.0, 325.0, 95.0, 205.0, 290.0, 15.0];

/// The colour of the nth thing of several.
pub fn hue(nth: usize) -> f64 {
    HUES[nth % HUES.len()]
}

/// How far apart values stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Decades,
    /// By powers of two.
    Doublings,
}

/// What stands along one side of a [`Plane`].
#[derive(Debug, Clone, Serialize)]
pub struct Axis {
    name: String,
    unit: Unit,
    scale: Scale,
    /// Where it begins and ends; as the values do where nothing is said.
    ends: [Option<f64>; 2],
    /// Values that have a name; all others have none then.
    places: Vec<(f64, String)>,
}

impl Axis {
    /// An axis as long as its values need.
    pub fn new(name: &str, unit: Unit, scale: Scale) -> Self {
        Self { name: name.to_owned(), unit, scale, ends: [None; 2], places: Vec::new() }
    }

    /// The axis with ends of its own.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { ends: [Some(low), Some(high)], ..self }
    }

    /// The axis with a name for each of these values.
    #[must_use]
    pub fn at(self, places: Vec<(f64, String)>) -> Self {
        Self { places, ..self }
    }
}

/// How the points of a [`Curve`] are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A line.
    Line,
    /// A line that keeps its value up to the next point.
    Steps,
    /// A line with its points.
    Knots,
    /// Points alone.
    Points,
}

/// Points of one thing. Curves of one label are switched and named together.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    label: String,
    hue: Option<f64>,
    mark: Mark,
    /// How its line is drawn.
    pub dash: Dash,
    points: Vec<(f64, f64)>,
    /// A place, and the ends of the interval there.
    spans: Vec<(f64, f64, f64)>,
}

/// How a line is drawn; a point that is no whole one is hollow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dash {
    /// One line.
    Whole,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
}

impl Curve {
    /// A curve through these points; without a hue it is grey and dashed.
    pub fn new(
        label: impl Into<String>,
        hue: Option<f64>,
        mark: Mark,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| (short(x), short(y))).collect();
        let dash = if hue.is_none() { Dash::Dashed } else { Dash::Whole };
        Self { label: label.into(), hue, mark, dash, points, spans: Vec::new() }
    }

    /// The medians of quantities, with their intervals.
    pub fn of(
        label: impl Into<String>,
        hue: Option<f64>,
        mark: Mark,
        quantities: &[(f64, Quantity)],
    ) -> Self {
        let points = quantities.iter().map(|(x, quantity)| (*x, quantity.value));
        let spans = quantities.iter().map(|(x, q)| (*x, short(q.low), short(q.high))).collect();
        Self { spans, ..Self::new(label, hue, mark, points) }
    }

    /// The curve with another line.
    #[must_use]
    pub fn drawn(self, dash: Dash) -> Self {
        Self { dash, ..self }
    }
}

/// As many digits as can be seen.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Curves between two axes.
#[derive(Debug, Clone, Serialize)]
pub struct Plane {
    /// Its heading.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub curves: Vec<Curve>,
    /// A value that bounds the others, and its name.
    pub bound: Option<(f64, String)>,
}

impl Plane {
    /// A drawing of some curves.
    pub fn new(title: &str, caption: &str, [x, y]: [Axis; 2], curves: Vec<Curve>) -> Self {
        Self { title: title.to_owned(), caption: caption.to_owned(), x, y, curves, bound: None }
    }

    /// None where there is nothing to draw.
    pub fn shown(self) -> Option<Self> {
        self.curves.iter().any(|curve| !curve.points.is_empty()).then_some(self)
    }
}

/// What the bars or dots of a colour are.
#[derive(Debug, Clone, Serialize)]
pub struct Key {
    label: String,
    hue: Option<f64>,
    hollow: bool,
    /// Whether anything has it.
    drawn: bool,
}

impl Key {
    /// A key of that colour; grey where it has no hue.
    pub fn new(label: impl Into<String>, hue: Option<f64>) -> Self {
        Self { label: label.into(), hue, hollow: false, drawn: false }
    }

    /// The key of what is drawn hollow.
    #[must_use]
    pub fn hollow(self, hollow: bool) -> Self {
        Self { hollow, ..self }
    }
}

/// A bar from nothing to a value, or a dot at it.
#[derive(Debug, Clone, Serialize)]
struct Bar {
    key: usize,
    /// In words.
    value: String,
    /// Where it ends, in parts of a hundred; its interval likewise.
    at: f64,
    span: Option<(f64, f64)>,
}

/// The bars of one thing.
#[derive(Debug, Clone, Serialize)]
struct Lane {
    name: String,
    bars: Vec<Bar>,
}

/// A lane for each of several things, along one scale.
#[derive(Debug, Clone, Serialize)]
pub struct Lanes {
    /// Its heading.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// Dots on one line in each lane, on a logarithmic scale; bars under each other otherwise.
    dots: bool,
    keys: Vec<Key>,
    rows: Vec<Lane>,
    /// Places along the scale, in parts of a hundred, and their names.
    ticks: Vec<(f64, String)>,
}

/// A thing to draw in [`Lanes`], and the value of each key that it has.
pub type Row = (String, Vec<(usize, Quantity)>);

impl Lanes {
    /// Bars that begin at nothing. A value that bounds the others is a line through all lanes.
    pub fn bars(
        [title, caption]: [&str; 2],
        keys: Vec<Key>,
        rows: Vec<Row>,
        bound: Option<(Quantity, &str)>,
    ) -> Self {
        let ends = rows.iter().flat_map(|(_, bars)| bars).map(|(_, q)| q.high.max(q.value));
        let most = ends.chain(bound.map(|(q, _)| q.value)).fold(f64::MIN_POSITIVE, f64::max);
        let ticks = bound.map(|(q, name)| (q.value, format!("{name} {}", q.display())));
        let along = move |value: f64| (value / most).clamp(0.0, 1.0);
        Self::along([title, caption], false, keys, rows, ticks.into_iter().collect(), along)
    }

    /// Dots between the powers of ten around all of them.
    pub fn dots([title, caption]: [&str; 2], keys: Vec<Key>, rows: Vec<Row>) -> Self {
        let all = || rows.iter().flat_map(|(_, dots)| dots).map(|(_, q)| *q);
        let ends = all().flat_map(|q| [q.value, q.low, q.high]).filter(|value| *value > 0.0);
        let (low, high) = ends.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        let unit = all().next().map_or(Unit::Count, |q| q.unit);
        let decades = std::iter::successors(Some(low), |power| Some(power + 1.0));
        let tick = |power: f64| {
            let value = 10_f64.powf(power);
            (value, Quantity::exact(value, unit).display().replace(".00 ", " ").replace(".0 ", " "))
        };
        let ticks = decades.take(30).take_while(|power| *power <= high).map(tick).collect();
        let along = move |value: f64| {
            ((value.max(f64::MIN_POSITIVE).log10() - low) / (high - low).max(1.0)).clamp(0.0, 1.0)
        };
        Self::along([title, caption], true, keys, rows, ticks, along)
    }

    /// Ratios with their intervals, as far to either side of 1 as the farthest; lines at 1 and at
    /// the ends of a tie.
    pub fn ratios([title, caption]: [&str; 2], keys: Vec<Key>, rows: Vec<Row>, tie: f64) -> Self {
        let all =
            rows.iter().flat_map(|(_, dots)| dots).flat_map(|(_, q)| [q.value, q.low, q.high]);
        let far = all.map(|value| value.ln().abs()).fold((1.0 + 2.0 * tie).ln(), f64::max);
        let far = far.min(20.0_f64.ln());
        let along = move |value: f64| (value.ln() / far / 2.0 + 0.5).clamp(0.0, 1.0);
        let named = [far.exp().recip(), 1.0 - tie, 1.0, 1.0 / (1.0 - tie).max(0.1), far.exp()];
        // Names that would stand in each other are left out.
        let name = |value: f64| {
            let is_tie = (far / 100.0..far * 0.99).contains(&value.ln().abs());
            let is_apart = (far / 6.0..far * 0.8).contains(&value.ln().abs());
            if is_tie && !is_apart { String::new() } else { format!("{value:.2}") }
        };
        let ticks = named.map(|value| (value, name(value))).to_vec();
        Self::along([title, caption], true, keys, rows, ticks, along)
    }

    fn along(
        [title, caption]: [&str; 2],
        dots: bool,
        mut keys: Vec<Key>,
        rows: Vec<Row>,
        ticks: Vec<(f64, String)>,
        along: impl Fn(f64) -> f64,
    ) -> Self {
        for (key, _) in rows.iter().flat_map(|(_, bars)| bars) {
            keys[*key].drawn = true;
        }
        let percent = |value: f64| (along(value) * 10_000.0).round() / 100.0;
        let bar = |(key, q): (usize, Quantity)| Bar {
            key,
            value: q.display(),
            at: percent(q.value),
            span: (q.low < q.high).then(|| (percent(q.low), percent(q.high))),
        };
        let lane = |(name, bars): Row| Lane { name, bars: bars.into_iter().map(bar).collect() };
        Self {
            title: title.to_owned(),
            caption: caption.to_owned(),
            dots,
            keys,
            rows: rows.into_iter().map(lane).collect(),
            ticks: ticks.into_iter().map(|(value, name)| (percent(value), name)).collect(),
        }
    }

    /// None where there is nothing to compare.
    pub fn shown(mut self) -> Option<Self> {
        self.rows.retain(|lane| !lane.bars.is_empty());
        (!self.rows.is_empty()).then_some(self)
    }
}
