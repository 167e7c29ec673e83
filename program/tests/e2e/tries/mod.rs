//! `pagelab try`: programs that take larger pages, that do not, and that do not run well.

mod advised;
mod attached;
mod fitted;
mod odd;
mod own;
mod preloaded;
mod undisturbed;

use std::{collections::BTreeMap, fs, path::Path};

use pagelab_record::{
    Data, Record,
    vocabulary::{Check, tried},
};
use pagelab_sys::{counts::reports_free_pages, knobs::memcg, machine::Tree};

use crate::{
    explain::compiled,
    support::{
        Ended, Lab, Live, Machine, Saved, failure, is_root, is_skipped, lacked, measured,
        put_together, signal, skip, until,
    },
};

/// The last record of each rung.
pub(crate) fn rungs(lab: &Lab, run: &str) -> BTreeMap<String, Record> {
    let records = lab.records(run).into_iter();
    let named = records.filter_map(|record| Some((record.case.get("rung")?.to_owned(), record)));
    named.collect()
}

/// The values of a series of a rung, round by round.
fn values(record: &Record, name: &str) -> Vec<u64> {
    let series = measured(record).series.iter().filter(|series| series.name == name);
    let value = series.map(|series| match &series.data {
        Data::Values(values) => values[0],
        other => panic!("{other:?}"),
    });
    value.collect()
}

/// Whether the last look at a rung was at a program that held some of its memory.
fn is_seen(record: &Record) -> bool {
    let tables = measured(record).tables.iter();
    let mappings = tables.filter(|table| table.name.starts_with(tried::MAPPING));
    mappings.filter_map(|table| table.cell("resident")).sum::<i64>() >= 8 << 20
}

/// Whether a look could read what its pages are, which may come too late for a program that ends.
fn is_known(record: &Record) -> bool {
    !is_root() || measured(record).series.iter().any(|series| series.name == tried::LARGE)
}

/// Tries until these rungs had every huge page that they asked for and a look came while they held
/// their memory, or one is skipped. On a busy machine a program may end before a look.
fn seen(
    lab: &Lab,
    of: &[&str],
    mut run: impl FnMut() -> Ended,
) -> (Ended, BTreeMap<String, Record>) {
    until("a look while memory is held", || {
        let _ = fs::remove_dir_all(lab.path("run"));
        let ended = run();
        let rungs = rungs(lab, "run");
        let mut records = of.iter().map(|name| &rungs[*name]);
        let is_good = records.clone().any(is_skipped)
            || records.all(|record| {
                let lacks = measured(record).counters.get(tried::FALLBACKS).is_some_and(|n| *n > 0);
                if lacks {
                    put_together();
                }
                !lacks && is_seen(record) && is_known(record)
            });
        is_good.then_some((ended, rungs))
    })
}

/// Whether a process runs that this test started. The number of one that ended may be given to
/// another process; that one is in another directory.
fn goes_on(lab: &Lab, pid: u32) -> bool {
    let directory = fs::canonicalize(lab.path(".")).unwrap();
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
}

/// Without the run that is watched, and the prices of its faults.
const ALONE: &str = "--no-prediction";

/// Tries a program on some rungs that need no setting of the machine.
pub(crate) fn tried(lab: &Lab, rungs: &str, words: &[&str]) -> Ended {
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", rungs, "--"];
    lab.pagelab(&[&flags[..], words].concat())
}

const MIB: u64 = 1 << 20;

