//! What a killed run left, looked for before a run and by somebody who only asks.

use std::{fs, os::unix::fs::PermissionsExt};

use pagelab_sys::knobs::{Outcome, leftovers, restore_leftovers, restore_unattended};

use crate::Machine;

#[test]
fn what_a_killed_run_left_is_put_back_before_the_next() {
    let machine = Machine::new();
    let none: [&str; 0] = [];
    assert_eq!(restore_unattended(&machine.place()).unwrap(), none, "nobody was here");
    fs::write(machine.knob("pool"), "8\n").unwrap();
    machine.write_journal(&(machine.line(1, "pool", "0", "8") + "\n"));
    let said = restore_unattended(&machine.place()).unwrap();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("pool was put back from \"8\" to \"0\""), "{said:?}");
    assert_eq!(machine.read("pool"), "0");
    assert_eq!(restore_unattended(&machine.place()).unwrap(), none);
}

#[test]
fn an_empty_journal_keeps_nobody_from_running() {
    let machine = Machine::new();
    machine.write_journal("");
    // Not even where nothing could be put back.
    let lab = machine.root.path().join("lab");
    fs::set_permissions(&lab, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(restore_unattended(&machine.place()).unwrap().is_empty());
    machine.write_journal(&(machine.line(1, "pool", "0", "8") + "\n"));
    fs::set_permissions(&lab, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(restore_unattended(&machine.place()).is_err());
}

#[test]
fn what_a_living_run_has_changed_is_not_left() {
    let machine = Machine::new();
    let knobs = machine.acquire("alive").unwrap();
    let _pool = knobs.set(machine.knob("pool"), "8").unwrap();
    assert!(machine.journal().contains("pool"), "it is journalled");
    assert!(leftovers(&machine.place()).is_empty());
    assert!(restore_unattended(&machine.place()).unwrap().is_empty());
    assert_eq!(machine.read("pool"), "8");
}

#[test]
fn a_knob_that_cannot_be_reached_is_not_taken_for_gone() {
    let machine = Machine::new();
    std::os::unix::fs::symlink(machine.knob("loop"), machine.knob("loop")).unwrap();
    machine.write_journal(&(machine.line(1, "loop", "0", "8") + "\n"));
    let restored = restore_leftovers(&machine.place()).unwrap();
    assert!(matches!(restored[0].outcome, Outcome::Failed { .. }), "{restored:?}");
    assert!(!machine.journal().is_empty(), "it stays to be done");
}

#[test]
fn a_knob_that_does_not_take_its_old_value_again_is_told() {
    let machine = Machine::new();
    fs::write(machine.knob("pool"), "8\n").unwrap();
    // Nobody reads the blank at its end back.
    machine.write_journal(&(machine.line(1, "pool", "0 ", "8") + "\n"));
    let restored = restore_leftovers(&machine.place()).unwrap();
    assert_eq!(restored[0].outcome, Outcome::Short { found: "0".to_owned() });
}
