//! Governors and turbo of a machine that is made of files: those who test are guests, as a rule,
//! and have neither. Its folder lies over the kernel's in a mount namespace, which the run, its
//! cases and its watchdog share.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pagelab_record::vocabulary::Check;

use super::{all_is_over, left_unattended};
use crate::support::{
    Ended, Lab, Live, Machine, Saved, binary, is_root, lacked, measured, signal, skip,
};

const CPU: &str = "/sys/devices/system/cpu";
const STEADY: &str = "fault/latency governor=performance turbo=off size=1m rounds=2";
const ENDLESS: &str = "fault/latency governor=performance turbo=off size=1m rounds=1000000";
const GOVERNORS: &str = "performance powersave schedutil \n";
/// The governor of each policy.
const SETTINGS: [(&str, &str); 2] = [("policy0", "schedutil"), ("policy10", "powersave")];

/// A machine whose processors have a frequency.
struct Clocked<'l> {
    lab: &'l Lab,
    program: PathBuf,
    turbo: &'static str,
    knobs: Vec<Saved>,
}

impl<'l> Clocked<'l> {
    /// One with these governors for each policy.
    fn new(lab: &'l Lab, settings: &[(&str, &str)]) -> Option<Self> {
        if !is_root() || !Path::new(CPU).join("cpufreq").is_dir() {
            skip("no folder can lie over that of cpufreq", "run as root on a kernel with CPU_FREQ");
            return None;
        }
        let mut files = Vec::new();
        for (policy, governor) in settings {
            let folder = lab.path("cpufreq").join(policy);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_available_governors"), GOVERNORS).unwrap();
            files.push((folder.join("scaling_governor"), format!("{governor}\n")));
        }
        // A kernel that has the other switch has to be hidden its own.
        let mut hidden = vec!["cpufreq"];
        hidden.extend(Path::new(CPU).join("intel_pstate").is_dir().then_some("intel_pstate"));
        let turbo = if hidden.len() == 2 { "intel_pstate/no_turbo" } else { "cpufreq/boost" };
        let mut script = "#!/bin/sh\nexec unshare --mount sh -c '".to_owned();
        for folder in hidden {
            fs::create_dir_all(lab.path(folder)).unwrap();
            let here = lab.path(folder);
            script.push_str(&format!("mount --bind {} {CPU}/{folder} && ", here.display()));
        }
        script.push_str("exec \"$0\" \"$@\"' ");
        script.push_str(&format!("{} \"$@\"\n", binary().display()));
        if !settings.is_empty() {
            let on = if turbo.ends_with("boost") { "1\n" } else { "0\n" };
            files.push((lab.path(turbo), on.to_owned()));
        }
        let knobs = files.into_iter().map(|(path, text)| {
            fs::write(&path, text).unwrap();
            Saved::of(&path)
        });
        let knobs = knobs.collect();
        Some(Self {
            lab,
            program: lab.program(lab.file("script", script), "clocked"),
            turbo,
            knobs,
        })
    }

    fn start(&self, words: &[&str]) -> Live {
        Live::start_as(&self.program, self.lab, words)
    }

    fn measure(&self, name: &str, case: &str) -> Ended {
        let suite = self.lab.suite(&[case]);
        self.start(&["run", "--wait", "--suite", &suite, "-o", name]).end()
    }

    /// A run in the middle of a case, with all settings as that wants them.
    fn endless(&self, run: &str) -> Live {
        let suite = self.lab.suite(&[ENDLESS]);
        let mut live = self.start(&["run", "--suite", &suite, "-o", run]);
        live.case();
        let off = if self.turbo.ends_with("boost") { "0" } else { "1" };
        let now: Vec<String> = self.knobs.iter().map(Saved::now).collect();
        assert_eq!(now, ["performance", "performance", off]);
        live
    }

    fn is_back(&self) {
        self.knobs.iter().for_each(Saved::is_back);
        all_is_over();
    }
}

