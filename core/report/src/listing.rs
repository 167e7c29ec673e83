//! Plain lines, for commands whose answer is a list and no report.
//!
//! Lines stand alone or, indented, under a heading; a heading without lines is left out.

use std::fmt::{self, Display};

/// Lines that a command prints, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Listing(String);

impl Listing {
    /// Adds a line, or several in one text.
    #[must_use]
    pub fn line(mut self, line: impl Display) -> Self {
        self.0.push_str(&format!("{line}\n"));
        self
    }

    /// Adds lines.
    #[must_use]
    pub fn lines<L: Display>(self, lines: impl IntoIterator<Item = L>) -> Self {
        lines.into_iter().fold(self, Self::line)
    }

    /// Adds a line and, indented, those that belong to it.
    #[must_use]
    pub fn item<L: Display>(self, head: impl Display, lines: impl IntoIterator<Item = L>) -> Self {
        self.line(head).lines(lines.into_iter().map(|line| format!("  {line}")))
    }

    /// Adds lines under a heading, with a blank line before it; nothing where there is no line.
    #[must_use]
    pub fn section<L: Display>(
        self,
        heading: impl Display,
        lines: impl IntoIterator<Item = L>,
    ) -> Self {
        let mut lines = lines.into_iter().peekable();
        match (lines.peek().is_some(), self.0.is_empty()) {
            (false, _) => self,
            (true, true) => self.item(heading, lines),
            (true, false) => self.line("").item(heading, lines),
        }
    }

    /// Adds rows as columns, each as wide as its widest cell, and the last as it is.
    #[must_use]
    pub fn rows<const N: usize, T: AsRef<str>>(self, rows: &[[T; N]]) -> Self {
        let chars = |row: &[T; N], at: usize| row[at].as_ref().chars().count();
        let width = |at: usize| rows.iter().map(|row| chars(row, at)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..N).map(width).collect();
        let line = |row: &[T; N]| {
            let cells = row.iter().map(T::as_ref).zip(&widths);
            let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.lines(rows.iter().map(line))
    }
}

impl Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
