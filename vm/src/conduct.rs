//! Runs cases, each in a process of its own, and turns what comes of them into lines.
//!
//! The one idea: a case says what it sees in JSON lines on stdout, the last of them its verdict; a
//! process that ends without one has failed. In a guest the lines go to the lane, behind `@@`; on a
//! host they are printed for a person.

use std::{
    env,
    fmt::Write as _,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    case::Case,
    cases::{self, CASES},
    guest::Guest,
    kernel_log::{KernelLog, is_complaint},
    verdict::{Line, Verdict, a_part_failed, say},
};

/// The hidden word for the process of a case.
pub(crate) const CASE_COMMAND: &str = "__case";

/// The process of a case.
pub(crate) fn case(guest: &Guest, case: &Case) {
    let mut outcome = Verdict::of(cases::run(case, guest));
    if a_part_failed() && !matches!(outcome, Verdict::Fail(_)) {
        outcome = Verdict::Fail("a part of it failed".into());
    }
    say(&Line::End(outcome));
}

/// Starts the process of a case, hands on its lines, and adds what the process cannot say itself:
/// that it died, and what the kernel complained of meanwhile.
pub(crate) fn one(name: &str, log: &mut Option<KernelLog>, tell: &mut dyn FnMut(&Line)) -> Verdict {
    tell(&Line::Begin);
    let mut outcome = Verdict::of(lines_of(name, tell));
    let news = log.as_mut().map(KernelLog::news).unwrap_or_default();
    let complaints: Vec<_> = news.iter().filter(|line| is_complaint(line)).collect();
    if let Some(first) = complaints.first() {
        outcome = Verdict::Fail(format!("the kernel says: {first}"));
    }
    if matches!(outcome, Verdict::Fail(_)) {
        for line in &news {
            tell(&Line::Kernel(line.clone()));
        }
    }
    tell(&Line::End(outcome.clone()));
    outcome
}

/// The lines of a case's process but the last, which is returned.
fn lines_of(name: &str, tell: &mut dyn FnMut(&Line)) -> Result<Verdict> {
    let mut child = Command::new(env::current_exe().unwrap_or_else(|_| "/init".into()))
        .args([CASE_COMMAND, name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the case's process")?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let mut end = None;
    for line in BufReader::new(stdout).lines() {
        let line = line.context("reading the case's lines")?;
        match serde_json::from_str(&line) {
            Ok(Line::End(outcome)) => end = Some(outcome),
            Ok(line) => tell(&line),
            // Something that the case or a program of its own printed.
            Err(_) => tell(&Line::Note(line)),
        }
    }
    let status = child.wait().context("waiting for the case's process")?;
    match end {
        Some(outcome) if status.success() => Ok(outcome),
        _ => bail!("the case's process ended without a verdict: {status}"),
    }
}

/// Runs cases on this host, all that can be where none is named; whether none failed.
pub(crate) fn natively(names: &[&str]) -> Result<bool> {
    for name in names {
        cases::find(name).with_context(|| format!("no case is called {name}: guest list"))?;
    }
    let guest = Guest::here()?;
    let asked = |case: &&Case| names.is_empty() || names.contains(&case.name.as_str());
    let mut log = KernelLog::from_now().ok();
    let mut good = true;
    for case in CASES.iter().filter(asked) {
        if !case.native && !guest.is_ours() {
            println!("skip  {}: needs a machine of its own; cargo xtask vm {0}", case.name);
            continue;
        }
        let outcome = one(&case.name, &mut log, &mut |line| print!("{}", for_a_person(line)));
        println!("{}", summary(&case.name, &outcome));
        good &= !matches!(outcome, Verdict::Fail(_));
    }
    Ok(good)
}

fn summary(name: &str, outcome: &Verdict) -> String {
    match outcome {
        Verdict::Ok(seen) => format!("ok    {name}: {seen}"),
        Verdict::Skip { need, cure } => format!("skip  {name}: needs {need}: {cure}"),
        Verdict::Fail(why) => format!("FAIL  {name}: {why}"),
    }
}

fn for_a_person(line: &Line) -> String {
    let mut text = String::new();
    let _ = match line {
        Line::Begin | Line::End(_) => Ok(()),
        Line::Part { name, outcome } => writeln!(text, "      {}", summary(name, outcome)),
        Line::Note(note) => writeln!(text, "      {note}"),
        Line::Kernel(line) => writeln!(text, "      kernel: {line}"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_said() {
        let skip = Verdict::Skip { need: "a node".into(), cure: "another machine".into() };
        for line in [
            Line::Begin,
            Line::Part { name: "a b".into(), outcome: skip },
            Line::Note("7 pages".into()),
            Line::End(Verdict::Fail("no".into())),
        ] {
            let text = serde_json::to_string(&line).unwrap();
            assert!(!text.contains('\n'));
            assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        }
        assert_eq!(serde_json::to_string(&Line::Begin).unwrap(), "\"begin\"");
    }

    #[test]
    fn an_error_is_a_failure_with_its_whole_chain() {
        let error = anyhow::anyhow!("no page").context("touching");
        assert_eq!(Verdict::of(Err(error)), Verdict::Fail("touching: no page".into()));
    }
}
