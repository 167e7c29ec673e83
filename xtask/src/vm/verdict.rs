//! What a boot's lines and its end mean: a pure function of what was recorded.
//!
//! The one idea: a boot is good when three independent things agree: QEMU's exit status, the last
//! line of the results, and a console without a complaint of the kernel. A machine that ends in any
//! other way has failed, whatever its cases said before.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// QEMU's status when the guest wrote 0 to the debug port; also its status when it cannot start.
const GOOD_STATUS: i32 = 1;

/// How a line for the lane begins.
pub(super) const FOR_THE_LANE: &str = "@@";

/// Lines of the console that are shown of a boot that failed.
const LAST_WORDS: usize = 12;

/// How a kernel says that it gives up.
const PANIC: &str = "Kernel panic";
const WITHOUT_A_VERDICT: &str = "it panicked or went off without a verdict";

/// How a message of the console must not begin. Since 6.18 a WARN names its place before its CPU.
const BEGINNINGS: &[&str] = &[
    "BUG: ",
    "kernel BUG at",
    "Oops: ",
    "WARNING: ",
    "general protection fault",
    "list_add corruption",
    "list_del corruption",
    "INFO: task ",
];

/// What it must not hold anywhere.
const COMPLAINTS: &[&str] = &[
    PANIC,
    "BUG: soft lockup",
    "hard LOCKUP",
    "self-detected stall",
    "detected stalls",
    "double fault:",
    "refcount_t: ",
];

/// What was recorded of a boot.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// Exit status; `None` when a signal ended QEMU.
    pub(super) status: Option<i32>,
    /// Whether it was ended because its time was up.
    pub(super) timed_out: bool,
    /// The second serial line, and whatever QEMU itself said.
    pub(super) results: String,
    /// The first serial line.
    pub(super) console: String,
}

/// What came of a case or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok(String),
    Skip { need: String, cure: String },
    Fail(String),
}

/// One outcome of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The case.
    pub(super) case: String,
    /// A part of it, or `None` for the whole.
    pub(super) part: Option<String>,
    /// What came of it.
    pub(super) outcome: Outcome,
}

/// All that a boot said, read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// Outcomes of cases and their parts.
    pub(super) findings: Vec<Finding>,
    /// Notes and the kernel's lines, each with its case, for a person.
    pub(super) notes: Vec<String>,
    /// Why the boot as a whole has failed.
    pub(super) failures: Vec<String>,
    /// Seconds of the guest's clock that each case took.
    pub(super) seconds: BTreeMap<String, f64>,
    /// The kernel's release, from the guest itself.
    pub(super) release: String,
}

impl Recording {
    /// What kept the first process from saying anything. A panic is none: the kernel says it
    /// itself.
    fn never_came_up(&self) -> Option<&'static str> {
        let spoke = self.results.lines().any(|line| line.starts_with(FOR_THE_LANE));
        let complained = self.console.lines().any(is_complaint);
        match (self.timed_out, self.console.trim().is_empty()) {
            _ if spoke || complained => None,
            (true, _) => Some("the kernel did not reach its first process"),
            (false, true) => Some("QEMU did not start the machine"),
            (false, false) => None,
        }
    }

    /// Whether the kernel panicked, as it comes from its makers: without a module of ours.
    pub(super) fn has_panicked_alone(&self) -> bool {
        let of_the_kernel = ["BUG: ", "Oops: "].map(|beginning| {
            self.console.lines().any(|line| is_complaint(line) && line.contains(beginning))
        });
        self.console.contains(PANIC)
            && self.console.contains("Not tainted")
            && of_the_kernel.contains(&true)
    }

    /// The end of the console, for a person who has no more of it than this.
    pub(super) fn last_words(&self) -> String {
        let lines: Vec<_> = self.console.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
        last.iter().flat_map(|line| ["\n        console: ", line]).collect()
    }

    /// Reads the lines and gives the verdict; `cases` are those that were asked for.
    pub(super) fn judge(&self, cases: &[String]) -> Judged {
        let mut judged = Judged::default();
        let mut done = None;
        for line in self.results.lines() {
            let Some(text) = line.trim_end().strip_prefix(FOR_THE_LANE) else { continue };
            if let Some(code) = text.strip_prefix("done rc=") {
                done = code.parse::<u8>().ok();
            } else {
                judged.read(text);
            }
        }
        judged.end(self, done);
        for case in cases {
            if !judged.findings.iter().any(|one| one.case == *case && one.part.is_none()) {
                let outcome = Outcome::Fail("the machine ended without a word on it".into());
                judged.findings.push(Finding { case: case.clone(), part: None, outcome });
            }
        }
        judged
    }
}