#[test]
fn malloc_takes_huge_pages_and_base_pages_are_all_that_plain_has() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "random") else { return };
    let program = program.to_str().unwrap();
    let words = [program, "64", "20000000"];
    let (ended, rungs) =
        seen(&lab, &[tried::PLAIN, "malloc-thp"], || tried(&lab, "malloc-thp,collapse", &words));
    ended.exits(0).shows(&["Larger pages for", "plain", "as-set-up", "malloc-thp"]);
    let plain = &rungs[tried::PLAIN];
    assert!(measured(plain).is_valid(), "{:?}", measured(plain).witness);
    assert!(values(plain, tried::MINOR_FAULTS).iter().all(|faults| *faults >= 64 * 256));
    // As much as it holds, where a host may have it.
    let warmed = values(plain, tried::WARMED);
    assert_eq!(warmed.len(), if reports_free_pages() { 2 } else { 0 });
    // A host that takes too long for it is not waited for.
    if measured(plain).counters.get(tried::WARMED_IN_PART).is_none_or(|runs| *runs == 0) {
        assert!(warmed.iter().all(|bytes| *bytes >= 64 * MIB), "{warmed:?}");
    }
    assert!(values(plain, tried::PEAK).iter().all(|peak| (64..80).contains(&(peak / MIB))));
    let malloc = &rungs["malloc-thp"];
    if is_skipped(malloc) {
        return skip("malloc has no tunable, or nobody may have huge pages here", "glibc 2.35");
    }
    assert!(values(plain, tried::LARGE).iter().all(|large| *large == 0));
    assert!(values(malloc, tried::LARGE).iter().any(|large| *large >= 2 * MIB), "{malloc:?}");
    assert!(values(malloc, tried::MINOR_FAULTS).iter().all(|faults| *faults < 64 * 64));
    // The same program says the same, whatever its pages.
    let said = |record: &Record| measured(record).counters[tried::OUTPUT_DIGEST];
    assert_eq!(said(plain), said(malloc));
    ended.shows(&["Its output was the same in every run."]);
}

#[test]
fn a_program_that_fails_on_one_rung_is_that_rungs_failure_with_its_last_words() {
    let lab = Lab::new();
    let script =
        "case $GLIBC_TUNABLES in *hugetlb=1*) echo no such luck >&2; exit 4;; esac; exit 3";
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp"];
    // As set up it ends with 3, and so it may.
    let ended = lab.pagelab(&[&flags[..], &["--exit", "3", "--", "sh", "-c", script]].concat());
    let rungs = rungs(&lab, "run");
    if is_skipped(&rungs["malloc-thp"]) {
        return skip("sh is not of glibc, or nobody may have huge pages", "a glibc with tunables");
    }
    ended.exits(1).shows(&["no such luck"]);
    let why = failure(&rungs["malloc-thp"]);
    assert!(why.contains("exited with 4") && why.contains("it exited with 3"), "{why}");
    assert_eq!(measured(&rungs[tried::PLAIN]).counters[tried::EXIT], 3);
}

#[test]
fn what_a_program_leaves_behind_is_ended_and_counted() {
    let lab = Lab::new();
    let script = "sleep 1000 & echo $! >> pids";
    tried(&lab, "malloc-thp", &["sh", "-c", script]).exits(0);
    assert!(measured(&rungs(&lab, "run")[tried::PLAIN]).counters[tried::LEFT] >= 2);
    let pids = fs::read_to_string(lab.path("pids")).unwrap();
    let mut pids = pids.lines().map(|pid| pid.parse().unwrap());
    assert!(pids.all(|pid| !goes_on(&lab, pid)));
}

#[test]
fn the_first_answer_comes_behind_the_screen_and_before_what_faults_cost() {
    let lab = Lab::new();
    let flags = ["try", "-o", "run", "--rounds", "3", "--rung", "malloc-thp"];
    let ended = lab.pagelab(&[&flags[..], &["--", "sh", "-c", "exit 0"]].concat());
    ended.exits(0);
    let at = |text: &str| ended.stderr.find(text).unwrap_or_else(|| panic!("{}", ended.stderr));
    let answer = at("[first answer] time relative to what is set up, 2 rounds, not sure yet: ");
    assert!(ended.stderr[answer..].lines().next().unwrap().contains("plain"));
    assert!(at("[watched run]") < at("[round 1 of 3") && at("[round 2 of 3") < answer);
    assert!(answer < at("[round 3 of 3"));
    match ended.stderr.find("[1/") {
        Some(price) => assert!(answer < price && price < at("[round 3 of 3")),
        None => skip("nothing was priced: nobody may watch", "kernel.perf_event_paranoid=2"),
    }
}

