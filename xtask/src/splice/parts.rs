//! Parts of a report, by how they begin.
//!
//! A report is paragraphs with an empty line between them. `head` is the first, `headlines` the
//! second; any other is named by the start of its first line. `Fault latency/4` is the first four
//! lines of one, and an ellipsis stands for the rest.

use anyhow::{Context, Result};

/// What stands for lines that are left out.
const REST: &str = "…";

/// The parts that are asked for, in that order; all of the report where none is.
///
/// # Errors
/// When the report has no such part.
pub(super) fn choose(report: &str, parts: &[&str]) -> Result<String> {
    if parts.is_empty() {
        return Ok(report.trim_end().to_owned() + "\n");
    }
    let paragraphs: Vec<&str> = report.trim_end().split("\n\n").collect();
    let chosen: Result<Vec<String>> = parts.iter().map(|part| find(&paragraphs, part)).collect();
    Ok(chosen?.join("\n"))
}

fn find(paragraphs: &[&str], part: &str) -> Result<String> {
    let limited = part.rsplit_once('/').and_then(|(name, most)| Some((name, most.parse().ok()?)));
    let (name, most) = limited.unwrap_or((part, usize::MAX));
    let found = match name {
        "head" => paragraphs.first(),
        "headlines" => paragraphs.get(1),
        _ => paragraphs.iter().find(|paragraph| paragraph.starts_with(name)),
    };
    let found = found.with_context(|| format!("the report has no part that starts `{name}`"))?;
    let mut shown: Vec<&str> = found.lines().take(most).collect();
    if found.lines().nth(most).is_some() {
        shown.push(REST);
    }
    Ok(shown.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "run\nCPU\n\n1 ns  a\n2 ns  b\n\nLimits of this machine\nl1\nl2\nl3\n";

    #[test]
    fn nothing_in_particular_is_the_whole_report() {
        assert_eq!(choose(REPORT, &[]).unwrap(), REPORT);
    }

    #[test]
    fn parts_come_in_the_order_in_which_they_are_asked_for() {
        let expected = "Limits of this machine\nl1\nl2\nl3\n\nrun\nCPU\n";
        assert_eq!(choose(REPORT, &["Limits", "head"]).unwrap(), expected);
    }

    #[test]
    fn what_is_left_out_of_a_part_shows() {
        let expected = "1 ns  a\n…\n\nLimits of this machine\nl1\n…\n";
        assert_eq!(choose(REPORT, &["headlines/1", "Limits/2"]).unwrap(), expected);
        assert_eq!(choose(REPORT, &["headlines/2"]).unwrap(), "1 ns  a\n2 ns  b\n");
    }

    #[test]
    fn a_part_that_is_not_there_is_an_error_that_names_it() {
        let error = choose(REPORT, &["Nothing"]).unwrap_err();
        assert!(error.to_string().contains("`Nothing`"), "{error}");
    }
}
