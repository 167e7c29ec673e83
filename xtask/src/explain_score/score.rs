//! What came of the predictions for some programs, as a table and a share.
//!
//! The one idea: what the report says of a prediction is counted, never judged again; the error is
//! set beside that of predicting nothing, over the predictions where something happened.

use std::fmt::Write as _;

use serde_json::Value;

/// A change of less than this share of the CPU time is nothing that could be predicted.
const CHANGE: f64 = 0.03;

/// A program with what was predicted of it.
#[derive(Debug)]
pub(super) struct Score {
    program: String,
    /// How it is had, where it is not here.
    cure: Option<String>,
    rows: Vec<Row>,
}

/// A prediction, in nanoseconds of CPU time saved.
#[derive(Debug)]
struct Row {
    rung: String,
    predicted: Option<[f64; 3]>,
    is_bound: bool,
    came: Option<[f64; 3]>,
    nothing_came: String,
    off_by: Option<f64>,
    agreement: Option<String>,
    /// What came, as a share of the CPU time with base pages.
    share: Option<f64>,
}

impl Score {
    /// A program that is not here.
    pub(super) fn skipped(program: &str, cure: &str) -> Self {
        Self { program: program.to_owned(), cure: Some(cure.to_owned()), rows: Vec::new() }
    }

    /// From a report of `try`.
    pub(super) fn of(program: &str, report: &Value) -> Self {
        let predictions = report["predictions"].as_array().into_iter().flatten();
        let plain = plain_ns(report);
        let rows = predictions.map(|prediction| Row::of(prediction, plain)).collect();
        Self { program: program.to_owned(), cure: None, rows }
    }

    /// What came of it, a line for each prediction.
    pub(super) fn lines(&self) -> String {
        match self.rows[..] {
            [] => format!("{}: no prediction\n", self.program),
            _ => aligned(&self.cells()),
        }
    }

    fn cells(&self) -> Vec<[String; 6]> {
        self.rows.iter().map(|row| row.cells(&self.program)).collect()
    }
}

/// The CPU time of a run with base pages.
fn plain_ns(report: &Value) -> Option<f64> {
    let mut cases = report["cases"].as_array()?.iter();
    let plain = cases.find(|case| case["case"]["rung"] == "plain")?;
    let is_it = |number: &&Value| {
        number["series"] == "cpu" && number["time"] == "cpu" && number["statistic"] == "p50"
    };
    plain["numbers"].as_array()?.iter().find(is_it)?["value"].as_f64()
}

impl Row {
    fn of(prediction: &Value, plain_ns: Option<f64>) -> Self {
        let text = |name: &str| prediction[name].as_str().map(str::to_owned);
        let ends = |name: &str| -> Option<[f64; 3]> {
            let of = |end: &str| prediction[name][end].as_f64();
            Some([of("value")?, of("low")?, of("high")?])
        };
        let came = ends("came");
        let saved = came.zip(plain_ns).filter(|(_, plain)| *plain > 0.0);
        Self {
            rung: text("rung").unwrap_or_default(),
            predicted: ends("predicted"),
            is_bound: prediction["at_most"] == true,
            came,
            nothing_came: text("nothing_came").unwrap_or_default(),
            off_by: prediction["off_by_share_of_stall"].as_f64(),
            agreement: text("agreement"),
            share: saved.map(|([value, ..], plain)| value / plain),
        }
    }

    fn is_right(&self) -> bool {
        matches!(self.agreement.as_deref(), Some("inside" | "near"))
    }

    fn cells(&self, program: &str) -> [String; 6] {
        let predicted = match self.predicted {
            Some([_, _, high]) if self.is_bound => format!("at most {}", ms(high)),
            Some(ends) => spanned(ends),
            None => "no price".to_owned(),
        };
        let came = self.came.map_or_else(|| self.nothing_came.clone(), spanned);
        let off = self.off_by.map_or_else(String::new, |off| format!("{:+.0} %", off * 100.0));
        let so = match self.agreement.as_deref() {
            Some("near") => "within 15 %",
            Some("opposite") => "WRONG SIGN",
            Some(so) => so,
            None => "",
        };
        [program, &self.rung, &predicted, &came, &off, so].map(ToOwned::to_owned)
    }
}

/// Milliseconds, signed.
fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let digits = usize::from(ms.abs() < 9.95);
    format!("{ms:.digits$}")
}

fn spanned([value, low, high]: [f64; 3]) -> String {
    let [value, low, high] = [value, low, high].map(ms);
    if low == high { value } else { format!("{value} ({low} to {high})") }
}

