//! Tables of a record: columns that say their unit, and rows of whole numbers.

use serde::{Deserialize, Serialize};

/// Rows of numbers that are neither durations nor counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Table {
    /// What it shows.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<i64>>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Unit, in words where `Unit` has none.
    pub unit: String,
}

impl Table {
    /// Of named columns, each with its unit.
    pub fn new<R: IntoIterator<Item: Signed>>(
        name: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<Column>>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let row = |row: R| row.into_iter().map(Signed::signed).collect();
        Self {
            name: name.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: rows.into_iter().map(row).collect(),
        }
    }

    /// Where a column stands; records of earlier versions lack some.
    pub fn index(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known.name == column)
    }

    /// A cell of the first row.
    pub fn cell(&self, column: &str) -> Option<i64> {
        self.rows.first()?.get(self.index(column)?).copied()
    }

    /// A cell of the row that begins with a key.
    pub fn cell_of(&self, key: i64, column: &str) -> Option<i64> {
        let row = self.rows.iter().find(|row| row.first() == Some(&key))?;
        row.get(self.index(column)?).copied()
    }
}

impl<N: Into<String>, U: Into<String>> From<(N, U)> for Column {
    fn from((name, unit): (N, U)) -> Self {
        Self { name: name.into(), unit: unit.into() }
    }
}

/// A number as cells and claims hold it; what is too large for one is the largest there is.
pub trait Signed {
    /// The number.
    fn signed(self) -> i64;
}

impl Signed for i64 {
    fn signed(self) -> i64 {
        self
    }
}

impl Signed for u64 {
    fn signed(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}
