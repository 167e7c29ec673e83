//! What a run with root does about a need, and undoes after the case: settings and belongings.
//!
//! The one idea: a setting is changed where the need is not met, a belonging is made for each case
//! anew, so the need for one is met when it *can* be made. What cannot be done has a cure.

use std::{fmt, path::PathBuf};

use pagelab_sys::knobs::Belonging;

/// What a run with root does about a need, and undoes after the case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Sets this knob to this value; where the need is met already, nothing.
    Set(PathBuf, String),
    /// Makes something, for each case anew.
    Create(Belonging),
}

impl Remedy {
    /// The command that sets the knob by hand.
    pub fn by_hand(&self) -> Option<String> {
        match self {
            Self::Set(path, value) => Some(format!("echo {value} | sudo tee {}", path.display())),
            Self::Create(_) => None,
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(path, value) => write!(f, "{} = {value}", path.display()),
            Self::Create(belonging) => belonging.fmt(f),
        }
    }
}