/// Every prediction, and what they come to.
pub(super) fn table(scores: &[Score]) -> String {
    let heading = ["program", "rung", "predicted, ms", "came, ms", "off by", "so"];
    let mut lines = vec![heading.map(ToOwned::to_owned)];
    lines.extend(scores.iter().flat_map(Score::cells));
    aligned(&lines) + "\n" + &summed(scores)
}

/// Lines of cells, one below the other.
fn aligned(lines: &[[String; 6]]) -> String {
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// The share that is right, and the error beside that of predicting nothing.
fn summed(scores: &[Score]) -> String {
    let rows = || scores.iter().flat_map(|score| &score.rows);
    let judged = rows().filter(|row| row.agreement.is_some()).count();
    let count = |so: &str| rows().filter(|row| row.agreement.as_deref() == Some(so)).count();
    let right = rows().filter(|row| row.is_right()).count();
    let mut text = if judged == 0 {
        "No prediction has anything beside it.\n".to_owned()
    } else {
        format!(
            "{right} of {judged} right ({:.0} %): {} inside their interval, {} within 15 % of the \
             time in faults.\n{} off, {} open, {} of the wrong sign.\n",
            right as f64 / judged as f64 * 100.0,
            count("inside"),
            count("near"),
            count("off"),
            count("open"),
            count("opposite"),
        )
    };
    // Surely: what the interval leaves open would be mostly noise over noise.
    let is_sure = |row: &&Row| row.came.is_some_and(|[_, low, high]| low > 0.0 || high < 0.0);
    let is_much = |row: &&Row| row.share.is_some_and(|share| share.abs() >= CHANGE);
    let changed = || rows().filter(is_much).filter(is_sure);
    let pairs = || changed().filter_map(|row| Some([row.predicted?[0], row.came?[0]]));
    let missed: f64 = pairs().map(|[predicted, came]| (came - predicted).abs()).sum();
    let all: f64 = pairs().map(|[_, came]| came.abs()).sum();
    let _ = match pairs().count() {
        0 => writeln!(text, "None of them surely gained or lost 3 % of its CPU time."),
        many => writeln!(
            text,
            "Of the {many} that surely gained or lost 3 % of their CPU time, the error is {:.2} of \
             that of predicting nothing.",
            missed / all
        ),
    };
    for score in scores {
        match &score.cure {
            Some(cure) => {
                let _ = writeln!(text, "skipped: {} is not here: {cure}", score.program);
            }
            None if score.rows.is_empty() => {
                let _ = writeln!(text, "{}: no prediction", score.program);
            }
            None => (),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prediction(rung: &str, predicted: f64, came: Option<f64>, so: Option<&str>) -> Value {
        let ends = |value: f64| json!({"value": value, "low": value - 1e6, "high": value + 1e6});
        let nothing = came.is_none().then_some("not tried");
        json!({
            "rung": rung, "knob": "page-2m", "at_most": false, "predicted": ends(predicted),
            "came": came.map(ends), "nothing_came": nothing, "agreement": so,
            "off_by_share_of_stall": came.map(|came| (came - predicted) / 100e6),
        })
    }

    fn report(predictions: &[Value]) -> Value {
        let cpu = json!({"series": "cpu", "time": "cpu", "statistic": "p50", "value": 1e9});
        let plain = json!({"case": {"rung": "plain"}, "numbers": [cpu]});
        json!({"cases": [plain], "predictions": predictions})
    }

    #[test]
    fn what_is_open_or_untried_is_not_right_and_what_is_not_here_says_how_to_get_it() {
        let scores = [
            Score::of(
                "sort",
                &report(&[
                    prediction("thp-always", 80e6, Some(70e6), Some("near")),
                    prediction("malloc-thp", 80e6, Some(20e6), Some("open")),
                    prediction("mthp-64k", 40e6, None, None),
                ]),
            ),
            Score::skipped("go", "apt install golang"),
        ];
        let text = table(&scores);
        let expected = "\
program  rung        predicted, ms  came, ms       off by  so
sort     thp-always  80 (79 to 81)  70 (69 to 71)  -10 %   within 15 %
sort     malloc-thp  80 (79 to 81)  20 (19 to 21)  -60 %   open
sort     mthp-64k    40 (39 to 41)  not tried

1 of 2 right (50 %): 0 inside their interval, 1 within 15 % of the time in faults.
0 off, 1 open, 0 of the wrong sign.
Of the 1 that surely gained or lost 3 % of their CPU time, the error is 0.14 of that of \
predicting nothing.
skipped: go is not here: apt install golang
";
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_predicted_is_no_share() {
        let text = table(&[Score::of("x", &json!({}))]);
        assert!(text.contains("No prediction") && text.contains("x: no prediction"), "{text}");
    }
}
