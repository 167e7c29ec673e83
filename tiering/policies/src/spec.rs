//! A row of a table with numbers: how policies and generators are named and told what to do.
//!
//! The one idea: `name:parameter=value,parameter=value` names a choice completely; what is left out
//! has the default of its table, and the text that is printed leaves out nothing.

use std::fmt;

use crate::whole;

/// A number that a policy or a generator can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// One line: what it means, with its unit.
    pub help: &'static str,
    /// Its value where none is given.
    pub default: f64,
    /// The smallest value that makes sense.
    pub min: f64,
    /// The largest one.
    pub max: f64,
    /// Whether it must be a whole number.
    pub whole: bool,
}

impl Parameter {
    /// A whole number.
    pub(crate) const fn count(
        name: &'static str,
        help: &'static str,
        default: f64,
        min: f64,
        max: f64,
    ) -> Self {
        Self { name, help, default, min, max, whole: true }
    }

    /// Something that is so (1) or not (0).
    pub(crate) const fn flag(name: &'static str, help: &'static str, default: f64) -> Self {
        Self::count(name, help, default, 0.0, 1.0)
    }

    /// A number with a fraction.
    pub(crate) const fn real(
        name: &'static str,
        help: &'static str,
        default: f64,
        min: f64,
        max: f64,
    ) -> Self {
        Self { name, help, default, min, max, whole: false }
    }

    fn judge(&self, value: f64) -> Result<f64, String> {
        let Self { name, min, max, whole, .. } = *self;
        if !(min..=max).contains(&value) {
            return Err(format!("`{name}={value}` is outside {min} to {max}"));
        }
        if whole && value.to_bits() != value.trunc().to_bits() {
            return Err(format!("`{name}={value}` must be a whole number"));
        }
        Ok(value)
    }
}

/// What a table's row looks like to a [`Spec`].
pub trait Row: fmt::Debug + Sync + 'static {
    /// What the rows of this table are called, for messages.
    const KIND: &'static str;
    /// The table.
    fn rows() -> &'static [Self]
    where
        Self: Sized;
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it can be told.
    fn parameters(&self) -> &'static [Parameter];
}

/// A row and the values of its parameters.
#[derive(Debug)]
pub struct Spec<R: Row> {
    row: &'static R,
    values: Vec<f64>,
}

impl<R: Row> Clone for Spec<R> {
    fn clone(&self) -> Self {
        Self { row: self.row, values: self.values.clone() }
    }
}

impl<R: Row> PartialEq for Spec<R> {
    fn eq(&self, other: &Self) -> bool {
        self.row.name() == other.row.name() && self.values == other.values
    }
}

impl<R: Row> Spec<R> {
    /// The row of that name, with its defaults.
    ///
    /// # Errors
    /// A sentence that lists the names there are.
    pub fn new(name: &str) -> Result<Self, String> {
        let Some(row) = R::rows().iter().find(|row| row.name() == name) else {
            let names: Vec<&str> = R::rows().iter().map(Row::name).collect();
            let kind = R::KIND;
            return Err(format!("no {kind} is called `{name}`; there are {}", names.join(", ")));
        };
        let values = row.parameters().iter().map(|parameter| parameter.default).collect();
        Ok(Self { row, values })
    }

    /// Reads `NAME` or `NAME:PARAMETER=VALUE,PARAMETER=VALUE`.
    ///
    /// # Errors
    /// A sentence that says which part makes no sense and what is accepted there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, pairs) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = Self::new(name.trim())?;
        let mut given = Vec::new();
        for pair in pairs.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(format!("`{pair}` in `{text}` is no NAME=VALUE"));
            };
            if given.contains(&name) {
                return Err(format!("`{text}` gives `{name}` twice"));
            }
            given.push(name);
            let number = value.trim().parse().map_err(|_| format!("`{pair}` is no number"))?;
            spec.set(name.trim(), number)?;
        }
        Ok(spec)
    }

    /// Sets one parameter.
    ///
    /// # Errors
    /// A sentence that names the parameters there are, or the values that it takes.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let parameters = self.row.parameters();
        let Some(at) = parameters.iter().position(|parameter| parameter.name == name) else {
            let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
            let row = self.row.name();
            return Err(match names.as_slice() {
                [] => format!("`{row}` has no parameters, and no `{name}`"),
                names => format!("`{row}` has no parameter `{name}`; it has {}", names.join(", ")),
            });
        };
        self.values[at] =
            parameters[at].judge(value).map_err(|why| format!("{}: {why}", self.row.name()))?;
        Ok(())
    }

    /// The same with one parameter set, where it has that one.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        let _ = self.set(name, value);
        self
    }

    /// Its row.
    pub fn row(&self) -> &'static R {
        self.row
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.row.name()
    }

    /// The value of a parameter; 0 where there is none of that name.
    pub fn value(&self, name: &str) -> f64 {
        let mut parameters = self.row.parameters().iter();
        parameters.position(|parameter| parameter.name == name).map_or(0.0, |at| self.values[at])
    }

    /// The same as a whole number.
    pub(crate) fn count(&self, name: &str) -> u64 {
        whole(self.value(name))
    }
}

impl<R: Row> fmt::Display for Spec<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name())?;
        for (index, (parameter, value)) in
            self.row.parameters().iter().zip(&self.values).enumerate()
        {
            f.write_str(if index == 0 { ":" } else { "," })?;
            write!(f, "{}={value}", parameter.name)?;
        }
        Ok(())
    }
}
