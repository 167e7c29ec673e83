//! Tables whose columns say for themselves what they show.
//!
//! The one idea: a column is its heading, how dispensable it is, and what it says of a row, in one
//! place; header and rows follow, and cannot come apart. What is shown is whatever is
//! [`Shown`]: words, a number that may be missing, or a cell with a tone of its own.

use crate::{Cell, Column, Entry, Quantity, Table};

/// What can stand in a cell.
pub trait Shown {
    /// As a cell.
    fn cell(self) -> Cell;
}

impl Shown for Cell {
    fn cell(self) -> Cell {
        self
    }
}

impl Shown for &str {
    fn cell(self) -> Cell {
        self.into()
    }
}

impl Shown for String {
    fn cell(self) -> Cell {
        self.into()
    }
}

impl Shown for Option<String> {
    fn cell(self) -> Cell {
        Cell::maybe(self)
    }
}

impl Shown for Option<Quantity> {
    fn cell(self) -> Cell {
        Cell::of(self)
    }
}

/// The columns of a table whose rows are made of `R`.
#[expect(missing_debug_implementations, reason = "its columns are functions")]
pub struct Grid<'a, R>(Vec<(Column, Says<'a, R>)>);

/// What a column says of a row.
type Says<'a, R> = Box<dyn Fn(&R) -> Cell + 'a>;

impl<R> Default for Grid<'_, R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, R: 'a> Grid<'a, R> {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more column, whatever it is.
    #[must_use]
    pub fn with<S: Shown>(mut self, column: Column, of: impl Fn(&R) -> S + 'a) -> Self {
        self.0.push((column, Box::new(move |row| of(row).cell())));
        self
    }

    /// A column of words, with the rank of [`Column`].
    #[must_use]
    pub fn words<S: Shown>(self, name: &str, rank: u8, of: impl Fn(&R) -> S + 'a) -> Self {
        self.with(Column::words(name).rank(rank), of)
    }

    /// A column of numbers, with the rank of [`Column`].
    #[must_use]
    pub fn number<S: Shown>(self, name: &str, rank: u8, of: impl Fn(&R) -> S + 'a) -> Self {
        self.with(Column::number(name).rank(rank), of)
    }

    /// A column for each parameter in `shown`, of the case that a row is about.
    #[must_use]
    pub fn case(self, shown: &'a [String], of: fn(&R) -> &Entry) -> Self {
        shown
            .iter()
            .fold(self, |grid, name| grid.words(name, 0, move |row| of(row).parameter_cell(name)))
    }

    /// What `more` adds, where there is a reason for it.
    #[must_use]
    pub fn only_if(self, reason: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if reason { more(self) } else { self }
    }

    /// The table with all columns.
    pub fn table(self, rows: impl IntoIterator<Item = R>) -> Table {
        let (columns, says): (Vec<_>, Vec<Says<'a, R>>) = self.0.into_iter().unzip();
        let row = |row: R| says.iter().map(|says| says(&row)).collect();
        Table { columns, rows: rows.into_iter().map(row).collect() }
    }

    /// The table without the numbers that no row has: what nobody measured is no column.
    pub fn told(self, rows: impl IntoIterator<Item = R>) -> Table {
        let Table { columns, rows } = self.table(rows);
        Table::of(columns, rows)
    }
}
