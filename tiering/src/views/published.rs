//! What a record of `tier/simulation` says about published results, read back.
//!
//! A table `compared/SOURCE` has a column for each metric. Its rows are the published number, the
//! simulated one, the kind of the row, the standard deviation of one run and how many runs were
//! averaged; numbers are in millionths, and −1 is unknown.
//! `constants` has a column for each number of the model, whose unit says where it comes from; its
//! rows are digits and the power of ten that they are times of.

use pagelab_record::{Column, Measured, Table, units};

use pagelab_report::{Entry, group_thousands};

pagelab_record::named! {
    /// What a row is worth.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind {
        /// The model was given this number, or has no choice.
        Identity = "identity",
        /// A constant was chosen so that it comes out.
        Fitted = "fitted",
        /// Neither: the test of the model.
        Predicted = "predicted",
    }
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metric {
    /// The kernel's name, where there is one.
    pub name: String,
    unit: String,
}

impl Metric {
    pub(crate) fn of(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned() }
    }

    pub(crate) fn is_time(&self) -> bool {
        self.name == "time_s"
    }

    pub(crate) fn display(&self, value: f64) -> String {
        match self.unit.as_str() {
            "s" => format!("{value:.2} s"),
            "TEPS" => format!("{:.3}e8", value / 1e8),
            _ => group_thousands(value),
        }
    }
}

/// One published number and what the model makes of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compared {
    /// The source of the run.
    pub source: String,
    /// What is compared.
    pub metric: Metric,
    /// What was published.
    pub published: Option<f64>,
    /// What the model says.
    pub simulated: f64,
    /// What the row is worth.
    pub kind: Kind,
    /// Standard deviation of one run by the model's own chance.
    deviation: Option<f64>,
    /// Runs that the published number is the mean of.
    pub(crate) runs: u32,
}

impl Compared {
    /// How far the model is off, as a share of the published number.
    pub(crate) fn error(&self) -> Option<f64> {
        let published = self.published?;
        let off = self.simulated - published;
        if off == 0.0 {
            return Some(0.0);
        }
        (published != 0.0).then(|| off / published)
    }

    /// The same in standard deviations of the published mean.
    pub(crate) fn sigmas(&self) -> Option<f64> {
        let of_mean = self.deviation.filter(|one| *one > 0.0)? / f64::from(self.runs.max(1)).sqrt();
        Some((self.simulated - self.published?) / of_mean)
    }

    /// Whether its source is another model of what a source before it stands for.
    pub(crate) fn is_variant(&self) -> bool {
        self.source.contains('(')
    }
}

/// A number of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constant {
    pub(crate) name: String,
    value: f64,
    pub(crate) word: String,
    pub(crate) text: String,
}

impl Constant {
    pub(crate) fn is_fitted(&self) -> bool {
        self.word == "fitted"
    }

    /// Whether it belongs to a source that is another model of one before it.
    pub(crate) fn is_variant(&self) -> bool {
        self.name.contains('(')
    }

    pub(crate) fn display(&self) -> String {
        let name = self.name.rsplit('.').next().unwrap_or(&self.name);
        match name {
            "size" | "fast" if self.value >= 1e6 => units::display_bytes(self.value),
            _ if self.value >= 1e4 && self.value.fract() == 0.0 => group_thousands(self.value),
            _ => format!("{}", self.value),
        }
    }
}

/// Millionths, the unit of the cells of `compared`.
const MICRO: f64 = 1e6;

/// The comparison in a record, where it has one.
pub(crate) fn compared(measured: &Measured) -> Vec<Compared> {
    let tables = measured.tables.iter();
    let named = tables.filter_map(|table| Some((table.name.strip_prefix("compared/")?, table)));
    named.flat_map(|(source, table)| of_source(source, table)).collect()
}

fn of_source(source: &str, table: &Table) -> Vec<Compared> {
    let [published, simulated, kinds, deviations, runs] = &table.rows[..] else {
        return Vec::new();
    };
    let known = |cell: Option<&i64>| cell.filter(|cell| **cell >= 0).map(|cell| *cell as f64);
    let read = |(at, column): (usize, &Column)| {
        Some(Compared {
            source: source.to_owned(),
            metric: Metric::of(&column.name, &column.unit),
            published: known(published.get(at)).map(|cell| cell / MICRO),
            simulated: known(simulated.get(at))? / MICRO,
            kind: match kinds.get(at)? {
                0 => Kind::Identity,
                1 => Kind::Fitted,
                _ => Kind::Predicted,
            },
            deviation: known(deviations.get(at)).map(|cell| cell / MICRO),
            runs: runs.get(at).and_then(|runs| u32::try_from(*runs).ok()).unwrap_or(1),
        })
    };
    table.columns.iter().enumerate().filter_map(read).collect()
}

/// The constants in a record.
pub(crate) fn constants(entry: &Entry) -> Vec<Constant> {
    let tables = entry.measured().map_or(&[][..], |measured| &measured.tables);
    let Some(table) = tables.iter().find(|table| table.name == "constants") else {
        return Vec::new();
    };
    let [digits, powers] = &table.rows[..] else { return Vec::new() };
    let values = digits.iter().zip(powers);
    let read = |(column, (digits, power)): (&Column, (&i64, &i64))| {
        let power = i32::try_from(*power).unwrap_or(0);
        let (word, text) = column.unit.split_once(": ").unwrap_or((&column.unit, ""));
        Constant {
            name: column.name.clone(),
            // Dividing rounds once, where a negative power would be rounded before.
            value: match power {
                power if power < 0 => *digits as f64 / 10_f64.powi(-power),
                power => *digits as f64 * 10_f64.powi(power),
            },
            word: word.to_owned(),
            text: text.to_owned(),
        }
    };
    table.columns.iter().zip(values).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_that_of_the_published_mean() {
        let column = Column { name: "time_s".to_owned(), unit: "s".to_owned() };
        let rows = [4_000_000, 5_000_000, 1, 2_000_000, 4].map(|cell| vec![cell]).to_vec();
        let table = Table { name: "compared/X (g = 1)".to_owned(), columns: vec![column], rows };
        let row = &compared(&Measured { tables: vec![table], ..Measured::default() })[0];
        assert_eq!((row.kind, row.error(), row.sigmas()), (Kind::Fitted, Some(0.25), Some(1.0)));
        assert!(row.is_variant());
    }
}
