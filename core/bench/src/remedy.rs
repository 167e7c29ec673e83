//! What a run with root does about a need, and undoes after the case: settings and belongings.
//!
//! The one idea: a setting is changed where the need is not met, a belonging is made for each case
//! anew, so the need for one is met when it *can* be made. What cannot be done has a cure.

use std::{fmt, path::PathBuf};

use pagelab_sys::knobs::Belonging;

/// What a run with root does about a need, and undoes after the case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Sets each of these knobs, of which there is one at least, to this value; where the need is
    /// met already, nothing.
    Set(Vec<PathBuf>, String),
    /// Makes something, for each case anew.
    Create(Belonging),
}

impl Remedy {
    /// Sets one knob.
    pub fn set(path: PathBuf, value: impl Into<String>) -> Self {
        Self::Set(vec![path], value.into())
    }

    /// The command that sets the knobs by hand.
    pub fn by_hand(&self) -> Option<String> {
        match self {
            Self::Set(paths, value) => {
                let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                Some(format!("echo {value} | sudo tee {}", paths.join(" ")))
            }
            Self::Create(_) => None,
        }
    }
}

/// What knobs are called together: the first, and how many more there are.
pub fn knobs(paths: &[PathBuf]) -> String {
    let [first, rest @ ..] = paths else { return String::new() };
    let first = first.display();
    if rest.is_empty() { first.to_string() } else { format!("{first} and {} more", rest.len()) }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(paths, value) => write!(f, "{} = {value}", knobs(paths)),
            Self::Create(belonging) => belonging.fmt(f),
        }
    }
}
