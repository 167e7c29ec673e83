//! A process that runs already: collapsed from outside, and left running.

use std::{
    fs,
    process::{Command, Stdio},
};

use pagelab_record::Record;
use pagelab_sys::memory::outside;

use super::{MIB, compiled, goes_on, rungs, tried, values};
use crate::support::{
    Beside, Ended, Lab, Live, Machine, is_skipped, measured, signal, skip, state, until,
};

/// A program that goes on until the test ends, and has filled memory of its own.
fn server(lab: &Lab) -> Option<Beside> {
    let program = compiled(lab, "maps")?;
    let mut server = Command::new(program);
    server.args(["own", "32", "1000000000"]).stdout(Stdio::null());
    let server = Beside::start(&mut server);
    let resident = || {
        let text = fs::read_to_string(format!("/proc/{}/status", server.pid())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().split(' ').next()?.parse::<u64>().ok()
    };
    until("its memory", || resident().filter(|kib| kib << 10 >= 32 * MIB));
    Some(server)
}

fn attached(lab: &Lab, pid: u32, client: &str, more: &[&str]) -> Ended {
    let pid = pid.to_string();
    let words = ["try", "-o", "run", "--rounds", "4", "--pid", &pid, "--until", client];
    lab.pagelab(&[&words[..], more].concat())
}

#[test]
fn a_process_that_runs_is_collapsed_between_loads_and_goes_on() {
    if let Err(error) = outside::may_collapse() {
        return skip(&format!("{error}"), "sudo, on Linux 6.1 or later");
    }
    // Nobody lets everybody have huge pages meanwhile.
    let _machine = Machine::alone();
    let score = ["--score", "more:rate=rate ([0-9.]+)"];
    // Again, where the kernel had no huge page for all of it.
    let (lab, server, ended) = until("huge pages for a whole process", || {
        let lab = Lab::new();
        let server = server(&lab);
        let pid = server.as_ref().map_or(0, Beside::pid);
        let ended = attached(&lab, pid, "echo x >> loads; sleep 0.1; echo rate 120", &score);
        let refused = |record: &Record| measured(record).counters[tried::REFUSED] > 0;
        let after = rungs(&lab, "run").remove("collapse");
        let is_good = after.is_none_or(|after| is_skipped(&after) || !refused(&after));
        (server.is_none() || is_good).then_some((lab, server, ended))
    });
    let Some(server) = server else { return };
    let pid = server.pid();
    ended.exits(0).shows(&["no turn about", "beside as-set-up", &format!("process {pid} (")]);
    assert!(state(pid).is_some_and(|state| state != 'Z'), "it runs on");
    let rungs = rungs(&lab, "run");
    let [before, after] = [tried::AS_SET_UP, "collapse"].map(|name| &rungs[name]);
    if is_skipped(after) {
        return skip("it has huge pages already", "transparent_hugepage/enabled=madvise");
    }
    // And one that counted for nothing.
    assert_eq!(fs::read_to_string(lab.path("loads")).unwrap().lines().count(), 9);
    assert_eq!(values(before, "score/more/rate"), [120_000; 4]);
    assert!(values(before, tried::LARGE).iter().all(|large| *large < 2 * MIB));
    assert!(values(after, tried::LARGE).iter().all(|large| *large >= 28 * MIB), "{after:?}");
    assert!(measured(after).is_valid() && measured(after).counters[tried::COLLAPSED] >= 14);
    lab.pagelab(&["resume", "run"]).exits(2).complains(&["pagelab try --pid"]);
}

#[test]
fn an_interrupt_ends_the_client_keeps_what_was_seen_and_leaves_the_process_alone() {
    if let Err(error) = outside::may_collapse() {
        return skip(&format!("{error}"), "sudo, on Linux 6.1 or later");
    }
    let lab = Lab::new();
    let Some(server) = server(&lab) else { return };
    let pid = server.pid().to_string();
    let client = "echo $$ >> loads; test $(wc -l < loads) -lt 3 || sleep 1000; sleep 0.1";
    let words = ["try", "-o", "run", "--rounds", "4", "--until", client, "--pid", &pid];
    let mut run = Live::start(&lab, &words);
    let loads = || fs::read_to_string(lab.path("loads")).unwrap_or_default();
    until("the third load", || {
        assert!(run.is_running(), "{}", run.said());
        (loads().lines().count() == 3).then_some(())
    });
    signal("INT", run.pid());
    run.end().exits(130).complains(&["interrupted"]);
    let last: u32 = loads().lines().last().unwrap().parse().unwrap();
    assert!(!goes_on(&lab, last), "the client runs on");
    assert!(state(server.pid()).is_some_and(|state| state != 'Z'), "it runs on");
    let seen = values(&rungs(&lab, "run")[tried::AS_SET_UP], tried::ELAPSED);
    assert_eq!(seen.len(), 1, "the first load counts for nothing, the third did not end");
}

#[test]
fn what_cannot_be_tried_where_it_runs_is_refused_or_said() {
    let lab = Lab::new();
    for (words, why) in [
        (&["--pid", "1"][..], "--until"),
        (&["--pid", "1", "--until", "true", "--", "true"], "--pid"),
        (&["--pid", "1", "--until", "true", "--rung", "code"], "--rung"),
        (&["--pid", "x", "--until", "true"], "--pid"),
    ] {
        lab.pagelab(&[&["try"], words].concat()).exits(2).complains(&[why]);
    }
    if let Err(error) = outside::may_collapse() {
        attached(&lab, std::process::id(), "true", &[]).exits(3).complains(&["sudo"]);
        return skip(&format!("{error}"), "sudo, on Linux 6.1 or later");
    }
    attached(&lab, 4_194_304, "true", &[]).exits(2).complains(&["--pid 4194304", "no such"]);
    assert!(!lab.path("run").exists());
    let Some(mut server) = server(&lab) else { return };
    let pid = server.pid();
    let failed = attached(&lab, pid, "echo no luck; exit 3", &[]);
    failed.exits(2).complains(&["its client failed", "no luck"]);
    fs::remove_dir_all(lab.path("run")).unwrap();
    assert!(state(pid).is_some_and(|state| state != 'Z'), "it runs on");
    signal("KILL", pid);
    server.end();
    attached(&lab, pid, "true", &[]).exits(2).complains(&["no such process"]);
}
