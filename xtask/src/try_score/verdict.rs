//! What two runs of `try` say of a program.

use std::fmt::Write as _;

use serde_json::Value;

use crate::beside::{ratio, rung};

/// What a run says of a program.
#[derive(Debug, Clone, PartialEq)]
enum Said {
    /// This rung is faster than what is set up, by this ratio.
    Faster(String, f64),
    /// None is.
    Leave,
    /// Nobody knows yet.
    Open,
}

impl Said {
    fn of(report: &Value) -> Self {
        let tried = &report["tried"];
        let best = tried["answers"][0]["rung"].as_str();
        // Base pages are no way to larger ones: whether they are as good is another question.
        let is_way = |rung: &Value| rung != "plain";
        let open = tried["open"].as_array().is_none_or(|open| open.iter().any(is_way));
        match best {
            Some(rung) => Self::Faster(rung.to_owned(), ratio(report, rung).map_or(1.0, |r| r[0])),
            None if open => Self::Open,
            None => Self::Leave,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Faster(rung, ratio) => format!("{rung} {:+.1} %", (ratio - 1.0) * 100.0),
            Self::Leave => "leave it".to_owned(),
            Self::Open => "open".to_owned(),
        }
    }
}

fn verdict<'r>(report: &'r Value, name: &str) -> Option<&'r str> {
    rung(report, name)?["beside_what_is_set_up"]["verdict"].as_str()
}

/// A program that was tried twice.
#[derive(Debug)]
pub(super) struct Repeated {
    program: String,
    said: [Said; 2],
    holds: bool,
    /// What was planted, and whether it was found.
    planted: Option<bool>,
}

impl Repeated {
    /// Of two reports; `wanted`: whether a gain was planted, or a loss.
    pub(super) fn of(program: &str, reports: [&Value; 2], wanted: Option<bool>) -> Self {
        let said = reports.map(Said::of);
        // A rung that did not get behind the other run's screen is called nothing there.
        let agrees = |said: &Said, other: &Value| match said {
            Said::Faster(rung, _) => matches!(verdict(other, rung), None | Some("FASTER")),
            Said::Leave => true,
            Said::Open => false,
        };
        let is_alike = std::mem::discriminant(&said[0]) == std::mem::discriminant(&said[1]);
        let holds = is_alike && agrees(&said[0], reports[1]) && agrees(&said[1], reports[0]);
        let found = |gain: bool| {
            let has_loss = |report: &Value| {
                let rungs = report["tried"]["rungs"].as_array();
                rungs
                    .into_iter()
                    .flatten()
                    .any(|rung| rung["beside_what_is_set_up"]["verdict"] == "SLOWER")
            };
            match said[0] {
                Said::Faster(..) => gain,
                Said::Leave => !gain && has_loss(reports[0]),
                Said::Open => false,
            }
        };
        let planted = wanted.map(found);
        Self { program: program.to_owned(), said, holds, planted }
    }

    /// A line of the table.
    pub(super) fn line(&self) -> String {
        let Self { program, said, holds, planted } = self;
        let so = if *holds { "repeated" } else { "NOT REPEATED" };
        let found = match planted {
            Some(true) => ", planted and found",
            Some(false) => ", planted and NOT FOUND",
            None => "",
        };
        let [one, other] = said.each_ref().map(Said::words);
        format!("{program:<12}{one:<26}{other:<26}{so}{found}")
    }
}

/// What stands above the lines of programs.
pub(super) const HEADING: &str =
    "program     one run                   another                   so";

/// The table, and what it comes to.
pub(super) fn table(repeated: &[Repeated]) -> String {
    let mut text = format!("{HEADING}\n");
    for program in repeated {
        let _ = writeln!(text, "{}", program.line());
    }
    let again = repeated.iter().filter(|program| program.holds).count();
    let decided = |program: &&Repeated| program.said.iter().all(|said| *said != Said::Open);
    let decided = repeated.iter().filter(decided).count();
    let _ = writeln!(text, "\n{again} of {} repeated; both runs decide {decided}.", repeated.len());
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(best: Option<&str>, open: &[&str], rungs: &[(&str, &str, f64)]) -> Value {
        let rungs: Vec<Value> = rungs
            .iter()
            .map(|(name, verdict, ratio)| {
                let ends = json!({"value": ratio, "low": ratio - 0.01, "high": ratio + 0.01});
                json!({
                    "rung": name,
                    "beside_what_is_set_up": {"ratio": ends, "verdict": verdict},
                })
            })
            .collect();
        let answers: Vec<Value> = best.iter().map(|rung| json!({"rung": rung})).collect();
        json!({"tried": {"answers": answers, "open": open, "rungs": rungs}})
    }

    #[test]
    fn what_is_repeated_says_the_same_twice_and_decides() {
        let faster = report(Some("a"), &[], &[("a", "FASTER", 0.8), ("b", "FASTER", 0.81)]);
        let by_b = report(Some("b"), &[], &[("a", "FASTER", 0.8), ("b", "FASTER", 0.79)]);
        let not_a = report(Some("b"), &[], &[("a", "SAME", 1.0), ("b", "FASTER", 0.9)]);
        let leave = report(None, &[], &[("a", "SLOWER", 1.2)]);
        let open = report(None, &["a"], &[("a", "INCONCLUSIVE", 0.95)]);
        let beside = report(None, &["plain"], &[("a", "SLOWER", 1.2)]);
        let of = |one, other| Repeated::of("x", [one, other], None).holds;
        assert!(of(&faster, &faster) && of(&faster, &by_b) && of(&leave, &beside));
        assert!(!of(&faster, &not_a) && !of(&faster, &leave) && !of(&open, &open));
        let planted = |report, gain| Repeated::of("x", [report, report], Some(gain)).planted;
        assert_eq!([planted(&faster, true), planted(&leave, false)], [Some(true); 2]);
        assert_eq!([planted(&leave, true), planted(&faster, false)], [Some(false); 2]);
    }
}
