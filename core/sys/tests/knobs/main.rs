//! Knobs are put back: on drop, on panic, after SIGKILL, and after the watchdog is killed too.
//!
//! The knobs are ordinary files in a temporary directory, except in the one test that needs root.
//! The other processes (the watchdog, a run that is killed) are this same executable: it runs the
//! one test [`a_part_played_by_a_child`] with the part in its environment.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]
#![expect(clippy::print_stderr, reason = "a test that skips says why")]

mod leftovers;
mod lock;
mod settings;
mod watchdog;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use pagelab_sys::{
    knobs::{
        KnobError, Knobs, Outcome, Place, leftovers, patiently, restore_leftovers, watchdog_main,
    },
    machine::{environment::boot_id, thp::HugePages},
};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

const PART: &str = "PAGELAB_TEST_PART";
const ROOT: &str = "PAGELAB_TEST_ROOT";

/// A machine of fake knobs; its lock and journal are beside them.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        fs::write(machine.knob("thp"), "madvise\n").unwrap();
        fs::write(machine.knob("pool"), "0\n").unwrap();
        machine
    }

    fn knob(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn place(&self) -> Place {
        place(self.root.path())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.knob(name)).unwrap().trim().to_owned()
    }

    fn acquire(&self, run: &str) -> Result<Knobs, KnobError> {
        Knobs::acquire(&self.place(), run, child("watchdog", self.root.path()))
    }

    /// Acquires as soon as the lock is free.
    fn acquire_soon(&self) -> Knobs {
        let mut knobs = None;
        until("the lock is free", || {
            knobs = self.acquire("later").ok();
            knobs.is_some()
        });
        knobs.unwrap()
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.root.path().join("lab/knobs.jsonl")).unwrap_or_default()
    }

    fn write_journal(&self, text: &str) {
        let directory = self.root.path().join("lab");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(directory.join("knobs.jsonl"), text).unwrap();
    }

    /// A journal's line about a fake knob.
    fn line(&self, id: u32, name: &str, old: &str, new: &str) -> String {
        line(id, &boot_id(), &self.knob(name), old, new)
    }
}

fn place(root: &Path) -> Place {
    Place::at(root.join("lab")).with_root(root)
}