#[test]
fn a_budget_runs_the_essential_two_and_lists_the_others() {
    let lab = Lab::new();
    // No time at all: what is left is what there would be no answer without.
    let flags = ["try", "-o", "run", "--budget", "1", "--rung", "malloc-thp,malloc-keep"];
    let ended = lab.pagelab(&[&flags[..], &["--", "sh", "-c", "sleep 0.6"]].concat());
    ended.exits(0).complains(&["[watched run] left out", "[estimate]"]);
    let records = rungs(&lab, "run");
    let ran = records
        .values()
        .filter(|record| !is_skipped(record) && !values(record, tried::ELAPSED).is_empty());
    assert_eq!(ran.count(), 2);
    assert_eq!(values(&records[tried::AS_SET_UP], tried::ELAPSED).len(), 1);
    let plain = measured(&records[tried::PLAIN]);
    assert!(plain.counters.contains_key(pagelab_record::asked::Rung::UNTRIED_NS));
    ended.shows(&["Not tried: plain"]);
}

#[test]
fn a_program_reads_its_file_from_the_beginning_each_time() {
    let lab = Lab::new();
    let text = lab.file("text", "b\na\n");
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp"];
    let input = ["--input", text.to_str().unwrap(), "--", "sort"];
    lab.pagelab(&[&flags[..], &input[..]].concat()).exits(0);
    for rung in [tried::PLAIN, tried::AS_SET_UP] {
        assert_eq!(fs::read_to_string(lab.path(format!("run/{rung}.stdout"))).unwrap(), "a\nb\n");
        assert_eq!(measured(&rungs(&lab, "run")[rung]).counters[tried::OUTPUT_STEADY], 1);
    }
}

#[test]
fn a_rung_that_changes_the_output_fails_where_that_was_asked() {
    let lab = Lab::new();
    let script = "case $GLIBC_TUNABLES in *hugetlb=1*) echo other;; *) echo same;; esac";
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp"];
    let tried = |flag: &[&str]| {
        let ended = lab.pagelab(&[&flags[..], flag, &["--", "sh", "-c", script]].concat());
        let rungs = rungs(&lab, "run");
        fs::remove_dir_all(lab.path("run")).unwrap();
        (ended, rungs)
    };
    let (ended, rungs) = tried(&["--same-output"]);
    if is_skipped(&rungs["malloc-thp"]) {
        return skip("sh is not of glibc, or nobody may have huge pages", "a glibc with tunables");
    }
    ended.exits(1).shows(&["its output is not that of the first run"]);
    let (ended, _) = tried(&[]);
    ended.exits(0).shows(&["its output is another than with base pages: malloc-thp"]);
}

