//! Which files are settings, and what a value does that is only tried.

use std::{fs, os::unix::fs::PermissionsExt};

use pagelab_sys::knobs::{KnobError, Knobs, Place};

use crate::{Machine, child};

#[test]
fn a_setting_can_be_written_and_read_back() {
    let machine = Machine::new();
    let place = machine.place();
    for (mode, why) in
        [(0o644, ""), (0o600, ""), (0o444, "can be read only"), (0o200, "cannot be read back")]
    {
        fs::set_permissions(machine.knob("pool"), fs::Permissions::from_mode(mode)).unwrap();
        let found = place.setting(&machine.knob("pool"));
        match found {
            Ok(path) => assert_eq!((path, why), (machine.knob("pool").canonicalize().unwrap(), "")),
            Err(error) => {
                assert!(matches!(error, KnobError::Unsuitable { .. }), "{mode:o}: {error}");
                assert!(!why.is_empty() && error.to_string().contains(why), "{mode:o}: {error}");
            }
        }
    }
}

#[test]
fn a_value_that_is_tried_is_put_back_and_one_that_is_not_kept_is_told() {
    let machine = Machine::new();
    let knobs = machine.acquire("a trial").unwrap();
    knobs.try_out(&machine.knob("thp"), "always").unwrap();
    assert_eq!(machine.read("thp"), "madvise");
    // The file keeps it, but nobody reads the blank at its end back.
    let error = knobs.try_out(&machine.knob("thp"), "always ").unwrap_err();
    assert!(matches!(error, KnobError::Unsuitable { .. }), "{error}");
    assert!(error.to_string().contains(r#"holds "always" after "always ""#), "{error}");
    assert_eq!(machine.read("thp"), "madvise");
}

#[test]
fn governors_and_turbo_are_settings_that_are_put_back() {
    let machine = Machine::new();
    let cpu = "sys/devices/system/cpu";
    let files = [
        (format!("{cpu}/cpufreq/policy0/scaling_governor"), "powersave", "performance"),
        (format!("{cpu}/cpufreq/policy1/scaling_governor"), "schedutil", "performance"),
        (format!("{cpu}/intel_pstate/no_turbo"), "0", "1"),
    ];
    for (file, old, _) in &files {
        let path = machine.knob(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{old}\n")).unwrap();
    }
    let knobs = machine.acquire("a steady clock").unwrap();
    let set = |(file, _, new): &(String, &str, &str)| knobs.set(machine.knob(file), new).unwrap();
    let guards: Vec<_> = files.iter().map(set).collect();
    for (file, _, new) in &files {
        assert_eq!(machine.read(file), *new);
    }
    drop(guards);
    for (file, old, _) in &files {
        assert_eq!(machine.read(file), *old);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_told_by_what_failed() {
    let machine = Machine::new();
    let long = machine.root.path().join("x".repeat(300));
    let place = Place::at(long).with_root(machine.root.path());
    let error = Knobs::acquire(&place, "nobody", child("watchdog", machine.root.path()));
    let error = error.unwrap_err();
    assert!(error.to_string().contains("mkdir"), "{error}");
}