impl Judged {
    /// Reads one line of the guest.
    fn read(&mut self, text: &str) {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            self.failures.push(format!("a line of the guest cannot be read: {text}"));
            return;
        };
        if let Some(error) = value["error"].as_str() {
            self.failures.push(error.to_owned());
        } else if let Some(release) = value["boot"]["release"].as_str() {
            release.clone_into(&mut self.release);
        }
        let Some(case) = value["case"].as_str() else { return };
        let line = &value["line"];
        // `/proc/uptime`: since the boot, then idle.
        let uptime = value["uptime"].as_str().and_then(|text| text.split(' ').next()?.parse().ok());
        if let Some(now) = uptime.filter(|_| line == "begin" || line["end"].is_object()) {
            let begin = self.seconds.insert(case.to_owned(), now);
            self.seconds.insert(case.to_owned(), begin.map_or(now, |begin| now - begin));
        }
        let found = |part: Option<&str>, outcome: &Value| {
            let outcome = Outcome::deserialize(outcome).ok()?;
            Some(Finding { case: case.to_owned(), part: part.map(str::to_owned), outcome })
        };
        if let Some(part) = line["part"]["name"].as_str() {
            self.findings.extend(found(Some(part), &line["part"]["outcome"]));
        }
        self.findings.extend(found(None, &line["end"]));
        for (key, who) in [("note", ""), ("kernel", "kernel: ")] {
            if let Some(note) = line[key].as_str() {
                self.notes.push(format!("{case}: {who}{note}"));
            }
        }
    }

    /// The verdict on a boot that was to end with a panic: that of the lane itself.
    pub(super) fn that_panicked(self, cases: &[String]) -> Self {
        let panic = self.failures.iter().find(|failure| failure.contains(PANIC)).cloned();
        let ended = self.failures.iter().any(|failure| failure.contains(WITHOUT_A_VERDICT));
        let outcome = match panic {
            Some(line) if ended => Outcome::Ok(line),
            _ => Outcome::Fail(format!("no panic was seen: {:?}", self.failures)),
        };
        let finding =
            |case: &String| Finding { case: case.clone(), part: None, outcome: outcome.clone() };
        Self { findings: cases.iter().map(finding).collect(), failures: Vec::new(), ..self }
    }

    /// Adds what the end of the machine says.
    fn end(&mut self, recording: &Recording, done: Option<u8>) {
        if recording.timed_out {
            self.failures.push("its time was up: it was ended".into());
        } else {
            match recording.status {
                Some(GOOD_STATUS) => (),
                Some(0) => self.failures.push(WITHOUT_A_VERDICT.into()),
                Some(status) if status % 2 == 1 => {
                    let failed = self.findings.iter().any(|one| one.outcome.is_fail());
                    // The guest's own account of why comes first.
                    if !failed && self.failures.is_empty() {
                        let code = (status - 1) / 2;
                        self.failures.push(format!("the first process left with {code}"));
                    }
                }
                Some(status) => self.failures.push(format!("QEMU ended with {status}")),
                None => self.failures.push("QEMU was killed by a signal".into()),
            }
        }
        if done.is_none() {
            self.failures.push("no `@@done` in its results".into());
        }
        for line in recording.console.lines() {
            if is_complaint(line) {
                self.failures.push(format!("console: {}", line.trim_end()));
            }
        }
        if let Some(what) = recording.never_came_up() {
            let said = recording.results.lines().rfind(|line| !line.trim().is_empty());
            let said = said.unwrap_or("nothing was said");
            self.failures.insert(0, format!("{what}: {said}"));
        }
    }
}