/// A program with temporary arrays, which malloc maps anew each time, linked with some flags.
fn temporaries(lab: &Lab, name: &str, flags: &[&str]) -> Option<String> {
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
                int main(void) { unsigned sum = 0; for (int i = 0; i < 16; i++) {\n\
                size_t n = 48u << 20; unsigned char *p = malloc(n); memset(p, i, n);\n\
                for (size_t at = 0; at < n; at += 64) sum += p[at]; free(p); }\n\
                printf(\"%u\\n\", sum); return 0; }\n";
    let source = lab.file(&format!("{name}.c"), text);
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-O1", "-o"]).arg(lab.path(name)).arg(source).args(flags).status();
    built.is_ok_and(|status| status.success()).then(|| format!("./{name}"))
}

/// Sixteen arrays of 48 MiB are faulted once where malloc keeps them, whatever `/proc/PID/environ`
/// shows of the tunables.
fn is_kept(lab: &Lab, program: &str) {
    let run = || tried(lab, "malloc-keep,populate", &[program]);
    let (ended, rungs) = seen(lab, &[tried::PLAIN, "malloc-keep"], run);
    ended.exits(0);
    let keep = &rungs["malloc-keep"];
    assert!(!ended.stdout.contains("did not take: malloc-keep"), "{}", ended.stdout);
    assert_eq!(measured(keep).counters[tried::STRIPPED], 0);
    let faults = |record| values(record, tried::MINOR_FAULTS);
    assert!(faults(&rungs[tried::PLAIN]).iter().all(|faults| *faults >= 16 * 48 * 256));
    assert!(faults(keep).iter().all(|faults| *faults < 2 * 48 * 256), "{:?}", faults(keep));
}

#[test]
fn memory_that_malloc_keeps_is_faulted_once() {
    let lab = Lab::new();
    let Some(program) = temporaries(&lab, "dynamic", &[]) else {
        return skip("there is no C compiler", "apt-get install gcc");
    };
    tried(&lab, "malloc-keep", &[&program]).exits(0);
    if is_skipped(&rungs(&lab, "run")["malloc-keep"]) {
        return skip("programs are not of glibc here", "a system of glibc");
    }
    is_kept(&lab, &program);
}

#[test]
fn a_static_program_has_the_tunables_of_the_glibc_in_it_and_no_library() {
    let lab = Lab::new();
    let Some(program) = temporaries(&lab, "fixed", &["-static"]) else {
        return skip("nothing can be linked statically here", "apt-get install libc6-dev");
    };
    let ended = tried(&lab, "malloc-keep,populate", &[&program]);
    ended.exits(0).shows(&["skipped", "linked dynamically"]);
    let rungs = rungs(&lab, "run");
    lacked(&rungs["populate"]);
    if is_skipped(&rungs["malloc-keep"]) {
        return skip("what is linked statically has no glibc here", "a system of glibc");
    }
    is_kept(&lab, &program);
}

#[test]
fn a_static_program_without_glibc_has_no_tunables_and_is_told_what_it_can_have() {
    let lab = Lab::new();
    let text = "void _start(void) { long end = 60, none = 0;\n\
                __asm__ volatile(\"syscall\" :: \"a\"(end), \"D\"(none)); }\n";
    let source = lab.file("bare.c", text);
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-O1", "-static", "-nostdlib", "-o"]).arg(lab.path("bare")).arg(source);
    if !built.status().is_ok_and(|status| status.success()) {
        return skip("nothing can be linked statically here", "apt-get install gcc");
    }
    tried(&lab, "malloc-thp", &["./bare"]).exits(0).shows(&["collapse", "skipped"]);
    lacked(&rungs(&lab, "run")["malloc-thp"]);
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_runs() {
    let lab = Lab::new();
    tried(&lab, "no-such-rung", &["true"]).exits(2).complains(&["no-such-rung", "malloc-thp"]);
    tried(&lab, "malloc-thp", &["./no-such-program"]).exits(2).complains(&["no-such-program"]);
    lab.pagelab(&["try"]).exits(2);
    let flags = ["try", "-q", "-o", "run", "--input", "no-such-file", "--", "cat"];
    lab.pagelab(&flags).exits(2).complains(&["no-such-file"]);
    assert!(!lab.path("run").exists());
}

#[test]
fn an_interrupt_ends_the_program_and_keeps_what_was_seen() {
    let lab = Lab::new();
    let words =
        ["try", ALONE, "-o", "run", "--rounds", "4", "--rung", "malloc-thp", "--", "sh", "-c"];
    let script = "echo $$ >> pids; test -f end || test $(wc -l < pids) -lt 6 || sleep 1000";
    let mut run = Live::start(&lab, &[&words[..], &[script]].concat());
    let pids = || fs::read_to_string(lab.path("pids")).unwrap_or_default();
    until("the sixth run of the program", || {
        assert!(run.is_running(), "{}", run.said());
        (pids().lines().count() == 6).then_some(())
    });
    signal("INT", run.pid());
    run.end().exits(130).complains(&["interrupted"]);
    let last: u32 = pids().lines().last().unwrap().parse().unwrap();
    assert!(!goes_on(&lab, last), "it runs on");
    assert!(!values(&rungs(&lab, "run")[tried::PLAIN], tried::ELAPSED).is_empty());
    assert!(lab.path("run/report.html").exists());
    // Whoever goes on keeps the rounds that there are.
    let before = values(&rungs(&lab, "run")[tried::PLAIN], tried::ELAPSED);
    fs::write(lab.path("pids"), "").unwrap();
    lab.file("end", "");
    lab.pagelab(&["resume", "-q", "run"]).exits(0).shows(&["plain", "as-set-up"]);
    let after = values(&rungs(&lab, "run")[tried::PLAIN], tried::ELAPSED);
    assert_eq!(after[..before.len()], before);
    // Of the round that was cut short it may have none.
    assert!((3..=4).contains(&after.len()), "{after:?}");
}

#[test]
fn a_setting_of_a_rung_holds_while_the_program_runs_and_is_put_back() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let path = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    if !path.exists() {
        return skip("there are no transparent huge pages", "CONFIG_TRANSPARENT_HUGEPAGE");
    }
    let enabled = Saved::of(path);
    enabled.becomes("madvise");
    let words = ["sh", "-c", "cat /sys/kernel/mm/transparent_hugepage/enabled"];
    tried(&lab, "thp-always", &words).exits(0);
    assert_eq!(enabled.now(), "madvise");
    let said = |rung: &str| fs::read_to_string(lab.path(format!("run/{rung}.stdout"))).unwrap();
    assert!(said("thp-always").contains("[always]") && said("plain").contains("[madvise]"));
    let record = &rungs(&lab, "run")["thp-always"];
    let mut witness = measured(record).witness.iter();
    assert!(witness.any(|claim| claim.is(Check::SettingInForce) && claim.holds));
}

/// Tries a server, under a client's load.
fn served(lab: &Lab, client: &str, server: &str) -> Ended {
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp"];
    let load = ["--ready", "line:^ready", "--until", client, "--score", "more:rate=rate ([0-9.]+)"];
    let around = ["--setup", "echo up >> around", "--cleanup", "echo down >> around"];
    lab.pagelab(&[&flags[..], &load, &around, &["--", "sh", "-c", server]].concat())
}

#[test]
fn a_server_is_loaded_once_it_is_ready_and_judged_by_what_its_client_says() {
    let lab = Lab::new();
    let server = "sleep 0.1; echo ready > up; echo ready; exec sleep 1000";
    let client = "test -f up && echo rate 99 && echo rate 120.5";
    served(&lab, client, server).exits(0).shows(&["rate", "elapsed", "120"]);
    let rungs = rungs(&lab, "run");
    let plain = &rungs[tried::PLAIN];
    assert_eq!(values(plain, "score/more/rate"), [120_500, 120_500]);
    // It ends because it was asked to, and the client is none of its processes.
    assert_eq!(measured(plain).counters[tried::EXIT], 256 + 15);
    let around = fs::read_to_string(lab.path("around")).unwrap();
    assert!(around.lines().step_by(2).all(|line| line == "up"), "{around}");
    assert_eq!(around.lines().filter(|line| *line == "down").count() * 2, around.lines().count());
}

#[test]
fn a_server_or_client_that_fails_says_why() {
    let lab = Lab::new();
    let ready = "echo ready; exec sleep 1000";
    for (client, server, why) in [
        ("echo no more >&2; exit 3", ready, "no more"),
        ("echo rate 0", ready, "no rate above 0"),
        ("echo rate 1", "echo cannot bind >&2; exit 1", "cannot bind"),
        ("sleep 1000", "echo ready; echo lost it >&2; sleep 0.2", "lost it"),
    ] {
        served(&lab, client, server).exits(2).complains(&[why]);
        fs::remove_dir_all(lab.path("run")).unwrap();
    }
    let words = ["try", "--until", "true", "--", "true"];
    lab.pagelab(&words).exits(2).complains(&["--ready"]);
    for (flag, wrong) in [("--ready", "7777"), ("--score", "rate=x")] {
        let words = ["try", "--until", "true", "--ready", "port:1", flag, wrong, "--", "true"];
        lab.pagelab(&words).exits(2);
    }
}

#[test]
fn a_program_dies_with_whoever_tries_it() {
    let lab = Lab::new();
    let words = ["try", "-q", ALONE, "-o", "run", "--rung", "malloc-thp", "--", "sh", "-c"];
    let script = "sleep 1000 & echo $! > below; echo $$ > pid.new; mv pid.new pid; wait";
    let mut run = Live::start(&lab, &[&words[..], &[script]].concat());
    let number = |name: &str| {
        fs::read_to_string(lab.path(name)).ok().and_then(|text| text.trim().parse::<u32>().ok())
    };
    until("the program", || {
        assert!(run.is_running(), "{}", run.said());
        number("pid")
    });
    let pids = [number("pid").unwrap(), number("below").unwrap()];
    signal("KILL", run.pid());
    until("the end of the program and of what it started", || {
        pids.iter().all(|pid| !goes_on(&lab, *pid)).then_some(())
    });
}

#[test]
fn out_of_memory_at_a_limit_is_that_rungs_result() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "random") else { return };
    if !memcg::is_offered(&Tree::machine()) {
        return skip("no memory controller is mounted here", "mount -t cgroup2");
    }
    let program = program.to_str().unwrap();
    let flags =
        ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp", "--limit"];
    let tried = |limit: &str| {
        let ended = lab.pagelab(&[&flags[..], &[limit, "--", program, "64", "1000"]].concat());
        let rungs = rungs(&lab, "run");
        fs::remove_dir_all(lab.path("run")).unwrap();
        (ended, rungs)
    };
    let (ended, rungs) = tried("24m");
    ended.exits(1);
    assert!(failure(&rungs[tried::PLAIN]).contains("out of memory"), "{rungs:?}");
    let (ended, rungs) = tried("200m");
    ended.exits(0);
    let peaks = values(&rungs[tried::PLAIN], tried::GROUP_PEAK);
    assert!(peaks.iter().all(|peak| (64..200).contains(&(peak / MIB))), "{peaks:?}");
}