#[test]
fn every_governor_and_turbo_are_set_for_their_case_and_put_back() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(clocked) = Clocked::new(&lab, &SETTINGS) else { return };
    let suite = lab.suite(&[STEADY]);
    let dry = clocked.start(&["run", "--suite", &suite, "--dry-run"]).end();
    let governor = format!("{CPU}/cpufreq/policy0/scaling_governor and 1 more = performance");
    dry.exits(0).shows(&[
        "settings that would be changed for their cases and put back:",
        &governor,
        &format!("{CPU}/{} = ", clocked.turbo),
    ]);
    clocked.is_back();
    clocked.measure("run", STEADY).exits(0);
    clocked.is_back();
    let records = lab.records("run");
    let steady = measured(&records[0]);
    assert!(steady.is_valid());
    let claims: Vec<_> =
        steady.witness.iter().filter(|claim| claim.is(Check::FrequencyInForce)).collect();
    assert_eq!(claims.len(), 2, "{claims:?}");
    // They are what the machine has for others, not what the case had.
    let governor = records[0].host.settings["governor"].as_str();
    assert_eq!(governor, Some("powersave,schedutil"));
    let warned = |of: &str| steady.warnings.iter().any(|warning| warning.contains(of));
    assert!(!warned("governor") && !warned("turbo"), "{:?}", steady.warnings);
    // A suite that says nothing of it is told from outside, and one that asks for nothing warned.
    let plain = lab.suite(&["fault/latency size=1m rounds=2"]);
    let words = ["run", "--suite", &plain, "--governor", "performance", "-o", "flags"];
    clocked.start(&words).end().exits(0);
    assert_eq!(lab.records("flags")[0].case.get("governor"), Some("performance"));
    clocked.measure("plain", "fault/latency size=1m rounds=2").exits(0);
    let records = lab.records("plain");
    let warnings = &measured(&records[0]).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("governor is")), "{warnings:?}");
    clocked.is_back();
}

#[test]
fn governors_and_turbo_are_back_after_the_whole_process_group_was_killed() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(clocked) = Clocked::new(&lab, &SETTINGS) else { return };
    let run = clocked.endless("run");
    run.kill_group();
    assert_eq!(run.end().code, None, "it was killed");
    for knob in &clocked.knobs {
        knob.becomes(knob.found());
    }
    clocked.is_back();
}

#[test]
fn governors_that_a_run_and_its_watchdog_left_are_put_back_on_request() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(clocked) = Clocked::new(&lab, &SETTINGS) else { return };
    left_unattended(clocked.endless("run"));
    assert!(clocked.knobs.iter().all(|knob| knob.now() != knob.found()));
    let left = ["a killed run left changed", "policy10/scaling_governor", clocked.turbo];
    clocked.start(&["doctor"]).end().exits(0).shows(&left);
    clocked.start(&["doctor", "--restore"]).end().exits(0).shows(&left[1..]);
    clocked.is_back();
}

#[test]
fn a_governor_that_somebody_else_changes_meanwhile_makes_the_record_invalid_and_stays() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(clocked) = Clocked::new(&lab, &SETTINGS) else { return };
    let suite = lab.suite(&["fault/latency governor=performance size=16m rounds=40"]);
    let (run, case) = Live::halted(|| {
        let _ = fs::remove_dir_all(lab.path("run"));
        clocked.start(&["run", "--wait", "--suite", &suite, "-o", "run"])
    });
    fs::write(lab.path("cpufreq/policy10/scaling_governor"), "schedutil\n").unwrap();
    signal("CONT", case);
    run.end().exits(6);
    let records = lab.records("run");
    let measured = measured(&records[0]);
    let is_told = |warning: &String| warning.contains("policy10/scaling_governor");
    assert!(measured.warnings.iter().any(is_told), "{:?}", measured.warnings);
    let claim = measured.witness.iter().find(|claim| claim.is(Check::FrequencyInForce)).unwrap();
    assert!(!claim.holds && claim.claim.ends_with("performance"), "{claim:?}");
    assert_eq!(clocked.knobs[1].now(), "schedutil", "what somebody else wrote stays");
    clocked.knobs[0].is_back();
}

#[test]
fn what_a_machine_does_not_have_is_skipped_with_what_to_do() {
    let Some(_machine) = Machine::as_root() else { return };
    for (settings, case, cure) in [
        (&[][..], "governor=performance", "kernel governs the frequency"),
        (&[], "turbo=off", "whose kernel has the switch"),
        (&SETTINGS, "governor=ondemand", "choose among performance, powersave, schedutil"),
        (&[("policy0", "userspace")], "governor=powersave", "could not be put back"),
    ] {
        let lab = Lab::new();
        let Some(clocked) = Clocked::new(&lab, settings) else { return };
        let ended = clocked.measure("run", &format!("fault/latency {case} size=1m rounds=2"));
        ended.exits(4).shows(&[cure]);
        lacked(&lab.records("run")[0]);
        clocked.is_back();
    }
}

#[test]
fn doctor_says_what_there_is_and_who_asks_for_it() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(clocked) = Clocked::new(&lab, &SETTINGS) else { return };
    let shown = clocked.start(&["doctor"]).end();
    shown.exits(0).shows(&[
        "lack the frequency governor performance on every processor cure echo performance | sudo \
         tee /sys/devices/system/cpu/cpufreq/policy0/scaling_governor \
         /sys/devices/system/cpu/cpufreq/policy10/scaling_governor",
        "fault/latency --governor performance",
        "fault/throughput --turbo off",
    ]);
}
