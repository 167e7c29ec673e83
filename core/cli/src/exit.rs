//! Exit codes: the first that applies, in the order of the manual.

use std::process::ExitCode;

use pagelab_sys::process::{launch::Ended, relay};

/// How a command ended. The order of the variants is the order in which they take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The user interrupted; what was done is saved.
    Interrupted,
    /// The command line, a suite or a file given on it is wrong.
    Usage,
    /// This host cannot do what was asked, or its disk is full or fails.
    HostCannot,
    /// A mistake of pagelab's.
    Internal,
    /// A case failed, or a check or a threshold did.
    CaseFailed,
    /// A witness failed: a measured case is invalid.
    Invalid,
    /// Runs that are not of one kind, or have no case in common.
    NotComparable,
    /// Everything was skipped.
    AllSkipped,
    /// For `git bisect run` alone: nothing can be told of this commit.
    Skip,
    /// As a program ended that was started.
    Program(u8),
    /// Fine.
    Good,
}

impl Exit {
    /// As a program that was started ended: by its code, or here and now by its signal.
    pub fn like(ended: &Ended) -> Self {
        if let Some(signal) = ended.signal() {
            relay::end_as(signal);
        }
        let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
        Self::Program(code.unwrap_or(u8::MAX))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Interrupted => 130,
            Exit::Usage => 2,
            Exit::HostCannot => 3,
            Exit::Internal => 70,
            Exit::CaseFailed => 1,
            Exit::Invalid => 6,
            Exit::NotComparable => 5,
            Exit::AllSkipped => 4,
            Exit::Skip => 125,
            Exit::Program(code) => code,
            Exit::Good => 0,
        })
    }
}

/// An error and the exit code that it ends the command with.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong, while doing what.
    pub error: anyhow::Error,
    /// The code.
    pub exit: Exit,
}

impl Failure {
    /// What went wrong and why, each cause once: some errors quote theirs, some leave it to us.
    pub fn sentence(&self) -> String {
        let mut said = String::new();
        for cause in self.error.chain().map(ToString::to_string) {
            if said.is_empty() {
                said = cause;
            } else if !said.contains(&cause) {
                said.push_str(&format!(": {cause}"));
            }
        }
        said
    }

    /// A wrong argument or file.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), exit: Exit::Usage }
    }

    /// Something that this host cannot do; also to write where it could open a file before.
    pub fn host(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), exit: Exit::HostCannot }
    }

    /// A mistake of ours.
    pub fn internal(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), exit: Exit::Internal }
    }
}

/// A sentence about a wrong argument or file, as most libraries of ours return it.
impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::usage(anyhow::anyhow!(text))
    }
}

/// A wrong argument or file: what is said of it, as for `format!`.
#[macro_export]
macro_rules! usage {
    ($($said:tt)*) => {
        $crate::exit::Failure::usage($crate::anyhow::anyhow!($($said)*))
    };
}

/// Something that this host cannot do: what is said of it, as for `format!`.
#[macro_export]
macro_rules! host {
    ($($said:tt)*) => {
        $crate::exit::Failure::host($crate::anyhow::anyhow!($($said)*))
    };
}