#[test]
fn what_explain_predicts_of_a_program_stands_beside_what_came() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "random") else { return };
    // So many loads that whoever looks whose its memory is comes before its end.
    let words = [program.to_str().unwrap(), "64", "5000000"];
    // What is left out of a round is told by its progress.
    let flags = ["try", "--wait", "-o", "run", "--rounds", "2", "--rung", "malloc-thp", "--"];
    let ended = lab.pagelab(&[&flags[..], &words].concat());
    ended.exits(0);
    let records = lab.records("run");
    let watched =
        records.iter().filter(|record| record.workload == pagelab_program::explain::WORKLOAD);
    let [watched] = &watched.collect::<Vec<_>>()[..] else { panic!("one run is watched") };
    if is_skipped(watched) {
        ended.shows(&["no prediction", "kernel.perf_event_paranoid"]);
        return skip("perf is not allowed", "sysctl kernel.perf_event_paranoid=2");
    }
    // Base pages are what it has, and larger ones what is asked about.
    let seen = measured(watched);
    assert!(seen.is_valid(), "{:?}", seen.witness);
    assert!(seen.counters["perf_minor"] >= 64 * 256, "{:?}", seen.counters);
    let mallocs = |table: &&pagelab_record::Table| table.name == "density/anonymous/malloc";
    let density = seen.tables.iter().find(mallocs).unwrap();
    let huge = density.rows.iter().find(|row| row[0] == 2 << 20).unwrap();
    // What had been touched when somebody looked, all or not, is dense but for its ends.
    assert!(huge[1] > 0 && huge[2] + 2 * 512 >= huge[1] * 512, "{huge:?}");
    ended.shows(&["What explain predicted, and what was measured", "malloc-thp"]);
    // The rounds are those of nobody who is watched.
    assert_eq!(values(&rungs(&lab, "run")[tried::PLAIN], tried::ELAPSED).len(), 2);
}
