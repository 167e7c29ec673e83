//! What may come of a case, and how its process says so: lines on stdout, the last its verdict.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// What came of a case, or of a part of one, as the lane reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It is so; what was seen, in a few words.
    Ok(String),
    /// It cannot be tried here. In the lane such a skip must be in `vm/expected-skips.toml`.
    Skip {
        /// What is missing.
        need: String,
        /// What to do about it.
        cure: String,
    },
    /// It is not so. A case itself says that by an error.
    Fail(String),
}

#[expect(clippy::unnecessary_wraps, reason = "each is the last expression of a case")]
impl Verdict {
    /// What a case, or a part of one, gave.
    pub(crate) fn of(result: Result<Self>) -> Self {
        result.unwrap_or_else(|error| Self::Fail(format!("{error:#}")))
    }

    /// It is so.
    pub(crate) fn ok(seen: impl Into<String>) -> Result<Self> {
        Ok(Self::Ok(seen.into()))
    }

    /// It cannot be tried here.
    pub(crate) fn skip(need: impl Into<String>, cure: impl Into<String>) -> Result<Self> {
        Ok(Self::Skip { need: need.into(), cure: cure.into() })
    }
}

/// A line about a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The case begins.
    Begin,
    /// A part of it.
    Part {
        /// Its name inside the case.
        name: String,
        /// What came of it.
        outcome: Verdict,
    },
    /// Something to read.
    Note(String),
    /// The kernel complained, or says this on the occasion of a failure.
    Kernel(String),
    /// The whole case.
    End(Verdict),
}

static A_PART_FAILED: AtomicBool = AtomicBool::new(false);

/// In the process of a case: says a line.
pub(crate) fn say(line: &Line) {
    println!("{}", serde_json::to_string(line).expect("a line is plain data"));
}

/// In the process of a case: says what came of a part.
pub(crate) fn say_part(name: &str, outcome: Result<Verdict>) {
    let outcome = Verdict::of(outcome);
    if matches!(outcome, Verdict::Fail(_)) {
        A_PART_FAILED.store(true, Ordering::Relaxed);
    }
    say(&Line::Part { name: name.to_owned(), outcome });
}

/// Whether a part of this process's case failed.
pub(crate) fn a_part_failed() -> bool {
    A_PART_FAILED.load(Ordering::Relaxed)
}
