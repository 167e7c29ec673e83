//! Combinations of parameters that would measure something else than they say.
//!
//! The one idea: a refusal is a row, and one table of them is what a workload turns away and what
//! `list` shows. A row looks at what its workload read of the case, so that a case is read once.

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
pub fn refuse<A>(rows: &[Refusal<A>], asked: &A) -> Result<(), String> {
    match rows.iter().find(|row| (row.when)(asked)) {
        Some(Refusal { says, instead, .. }) => Err(format!("{says}: {instead}")),
        None => Ok(()),
    }
}

/// The rows as pairs of a combination and what to ask for, for `list`.
pub fn listed<A>(rows: &[Refusal<A>]) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows.iter().map(|row| (row.says, row.instead))
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
