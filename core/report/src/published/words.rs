//! Numbers, and the lack of them, in words.

use pagelab_record::units;

use super::claims::Asked;
use crate::{Quantity, Standing, Unit, distinct, group_thousands, grouped, quantity::span};

/// Why there is no number, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    /// Workload and parameters.
    pub(super) what: String,
    pub(super) arm: String,
    pub(super) why: String,
    /// What the case is worth, where it ran.
    pub(super) standing: Option<Standing>,
    /// A command or the need's own cure; arms that lack are added behind the last flag.
    pub(super) cure: String,
    /// Whether what asked for it says nothing without it.
    pub(super) drops: bool,
}

impl Lack {
    /// A lack that drops the sentence, of which nothing else is known.
    pub(super) fn of(what: impl Into<String>, why: &str) -> Self {
        let (what, why, arm, cure) = (what.into(), why.to_owned(), String::new(), String::new());
        Self { what, arm, why, standing: None, cure, drops: true }
    }
}

/// Whether any of it drops what asked for it.
pub(super) fn drops(lacks: &[Lack]) -> bool {
    lacks.iter().any(|lack| lack.drops)
}

/// A quantity in words, with its interval where that is asked for and there is one.
pub(super) fn words(quantity: Quantity, signed: bool, form: &str, interval: bool) -> String {
    const MIB: f64 = 1_048_576.0;
    let each = |value: f64| -> String {
        match form {
            "MiB/s" => format!("{:.2}", value / MIB),
            "GB/s" => format!("{:.3}", value / 1e9),
            _ if signed => {
                let us = value / 1e3;
                if us.abs() < 9.95 { format!("{us:+.2}") } else { format!("{us:+.0}") }
            }
            _ => match quantity.unit {
                Unit::Ratio => format!("{value:.2}"),
                Unit::Share if value.abs() < 0.01 => format!("{:.2}", value * 100.0),
                Unit::Share => format!("{:.1}", value * 100.0),
                Unit::Count if (value - value.round()).abs() > 1e-6 => units::display_number(value),
                Unit::Count => group_thousands(value),
                _ => Quantity::exact(value, quantity.unit).display(),
            },
        }
    };
    let unit = match form {
        "MiB/s" | "GB/s" => format!(" {form}"),
        _ if signed => " µs".to_owned(),
        _ if quantity.unit == Unit::Share => " %".to_owned(),
        _ => String::new(),
    };
    let value = format!("{}{unit}", each(quantity.value));
    let is_point = (quantity.high - quantity.low).abs() <= quantity.value.abs() * 1e-9;
    if is_point || !interval {
        return value;
    }
    if signed {
        return format!("{value} ({} to {})", each(quantity.low), each(quantity.high));
    }
    format!("{value} ({})", span([quantity.low, quantity.high].map(each)))
}

/// What is missing, in words, and the first cure that there is.
pub(super) fn lacking(lacks: &[Lack]) -> (String, String) {
    // By reason, then by case: a module that is missing takes a dozen cases.
    let told = grouped(lacks.iter().map(|lack| (lack.why.as_str(), (lack.what.as_str(), lack))));
    let told: Vec<_> = told.into_iter().map(|(why, cases)| (why, grouped(cases))).collect();
    let text = told.iter().map(|(why, cases)| {
        let mut workload = "";
        let cases = cases.iter().map(|(what, lacks)| {
            let (of, rest) = what.split_once(' ').unwrap_or(("", what));
            let case = if of == workload { rest } else { what };
            workload = of;
            let mut arms = arms(lacks);
            arms.retain(|arm| !arm.is_empty());
            let with = if arms.is_empty() { "" } else { " with " };
            format!("{case}{with}{}", arms.join(" and "))
        });
        format!("{} ({why})", cases.collect::<Vec<_>>().join(", "))
    });
    let text = text.collect::<Vec<_>>().join("; ");
    let mut cases = told.iter().flat_map(|(_, cases)| cases);
    let cure = cases.find(|(_, lacks)| !lacks[0].cure.is_empty()).map(|(_, lacks)| {
        let more = arms(lacks).into_iter().filter(|arm| *arm != lacks[0].arm);
        [lacks[0].cure.as_str()].into_iter().chain(more).collect::<Vec<_>>().join(",")
    });
    (text, cure.unwrap_or_default())
}

fn arms<'a>(lacks: &[&'a Lack]) -> Vec<&'a str> {
    distinct(lacks.iter().map(|lack| lack.arm.as_str()))
}

/// A case that was asked for.
pub(super) fn display(workload: &str, asked: &Asked) -> String {
    let said = asked.iter().filter_map(|(name, values)| {
        // What may be absent says what a case is not.
        let says = !values.all().iter().any(String::is_empty);
        says.then(|| format!(" {name}={}", values.all().join("|")))
    });
    format!("{workload}{}", said.collect::<String>())
}
