//! Combinations of parameters that would measure something else than they say.
//!
//! The one idea: a refusal is a row, and one table of them is what a workload turns away and what
//! `list` shows. A row looks at what its workload read of the case, so that a case is read once.

use std::fmt;

/// A combination that is turned away.
#[derive(Debug)]
pub struct Refusal<A: 'static> {
    /// Whether a case asks for it.
    pub when: fn(&A) -> bool,
    /// What it is.
    pub says: &'static str,
    /// What it would be instead, and what to ask for.
    pub instead: &'static str,
}

impl<A> Refusal<A> {
    /// A row.
    pub const fn new(when: fn(&A) -> bool, says: &'static str, instead: &'static str) -> Self {
        Self { when, says, instead }
    }
}

/// Refuses what a row turns away.
///
/// # Errors
/// The sentence of the first row that meets what was asked.
pub(crate) fn refuse<A>(rows: &[Refusal<A>], asked: &A) -> Result<(), String> {
    match rows.iter().find(|row| (row.when)(asked)) {
        Some(Refusal { says, instead, .. }) => Err(format!("{says}: {instead}")),
        None => Ok(()),
    }
}

/// The rows as pairs of a combination and what to ask for, for `list`.
pub(crate) fn listed<A>(rows: &[Refusal<A>]) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows.iter().map(|row| (row.says, row.instead))
}

/// Tables of rows over a part of what is asked: over memory, say, that several workloads have.
#[derive(Debug)]
pub struct Over<A: 'static, B: 'static> {
    /// The part.
    pub of: fn(&A) -> &B,
    /// What is turned away, in the order in which it is looked for.
    pub tables: &'static [&'static [Refusal<B>]],
}

/// A [`Over`], whatever type it looks at.
pub trait Refuses<A>: Sync + fmt::Debug {
    /// Refuses what a row turns away.
    ///
    /// # Errors
    /// The sentence of the first row that meets what was asked.
    fn refuse(&self, asked: &A) -> Result<(), String>;

    /// The rows, for `list`.
    fn listed(&self) -> Vec<(&'static str, &'static str)>;
}

impl<A: fmt::Debug, B: fmt::Debug> Refuses<A> for Over<A, B> {
    fn refuse(&self, asked: &A) -> Result<(), String> {
        self.tables.iter().try_for_each(|rows| refuse(rows, (self.of)(asked)))
    }

    fn listed(&self) -> Vec<(&'static str, &'static str)> {
        self.tables.iter().copied().flat_map(listed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_meets_a_case_is_said() {
        const ROWS: &[Refusal<u32>] = &[
            Refusal::new(|asked| *asked > 9, "above 9", "use 9"),
            Refusal::new(|asked| *asked > 5, "above 5", "use 5"),
        ];
        assert_eq!(refuse(ROWS, &10), Err("above 9: use 9".to_owned()));
        assert_eq!((refuse(ROWS, &6), refuse(ROWS, &5)), (Err("above 5: use 5".into()), Ok(())));
        assert_eq!(listed(ROWS).nth(1), Some(("above 5", "use 5")));
    }
}
