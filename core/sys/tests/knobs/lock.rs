//! One run holds the knobs: the others are told who, wait for it, or are let in.

use std::{os::unix::process::CommandExt, process::Stdio, time::Duration};

use pagelab_sys::knobs::{Door, KnobError, patiently, restore_leftovers};

use super::{Machine, child, run_that_has_set, until};

#[test]
fn a_second_run_is_told_who_holds_the_knobs_and_disturbs_nothing() {
    let machine = Machine::new();
    let mut run = run_that_has_set(&machine);
    let expected = format!(
        "another pagelab run (pid {}, a run to kill) holds the machine's settings",
        run.id()
    );
    let refused = machine.acquire("second").unwrap_err();
    assert!(matches!(refused, KnobError::Held { pid, .. } if pid == run.id()));
    assert_eq!(refused.to_string(), expected);
    let refused = restore_leftovers(&machine.place()).unwrap_err();
    assert_eq!(refused.to_string(), expected);
    assert_eq!(machine.read("thp"), "always");
    run.kill().unwrap();
    run.wait().unwrap();
    drop(machine.acquire_soon());
    assert_eq!(machine.read("thp"), "madvise");
}

#[test]
fn whoever_waits_hears_once_who_holds_the_knobs_and_gets_them_when_that_ends() {
    let machine = Machine::new();
    let mut run = run_that_has_set(&machine);
    let mut said = Vec::new();
    // Ends once somebody was heard to wait for it.
    let mut tell = |held: &KnobError| {
        said.push(held.to_string());
        run.kill().unwrap();
    };
    let knobs = patiently(Duration::from_secs(600), &mut tell, || machine.acquire("second"));
    run.wait().unwrap();
    assert!(matches!(&said[..], [one] if one.contains("a run to kill")), "{said:?}");
    assert_eq!(machine.read("thp"), "madvise", "the watchdog put it back before the lock was free");
    drop(knobs.unwrap());
}

#[test]
fn nobody_waits_for_the_knobs_longer_than_was_asked() {
    let machine = Machine::new();
    let _first = machine.acquire("first").unwrap();
    for limit in [Duration::ZERO, Duration::from_millis(30)] {
        let refused = patiently(limit, &mut |_| (), || machine.acquire("second"));
        assert!(matches!(refused, Err(KnobError::Held { .. })));
    }
}

#[test]
fn whoever_shuts_the_door_keeps_everybody_out_but_whom_it_lets_in() {
    let machine = Machine::new();
    let door = Door::shut(&machine.place(), "tests").unwrap();
    let refused = machine.acquire("another").unwrap_err();
    assert!(refused.to_string().contains("tests"), "{refused}");
    assert!(matches!(Door::shut(&machine.place(), "more"), Err(KnobError::Held { .. })));
    let mut let_in = child("run", machine.root.path())
        .env(Door::VARIABLE, std::process::id().to_string())
        .process_group(0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the run that was let in has set its knobs", || machine.read("thp") == "always");
    drop(door);
    let refused = Door::shut(&machine.place(), "tests").unwrap_err();
    assert!(refused.to_string().contains("a run to kill"), "{refused}");
    let_in.kill().unwrap();
    let_in.wait().unwrap();
    drop(machine.acquire_soon());
}