fn line(id: u32, boot: &str, path: &Path, old: &str, new: &str) -> String {
    let path = path.display();
    let head = format!(r#""id":{id},"boot":"{boot}","pid":1,"path":"{path}""#);
    format!(r#"{{{head},"old":"{old}","new":"{new}","holds":"{new}"}}"#)
}

/// This executable, playing a part.
fn child(part: &str, root: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["a_part_played_by_a_child", "--exact", "--nocapture"])
        .env(PART, part)
        .env(ROOT, root);
    command
}

#[test]
#[expect(clippy::exit, reason = "the exit code is the part's result")]
fn a_part_played_by_a_child() {
    let Some(part) = std::env::var_os(PART) else { return };
    let root = PathBuf::from(std::env::var_os(ROOT).unwrap());
    match part.to_str().unwrap() {
        "watchdog" => std::process::exit(watchdog_main(&place(&root))),
        "watchdog of the machine" => std::process::exit(watchdog_main(&Place::machine())),
        "watchdog that dies" => std::process::exit(9),
        "run" => {
            let knobs =
                Knobs::acquire(&place(&root), "a run to kill", child("watchdog", &root)).unwrap();
            let _pool = knobs.set(root.join("pool"), "8").unwrap();
            let _outer = knobs.set(root.join("thp"), "never").unwrap();
            let _inner = knobs.set(root.join("thp"), "always").unwrap();
            // Nothing here may be what ends this process.
            loop {
                std::thread::park();
            }
        }
        part => panic!("no such part: {part}"),
    }
}

/// Waits for a state, for so long that only a state that never comes is missed.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = clock_gettime(ClockId::Monotonic).tv_sec + 600;
    while !reached() {
        assert!(clock_gettime(ClockId::Monotonic).tv_sec < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A run in a process group of its own that has set its knobs.
fn run_that_has_set(machine: &Machine) -> Child {
    let run = child("run", machine.root.path()).process_group(0).stdout(Stdio::null()).spawn();
    let run = run.unwrap();
    until("the run has set its knobs", || machine.read("thp") == "always");
    run
}

#[test]
fn a_dropped_guard_puts_the_old_value_back_and_leaves_no_journal() {
    let machine = Machine::new();
    let knobs = machine.acquire("test").unwrap();
    let guard = knobs.set(machine.knob("thp"), "always").unwrap();
    assert_eq!(machine.read("thp"), "always");
    assert!(machine.journal().contains(r#""old":"madvise""#));
    drop(guard);
    assert_eq!(machine.read("thp"), "madvise");
    assert_eq!(machine.journal(), "");
    assert_eq!(knobs.take_warnings(), Vec::<String>::new());
}

#[test]
fn a_value_that_the_knob_holds_is_neither_written_nor_journalled() {
    let machine = Machine::new();
    let knobs = machine.acquire("test").unwrap();
    let guard = knobs.set(machine.knob("pool"), "0").unwrap();
    assert_eq!(
        fs::read_to_string(machine.knob("pool")).unwrap(),
        "0\n",
        "the newline is still there"
    );
    assert_eq!(machine.journal(), "");
    assert_eq!(guard.restore(), None);
    let _other = knobs.set(machine.knob("thp"), "always").unwrap();
    let _same = knobs.set(machine.knob("pool"), "0").unwrap();
    assert_eq!(machine.journal().lines().count(), 1, "another knob's change is no reason");
    let _guard = knobs.set(machine.knob("pool"), "8").unwrap();
    assert_eq!(machine.read("pool"), "8");
}

#[test]
fn nested_guards_of_one_knob_may_go_in_any_order() {
    for inner_first in [true, false] {
        let machine = Machine::new();
        let knobs = machine.acquire("test").unwrap();
        let outer = knobs.set(machine.knob("thp"), "never").unwrap();
        let inner = knobs.set(machine.knob("thp"), "always").unwrap();
        let same = knobs.set(machine.knob("thp"), "always").unwrap();
        if inner_first {
            drop(same);
            drop(inner);
            assert_eq!(machine.read("thp"), "never");
            drop(outer);
        } else {
            drop(outer);
            assert_eq!(machine.read("thp"), "always");
            drop(inner);
            assert_eq!(machine.read("thp"), "always", "the last one still wants it");
            drop(same);
        }
        assert_eq!(machine.read("thp"), "madvise");
        assert_eq!(knobs.take_warnings(), Vec::<String>::new());
    }
}

#[test]
fn a_panic_puts_the_knobs_back() {
    let machine = Machine::new();
    let knobs = machine.acquire("test").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _pool = knobs.set(machine.knob("pool"), "8").unwrap();
        let _thp = knobs.set(machine.knob("thp"), "always").unwrap();
        panic!("this panic is part of the test");
    }));
    assert!(panicked.is_err());
    assert_eq!((machine.read("thp"), machine.read("pool")), ("madvise".into(), "0".into()));
}

#[test]
fn a_forgotten_guard_is_put_back_when_the_knobs_end() {
    let machine = Machine::new();
    let knobs = machine.acquire("test").unwrap();
    std::mem::forget(knobs.set(machine.knob("thp"), "never").unwrap());
    std::mem::forget(knobs.set(machine.knob("thp"), "always").unwrap());
    drop(knobs);
    assert_eq!((machine.read("thp"), machine.journal()), ("madvise".into(), String::new()));
    drop(machine.acquire("next").unwrap());
}

#[test]
fn what_someone_else_wrote_since_is_left_alone_with_a_warning() {
    let machine = Machine::new();
    let knobs = machine.acquire("test").unwrap();
    let guard = knobs.set(machine.knob("thp"), "always").unwrap();
    fs::write(machine.knob("thp"), "always madvise [never]\n").unwrap();
    let restored = guard.restore().unwrap();
    assert_eq!(restored.outcome, Outcome::ChangedByOthers { found: "never".into() });
    assert_eq!(machine.read("thp"), "always madvise [never]");
    let warnings = knobs.take_warnings();
    assert!(warnings[0].contains("was left at \"never\""), "{warnings:?}");
    assert_eq!(machine.journal(), "");
}

#[test]
fn what_a_dead_run_and_its_dead_watchdog_left_is_restored_the_latest_first() {
    let machine = Machine::new();
    fs::write(machine.knob("thp"), "always\n").unwrap();
    fs::write(machine.knob("pool"), "8\n").unwrap();
    let journal = [
        machine.line(1, "thp", "madvise", "never"),
        machine.line(2, "pool", "0", "8"),
        machine.line(3, "thp", "never", "always"),
    ];
    machine.write_journal(&(journal.join("\n") + "\n" + r#"{"id":4,"boot":"x","pa"#));
    let left = leftovers(&machine.place());
    assert_eq!(left.len(), 3);
    assert!(left[1].contains("pool was set to \"8\" by a killed run, and was \"0\""), "{left:?}");
    let restored = restore_leftovers(&machine.place()).unwrap();
    assert_eq!(restored.len(), 3);
    assert!(restored.iter().all(|one| one.outcome == Outcome::PutBack), "{restored:?}");
    assert_eq!((machine.read("thp"), machine.read("pool")), ("madvise".into(), "0".into()));
    assert_eq!(machine.journal(), "", "the torn line is gone too");
    assert_eq!(restore_leftovers(&machine.place()).unwrap(), []);
    assert_eq!(leftovers(&machine.place()), [""; 0]);
}

#[test]
fn a_change_that_was_never_read_back_is_undone_whatever_the_knob_holds() {
    let machine = Machine::new();
    // Killed while the kernel was allocating: 8 were asked for, 5 were there.
    fs::write(machine.knob("pool"), "5\n").unwrap();
    let pending = machine.line(1, "pool", "0", "8").replace(r#","holds":"8""#, "");
    machine.write_journal(&(pending + "\n"));
    let knobs = machine.acquire("next").unwrap();
    assert_eq!(machine.read("pool"), "0", "the next run restores before it changes");
    assert!(knobs.take_warnings()[0].contains("was put back"));
}

#[test]
fn the_journal_cannot_make_us_write_what_is_no_knob() {
    let machine = Machine::new();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "new").unwrap();
    std::os::unix::fs::symlink(&victim, machine.knob("link")).unwrap();
    let climbing = machine
        .root
        .path()
        .join("lab/../../")
        .join(victim.strip_prefix(outside.path().parent().unwrap()).unwrap());
    let boot = boot_id();
    let journal = [
        line(1, &boot, &victim, "old", "new"),
        line(2, &boot, &machine.knob("link"), "old", "new"),
        line(3, &boot, &climbing, "old", "new"),
        line(4, &boot, &machine.knob("gone"), "old", "new"),
        line(5, "another boot", &machine.knob("thp"), "never", "madvise"),
    ];
    machine.write_journal(&(journal.join("\n") + "\n"));
    let restored = restore_leftovers(&machine.place()).unwrap();
    let outcomes: Vec<&Outcome> = restored.iter().map(|one| &one.outcome).collect();
    let (refused, gone) = (&Outcome::Refused, &Outcome::Gone);
    assert_eq!(outcomes, [&Outcome::OtherBoot, gone, refused, refused, refused]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "new");
    assert_eq!(machine.read("thp"), "madvise");
    let knobs = machine.acquire("test").unwrap();
    let refused = knobs.set(&victim, "x").unwrap_err();
    assert!(matches!(refused, KnobError::OutOfBounds { .. }), "{refused}");
    // DAMON is somebody else's, by whatever link it is reached.
    let damon = machine.knob("damon");
    fs::create_dir(&damon).unwrap();
    fs::write(damon.join("nr"), "0").unwrap();
    std::os::unix::fs::symlink(damon.join("nr"), machine.knob("alias")).unwrap();
    for path in [damon.join("nr"), machine.knob("alias")] {
        let refused = knobs.set(&path, "1").unwrap_err();
        assert!(matches!(refused, KnobError::Forbidden { .. }), "{refused}");
        assert!(machine.place().setting(&path).is_err());
    }
    assert_eq!(fs::read_to_string(damon.join("nr")).unwrap(), "0");
    assert!(machine.place().setting(&machine.knob("thp")).is_ok());
}

#[test]
fn a_directory_that_others_can_write_is_not_trusted() {
    let machine = Machine::new();
    machine.write_journal("");
    let directory = machine.root.path().join("lab");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(machine.acquire("test"), Err(KnobError::Directory { .. })));
    assert!(matches!(restore_leftovers(&machine.place()), Err(KnobError::Directory { .. })));
}

#[test]
fn a_real_knob_is_set_refuses_nonsense_and_is_left_as_found() {
    let skip = |why: &str| eprintln!("skipped: {why}; to run it: sudo, on Linux 6.8");
    if !rustix::process::geteuid().is_root() {
        return skip("setting a real knob needs root");
    }
    let pages = HugePages::machine();
    let Some(path) = pages.enabled_path(64 << 10) else {
        return skip("this kernel offers no 64 kB transparent huge pages");
    };
    let watchdog = || child("watchdog of the machine", Path::new("/"));
    let acquire = || Knobs::acquire(&Place::machine(), "test", watchdog());
    let limit = Duration::from_secs(600);
    let knobs = patiently(limit, &mut |held| eprintln!("waiting: {held}"), acquire).unwrap();
    // Nobody else may change it from here on.
    let found = fs::read_to_string(&path).unwrap();
    for value in ["madvise", "never", "always", "inherit"] {
        let _guard = match knobs.set(&path, value) {
            Err(KnobError::Denied { path }) => {
                return skip(&format!("{} is read-only here", path.display()));
            }
            guard => guard.unwrap(),
        };
        assert!(fs::read_to_string(&path).unwrap().contains(&format!("[{value}]")), "{value}");
    }
    let refused = knobs.set(&path, "sometimes").unwrap_err();
    assert!(matches!(refused, KnobError::Rejected { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), found);
    drop(knobs);
}