/// Whether a line of the console says that the kernel found a mistake.
fn is_complaint(line: &str) -> bool {
    // `[    4.120394] message`; early messages of a crash may come without the time.
    let message = match line.trim_start().strip_prefix('[') {
        Some(rest) => rest.split_once("] ").map_or(line, |(_, message)| message),
        None => line,
    };
    BEGINNINGS.iter().any(|beginning| message.starts_with(beginning))
        || COMPLAINTS.iter().any(|complaint| message.contains(complaint))
}

impl Outcome {
    /// Whether it is not so.
    pub(super) fn is_fail(&self) -> bool {
        matches!(self, Self::Fail(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "@@{\"boot\":{\"release\":\"6.1.0-56-cloud-amd64\",\"uptime\":\"1 2\"}}\n\
        @@{\"case\":\"a/b\",\"line\":\"begin\"}\n\
        @@{\"case\":\"a/b\",\"line\":{\"note\":\"7 pages\"}}\n\
        @@{\"case\":\"a/b\",\"line\":{\"part\":{\"name\":\"x\",\"outcome\":{\"skip\":\
        {\"need\":\"n\",\"cure\":\"c\"}}}}}\n\
        @@{\"case\":\"a/b\",\"line\":{\"end\":{\"ok\":\"fine\"}}}\n\
        @@done rc=0\n";

    fn recording(status: i32, results: &str, console: &str) -> Recording {
        Recording {
            status: Some(status),
            timed_out: false,
            results: results.to_owned(),
            console: console.to_owned(),
        }
    }

    fn failures(recording: &Recording) -> Vec<String> {
        recording.judge(&["a/b".into()]).failures
    }

    #[test]
    fn status_last_line_and_a_silent_console_are_a_good_boot() {
        let judged = recording(1, GOOD, "Loading\n").judge(&["a/b".into()]);
        assert_eq!(judged.failures, [""; 0]);
        assert_eq!(judged.release, "6.1.0-56-cloud-amd64");
        assert_eq!(judged.notes, ["a/b: 7 pages"]);
        assert_eq!(judged.findings.len(), 2);
        assert_eq!(judged.findings[1].outcome, Outcome::Ok("fine".into()));
    }

    #[test]
    fn a_panic_is_a_failure_and_its_case_has_failed() {
        let console = "[    4.1] Kernel panic - not syncing: sysrq triggered crash\n\
            [    4.1] CPU: 0 PID: 71 Comm: guest Not tainted\n";
        let cut = GOOD.split("@@{\"case\":\"a/b\",\"line\":{\"end\"").next().unwrap();
        let judged = recording(0, cut, console).judge(&["a/b".into()]);
        assert_eq!(judged.failures.len(), 3, "{:?}", judged.failures);
        assert!(judged.failures[2].contains("sysrq triggered crash"));
        assert!(judged.findings[1].outcome.is_fail());
    }

    #[test]
    fn a_kernel_that_stumbles_is_told_from_a_panic_for_a_reason() {
        let stumbles = "[    8.1] Oops: invalid opcode: 0000 [#1] PREEMPT SMP NOPTI\n\
            [    8.1] CPU: 0 UID: 0 PID: 71 Comm: guest Not tainted 6.12.117 #1\n\
            [    8.2] Kernel panic - not syncing: Fatal exception\n";
        assert!(recording(0, "", stumbles).has_panicked_alone());
        let ours = stumbles.replace("Not tainted", "Tainted: G           O      ");
        let asked = stumbles.replace("Oops: invalid opcode", "sysrq: Trigger a crash");
        for other in [&ours, &asked, "[    8.1] Oops: invalid opcode: Not tainted\n"] {
            assert!(!recording(0, "", other).has_panicked_alone());
        }
    }

    #[test]
    fn a_panic_that_was_asked_for_is_fine_and_its_absence_is_not() {
        let cases = ["a/b".to_owned()];
        let console = "[    4.1] Kernel panic - not syncing: sysrq triggered crash\n";
        let judged = recording(0, "", console).judge(&cases).that_panicked(&cases);
        assert_eq!(judged.failures, [""; 0]);
        assert!(!judged.findings[0].outcome.is_fail());
        for other in [recording(1, GOOD, "x"), recording(0, "", "x"), recording(1, GOOD, console)] {
            let judged = other.judge(&cases).that_panicked(&cases);
            assert!(judged.findings[0].outcome.is_fail());
        }
    }

    #[test]
    fn a_machine_that_never_started_is_not_taken_for_status_0() {
        // QEMU exits with 1 both when the guest says 0 and when an option is wrong.
        let silent = recording(1, "qemu-system-x86_64: -machine q36: unsupported machine\n", "");
        assert!(silent.never_came_up().is_some());
        let failures = failures(&silent);
        assert!(failures[0].contains("unsupported machine"), "{failures:?}");
    }

    #[test]
    fn a_machine_whose_first_process_said_nothing_is_named() {
        let silent = |console: &str, results: &str| Recording {
            timed_out: true,
            ..recording(9, results, console)
        };
        let what = silent("[ 0.1] tsc: calibrating\n", "").never_came_up();
        assert_eq!(what, Some("the kernel did not reach its first process"));
        assert_eq!(silent("[ 0.1] Kernel panic - not syncing: x\n", "").never_came_up(), None);
        assert_eq!(silent("[ 0.1] fine\n", GOOD).never_came_up(), None);
        assert!(silent("[ 0.1] the last\n", "").last_words().ends_with("[ 0.1] the last"));
    }

    #[test]
    fn a_warning_fails_a_boot_whose_cases_are_fine() {
        let console = "[ 3.0] ------------[ cut here ]------------\n\
            [ 3.0] WARNING: CPU: 1 PID: 99 at mm/memory.c:42 vm_insert_page+0x1/0x2\n";
        let found = failures(&recording(1, GOOD, console));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("mm/memory.c:42"), "{found:?}");
        let newer = "[ 3.0] WARNING: mm/memory.c:42 at vm_insert_page+0x1/0x2, CPU#1: guest/99\n";
        assert_eq!(failures(&recording(1, GOOD, newer)).len(), 1);
    }

    #[test]
    fn complaints_of_the_watchdogs_are_seen_wherever_they_stand() {
        for line in [
            "[ 9.1] watchdog: BUG: soft lockup - CPU#1 stuck for 26s!",
            "[ 9.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[ 9.1] BUG: Bad page state in process guest  pfn:100",
            "[ 9.1] Oops: Oops: 0002 [#1] SMP NOPTI",
        ] {
            assert!(is_complaint(line), "{line}");
        }
    }

    #[test]
    fn words_in_passing_are_no_complaint() {
        let console = "[ 0.1] Spectre V2 : WARNING: Unprivileged eBPF is on\n[ 1.0] DEBUG: x\n";
        assert_eq!(failures(&recording(1, GOOD, console)), [""; 0]);
    }

    #[test]
    fn each_way_of_ending_without_a_verdict_is_named() {
        let cut = GOOD.strip_suffix("@@done rc=0\n").unwrap();
        for (status, said) in [(0, "panicked or went off"), (5, "left with 2"), (2, "ended with 2")]
        {
            let failures = failures(&recording(status, cut, "x"));
            assert!(failures[0].contains(said), "{failures:?}");
            assert!(failures[1].contains("@@done"), "{failures:?}");
        }
        let timed_out = Recording { timed_out: true, ..recording(9, cut, "x") };
        assert!(failures(&timed_out)[0].contains("time was up"));
        let killed = Recording { status: None, ..recording(9, cut, "x") };
        assert!(failures(&killed)[0].contains("signal"));
    }

    #[test]
    fn an_error_of_the_first_process_and_a_broken_line_are_failures() {
        let text = format!("@@{{\"error\":\"finit_module(x)\"}}\n@@nonsense\n{GOOD}");
        let failures = failures(&recording(1, &text, "x"));
        assert_eq!(failures.len(), 2);
        assert_eq!(failures[0], "finit_module(x)");
    }
}
