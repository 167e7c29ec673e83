//! Settings that change while a program is watched.

use crate::support::{Lab, Machine, measured, small_folio};

#[test]
fn nothing_is_said_of_faults_under_settings_that_changed() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let script = format!("echo madvise > {}", folio.path().display());
    let words = ["explain", "-o", "run", "--", "sh", "-c", &script];
    let ended = lab.pagelab(&words);
    let changed = "mthp_enabled.64kB was never, then madvise while the program was watched";
    ended.exits(6).complains(&[changed, "watch it again", "INVALID"]);
    assert!(!ended.stderr.contains("less by") && !ended.stderr.contains(" of its time"));
    let records = lab.records("run");
    assert_eq!(records.len(), 1, "and nothing is priced");
    let mut failed = measured(&records[0]).witness.iter().filter(|claim| !claim.holds);
    assert_eq!(failed.next().map(|claim| claim.id.as_str()), Some("settings-steady"));
}
