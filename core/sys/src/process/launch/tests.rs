//! Programs that are started, watched, and ended.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use super::*;
use crate::counts::perf::{Body, Callers, Event, Plan, Session, Source, Target, When};

fn finish(mut running: Running) -> Ended {
    loop {
        if let Some(ended) = running.wait(Duration::from_secs(1)).unwrap() {
            return ended;
        }
    }
}

#[test]
fn what_cannot_be_started_is_an_error() {
    let _alone = crate::alone();
    let waiting = Waiting::prepare(Command::new("/no/such/program")).unwrap();
    assert_eq!(waiting.go().unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn the_end_of_a_program_is_told_with_what_it_used() {
    let _alone = crate::alone();
    let mut command = Command::new("sh");
    command.args(["-c", "exit 7"]);
    let ended = finish(Waiting::prepare(command).unwrap().go().unwrap());
    assert_eq!((ended.status.code(), ended.signal()), (Some(7), None));
    assert!(ended.usage.minor_faults > 0);
    let mut command = Command::new("sh");
    command.args(["-c", "kill -9 $$"]);
    let ended = finish(Waiting::prepare(command).unwrap().go().unwrap());
    assert_eq!(ended.signal(), Some(9));
}

#[test]
fn a_program_that_nobody_watches_is_started_at_once_as_a_shell_would() {
    let _alone = crate::alone();
    let start = |program: &str| Running::start(&mut Command::new(program));
    assert_eq!(start("/no/such/program").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(finish(start("false").unwrap()).status.code(), Some(1));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "exit 5\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let ended = finish(Running::start(&mut Command::new(&script)).unwrap());
    assert_eq!(ended.status.code(), Some(5));
    assert!(ended.usage.minor_faults > 0);
}

#[test]
fn a_program_that_nobody_lets_go_is_no_program() {
    let _alone = crate::alone();
    let Waiting { go, spawn, .. } = Waiting::prepare(Command::new("true")).unwrap();
    drop(go);
    assert!(spawn.join().unwrap().is_err());
}

fn source(event: Event, mappings: bool, ring_bytes: usize) -> Source {
    Source {
        when: When::Always,
        event,
        callers: Callers::Chain,
        mappings,
        ring_bytes,
        required: true,
    }
}

/// A shell that starts shells, and a session that watches it.
#[expect(clippy::print_stderr, reason = "a skip says so")]
fn watched(script: &str, sources: Vec<Source>) -> Option<(Waiting, Session)> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let waiting = Waiting::prepare(command).unwrap();
    let plan = Plan { target: Target::OnExec(waiting.pid()), sources };
    match Session::open(&plan) {
        Ok(session) => Some((waiting, session)),
        Err(error) => {
            eprintln!("skipped: {error}; to run it: sudo sysctl kernel.perf_event_paranoid=2");
            None
        }
    }
}

#[test]
fn a_session_tells_every_fault_of_a_program_from_its_first_instruction() {
    let _alone = crate::alone();
    let sources =
        vec![source(Event::MinorFaults, false, 256 << 10), source(Event::Nothing, true, 256 << 10)];
    let Some((waiting, mut session)) = watched("sh -c : ; :", sources) else { return };
    let pid = waiting.pid();
    let ended = finish(waiting.go().unwrap());
    let mut records = Vec::new();
    let told = session.stop(&mut |record| records.push(record)).unwrap();
    assert_eq!(told[0].samples + told[0].lost.unwrap_or(0), told[0].counted, "{told:?}");
    assert!(told[0].counted > 20 && told[0].counted <= ended.usage.minor_faults, "{told:?}");
    assert!(records.is_sorted_by_key(|record| record.time_ns));
    let samples =
        |record: &&crate::counts::perf::Record| matches!(record.body, Body::Sample { .. });
    assert!(records.iter().filter(samples).any(|record| record.pid == pid));
    assert!(records.iter().filter(samples).any(|record| record.pid != pid), "inherited");
    let is_exec = |body: &Body| matches!(body, Body::Name { name, exec: true } if name == "sh");
    assert!(records.iter().any(|record| is_exec(&record.body)));
    let is_heap = |body: &Body| matches!(body, Body::Map(map) if map.name.contains("anon"));
    assert!(records.iter().any(|record| is_heap(&record.body)));
}

#[test]
fn what_a_full_ring_had_no_room_for_is_counted() {
    let _alone = crate::alone();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sh -c : ; done";
    let sources = vec![source(Event::MinorFaults, false, 1)];
    let Some((waiting, mut session)) = watched(script, sources) else { return };
    finish(waiting.go().unwrap());
    let told = session.stop(&mut |_| ()).unwrap()[0];
    assert!(told.samples < told.counted, "{told:?}");
    if let Some(lost) = told.lost {
        assert_eq!(told.samples + lost, told.counted, "{told:?}");
        assert!(told.lost_told <= lost);
    }
}
