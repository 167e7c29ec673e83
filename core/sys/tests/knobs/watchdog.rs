//! The watchdog: what it survives, and that nothing is changed without it.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::Stdio,
};

use pagelab_sys::{
    knobs::{KnobError, Knobs, WATCHDOG_COMMAND, watchdog_command},
    machine::proc,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{Machine, PART, ROOT, child, run_that_has_set, until};

#[test]
fn sigkill_of_the_whole_process_group_puts_the_knobs_back() {
    let machine = Machine::new();
    let mut run = run_that_has_set(&machine);
    kill_process_group(Pid::from_child(&run), Signal::KILL).unwrap();
    run.wait().unwrap();
    until("the knobs are back", || machine.read("thp") == "madvise" && machine.read("pool") == "0");
    let knobs = machine.acquire_soon();
    assert_eq!(knobs.take_warnings(), Vec::<String>::new(), "the watchdog left nothing");
}

#[test]
fn what_ends_a_run_politely_does_not_end_its_watchdog() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let machine = Machine::new();
        let mut run = run_that_has_set(&machine);
        // A terminal signals the group, a service manager each process.
        kill_process(watchdog_of(&machine), signal).unwrap();
        kill_process_group(Pid::from_child(&run), signal).unwrap();
        // A shell starts its background jobs with SIGINT and SIGQUIT ignored, and so these tests.
        run.kill().unwrap();
        run.wait().unwrap();
        until("the knobs are back", || {
            machine.read("thp") == "madvise" && machine.read("pool") == "0"
        });
        // The watchdog is done with its files, which go with the machine.
        drop(machine.acquire_soon());
    }
}

#[test]
fn without_a_living_watchdog_nothing_is_changed() {
    let machine = Machine::new();
    let dies = child("watchdog that dies", machine.root.path());
    let refused = Knobs::acquire(&machine.place(), "test", dies).unwrap_err();
    assert!(refused.to_string().contains("did not start: exit status: 9"), "{refused}");

    let knobs = machine.acquire("test").unwrap();
    kill_process(watchdog_of(&machine), Signal::KILL).unwrap();
    until("its death is noticed", || match knobs.set(machine.knob("thp"), "always") {
        Err(KnobError::Watchdog { .. }) => true,
        other => {
            drop(other);
            false
        }
    });
    assert_eq!(machine.read("thp"), "madvise");
}

/// The watchdog over this machine, found by its environment.
fn watchdog_of(machine: &Machine) -> Pid {
    let wanted = [format!("{PART}=watchdog"), format!("{ROOT}={}", machine.root.path().display())];
    let found = proc::with_environment(&wanted);
    Pid::from_raw(found.first().expect("a watchdog runs").cast_signed()).unwrap()
}

#[test]
fn the_watchdog_does_nothing_when_it_was_started_by_hand() {
    let machine = Machine::new();
    machine.write_journal(&(machine.line(1, "thp", "never", "madvise") + "\n"));
    // All is as pagelab does it, but for the lock.
    let (line, its_end) = UnixStream::pair().unwrap();
    let mut by_hand = child("watchdog", machine.root.path());
    by_hand.stdin(OwnedFd::from(its_end)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut by_hand = by_hand.spawn().unwrap();
    drop(line);
    assert_eq!(by_hand.wait().unwrap().code(), Some(2));
    assert_eq!(machine.read("thp"), "madvise");
}

#[test]
fn our_watchdog_is_this_program_with_a_hidden_sub_command() {
    let command = watchdog_command(Path::new("/run/pagelab"));
    let arguments: Vec<_> = command.get_args().collect();
    assert_eq!(arguments, [WATCHDOG_COMMAND, "/run/pagelab"]);
}
