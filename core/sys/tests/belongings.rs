//! What a case owns is removed: on drop, after SIGKILL of the run, after SIGKILL of its watchdog
//! too, and whichever step of making it was the last.
//!
//! The belongings are real (a zram device, a swap file, a memory cgroup), so most tests need root.
//! Lock and journal lie in a temporary directory. Every test compares `/proc/swaps` before and
//! after: swap of others is never touched.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]
#![expect(clippy::print_stderr, reason = "a test that skips says why")]

use std::{
    fs::{self, File},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use pagelab_sys::{
    knobs::{
        Belonging, KnobError, Knobs, Obtained, Outcome, Place, memcg, restore_leftovers, swap,
        watchdog_main, zram,
    },
    machine::{
        Tree,
        environment::boot_id,
        proc::{self, in_use},
        rights,
    },
};
use rustix::{
    process::{Pid, Signal, kill_process, kill_process_group},
    time::{ClockId, clock_gettime},
};
use tempfile::TempDir;

const PART: &str = "PAGELAB_TEST_PART";
const ROOT: &str = "PAGELAB_TEST_ROOT";

const BYTES: u64 = 16 << 20;

/// A place of its own on the real machine, as it was found.
struct Lab {
    root: TempDir,
    swaps: String,
    _turn: File,
}

impl Lab {
    /// Where the tests run as root.
    fn new() -> Option<Self> {
        if !rights::is_root() {
            eprintln!("skipped: devices, swap and cgroups need root; to run it: sudo");
            return None;
        }
        // One test at a time, be they threads or processes.
        let lock = std::env::temp_dir().join("pagelab-belongings.lock");
        let turn = File::options().create(true).append(true).open(lock).unwrap();
        turn.lock().unwrap();
        // Not in a memory file system: a swap file is to lie there.
        let root = tempfile::tempdir_in("/var/tmp").unwrap();
        Some(Self { root, swaps: swaps(), _turn: turn })
    }

    /// What this machine can make.
    fn possible(&self) -> Vec<Belonging> {
        possible(self.root.path())
    }

    fn place(&self) -> Place {
        place(self.root.path())
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.root.path().join("lab/knobs.jsonl")).unwrap_or_default()
    }

    /// A journal with one line about something made, as a run that was killed leaves it.
    fn write_journal(&self, made: &str) {
        let directory = self.root.path().join("lab");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let line = format!(r#"{{"id":1,"boot":"{}","pid":1,{made}}}"#, boot_id());
        fs::write(directory.join("knobs.jsonl"), line + "\n").unwrap();
    }

    fn restore(&self) -> Vec<Outcome> {
        // A process that was killed holds the lock until the kernel has ended it.
        let mut restored = restore_leftovers(&self.place());
        until("the dead have given up the lock", || {
            let is_held = matches!(restored, Err(KnobError::Held { .. }));
            if is_held {
                restored = restore_leftovers(&self.place());
            }
            !is_held
        });
        restored.unwrap().into_iter().map(|one| one.outcome).collect()
    }

    /// Asserts that nothing is left.
    #[track_caller]
    fn is_as_found(&self) {
        assert_eq!(self.journal(), "");
        let now = swaps();
        assert!(!now.contains(&*self.root.path().to_string_lossy()), "{now}");
        assert_eq!(but_of_runs(&now), but_of_runs(&self.swaps));
        let left = fs::read_dir(self.root.path()).unwrap().flatten();
        let names: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert!(names.iter().all(|name| name == "lab"), "{names:?}");
    }
}

fn place(root: &Path) -> Place {
    Place::at(root.join("lab"))
}

fn swaps() -> String {
    fs::read_to_string("/proc/swaps").unwrap_or_default()
}

/// Lines of `/proc/swaps` but for files of runs: those of others come and go meanwhile.
fn but_of_runs(swaps: &str) -> Vec<&str> {
    swaps.lines().filter(|line| !line.contains("/pagelab-swap-")).collect()
}

fn possible(root: &Path) -> Vec<Belonging> {
    let tree = Tree::machine();
    let mut possible = Vec::new();
    if zram::is_offered(&tree) && swap::is_offered(&tree) {
        possible.push(Belonging::Zram { bytes: BYTES, algorithm: None });
    } else {
        eprintln!("skipped: no zram here; to run it: sudo modprobe zram");
    }
    match swap::why_not_in(root, BYTES) {
        None if swap::is_offered(&tree) => {
            possible.push(Belonging::SwapFile { bytes: BYTES, directory: root.to_owned() });
        }
        why => {
            eprintln!("skipped: no swap file here: {why:?}; to run it: a /var/tmp on ext4 or xfs");
        }
    }
    if memcg::is_offered(&tree) {
        possible.push(Belonging::MemoryGroup { limit: BYTES });
    } else {
        eprintln!("skipped: no memory cgroup here; to run it: mount one at /sys/fs/cgroup");
    }
    possible
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
        "run" => {
            let knobs = Knobs::acquire(&place(&root), "a run", child("watchdog", &root)).unwrap();
            let made: Vec<_> =
                possible(&root).iter().map(|what| knobs.create(what).unwrap()).collect();
            // One process is in the group, and pages could be in the swap.
            for one in &made {
                if let Obtained::Group(group) = one.obtained() {
                    fs::write(group.path.join("cgroup.procs"), "0").unwrap();
                }
            }
            fs::write(root.join("lab/ready"), "").unwrap();
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
    let deadline = clock_gettime(ClockId::Monotonic).tv_sec + 60;
    while !reached() {
        assert!(clock_gettime(ClockId::Monotonic).tv_sec < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A run in a process group of its own that has made everything; ended with the test.
struct Run(Child);

impl Run {
    fn that_owns(lab: &Lab) -> Self {
        let run = child("run", lab.root.path()).process_group(0).stdout(Stdio::null()).spawn();
        let mut run = Self(run.unwrap());
        until("the run has made its belongings", || {
            assert!(run.0.try_wait().unwrap().is_none(), "the run has ended");
            lab.root.path().join("lab/ready").exists()
        });
        fs::remove_file(lab.root.path().join("lab/ready")).unwrap();
        run
    }

    fn kill_group(mut self) {
        kill_process_group(Pid::from_child(&self.0), Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_made_can_be_used_and_is_gone_with_its_guard() {
    let Some(lab) = Lab::new() else { return };
    let watchdog = child("watchdog", lab.root.path());
    let knobs = Knobs::acquire(&lab.place(), "test", watchdog).unwrap();
    for what in lab.possible() {
        let guard = knobs.create(&what).unwrap();
        let path = match guard.obtained().clone() {
            Obtained::Swap(made) => {
                let all = in_use(&Tree::machine());
                let ours = all.iter().find(|area| area.path == made.path).unwrap();
                assert_eq!(ours.size_kib, (BYTES >> 10) - 4, "all but the header");
                assert!(all.iter().all(|a| a.path == made.path || a.priority < ours.priority));
                let others: Vec<&str> = lab.swaps.lines().collect();
                assert!(others.iter().all(|line| swaps().contains(line)));
                made.path
            }
            Obtained::Group(group) => {
                assert_eq!(group.limit, BYTES);
                // A process that goes on is not killed: it is moved out.
                let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
                fs::write(group.path.join("cgroup.procs"), sleeper.id().to_string()).unwrap();
                let path = group.path.clone();
                let removed = guard.remove().unwrap();
                assert_eq!(removed.outcome, Outcome::Removed);
                assert!(sleeper.try_wait().unwrap().is_none(), "it was ended");
                sleeper.kill().unwrap();
                sleeper.wait().unwrap();
                assert!(!path.exists());
                continue;
            }
            Obtained::Monitor(_) => unreachable!("DAMON is left alone but in guests"),
        };
        let removed = guard.remove().unwrap();
        assert!(removed.is_clean() && removed.outcome == Outcome::Removed, "{removed}");
        assert!(!path.exists(), "{}", path.display());
    }
    assert_eq!(knobs.take_warnings(), Vec::<String>::new());
    drop(knobs);
    lab.is_as_found();
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let Some(lab) = Lab::new() else { return };
    let watchdog = child("watchdog", lab.root.path());
    let knobs = Knobs::acquire(&lab.place(), "test", watchdog).unwrap();
    if zram::is_offered(&Tree::machine()) {
        let before = Tree::machine().numbered("sys/block", "zram");
        let algorithm = Some("no-such-algorithm".to_owned());
        let refused = knobs.create(&Belonging::Zram { bytes: BYTES, algorithm }).unwrap_err();
        assert!(refused.to_string().contains("no-such-algorithm"), "{refused}");
        assert_eq!(Tree::machine().numbered("sys/block", "zram"), before);
    }
    let nowhere = Belonging::SwapFile { bytes: BYTES, directory: "/dev".into() };
    assert!(knobs.create(&nowhere).unwrap_err().to_string().contains("ext4"));
    drop(knobs);
    lab.is_as_found();
}

#[test]
fn sigkill_of_the_whole_process_group_removes_everything() {
    let Some(lab) = Lab::new() else { return };
    let run = Run::that_owns(&lab);
    let made = lab.journal();
    assert_eq!(made.lines().count(), lab.possible().len());
    run.kill_group();
    until("the watchdog is done", || lab.journal().is_empty());
    lab.is_as_found();
}

#[test]
fn what_a_dead_run_and_its_dead_watchdog_left_is_removed_on_request() {
    let Some(lab) = Lab::new() else { return };
    let run = Run::that_owns(&lab);
    kill_process(watchdog_of(&lab), Signal::KILL).unwrap();
    run.kill_group();
    let count = lab.possible().len();
    assert_eq!(lab.restore(), vec![Outcome::Removed; count]);
    lab.is_as_found();
    assert_eq!(lab.restore(), []);
}

/// The watchdog over this lab, found by its environment.
fn watchdog_of(lab: &Lab) -> Pid {
    let wanted = [format!("{PART}=watchdog"), format!("{ROOT}={}", lab.root.path().display())];
    let found = proc::with_environment(&wanted);
    Pid::from_raw(found.first().expect("a watchdog runs").cast_signed()).unwrap()
}

#[test]
fn a_kill_in_any_step_of_making_a_device_is_undone() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::machine();
    if !zram::is_offered(&tree) {
        return eprintln!("skipped: no zram here; to run it: sudo modprobe zram");
    }
    let add = || -> u64 {
        let text = fs::read_to_string("/sys/class/zram-control/hot_add").unwrap();
        text.trim().parse().unwrap()
    };
    for step in 0..5 {
        let (number, seq) = if step == 0 {
            // Journalled, and not yet added.
            (tree.numbered("sys/block", "zram").len() + 7, String::new())
        } else {
            let number = add();
            let seq = tree.number::<u64>(format!("sys/block/zram{number}/diskseq")).unwrap_or(0);
            let seq = if step > 1 { format!(r#","diskseq":{seq}"#) } else { String::new() };
            (usize::try_from(number).unwrap(), seq)
        };
        if step > 2 {
            fs::write(format!("/sys/block/zram{number}/disksize"), BYTES.to_string()).unwrap();
        }
        lab.write_journal(&format!(r#""made":"zram","number":{number},"bytes":{BYTES}{seq}"#));
        let expected = if step == 0 { Outcome::NotThere } else { Outcome::Removed };
        if step == 4 {
            // Not the device of the journal: another that came by its number later.
            lab.write_journal(&format!(
                r#""made":"zram","number":{number},"bytes":{BYTES},"diskseq":1"#
            ));
            assert!(matches!(lab.restore()[..], [Outcome::NotOurs { .. }]));
            fs::write(format!("/sys/block/zram{number}/reset"), "1").unwrap();
            until("the device is closed", || {
                fs::write("/sys/class/zram-control/hot_remove", number.to_string()).is_ok()
            });
        } else {
            assert_eq!(lab.restore(), [expected], "step {step}");
        }
        assert!(!Path::new(&format!("/sys/block/zram{number}")).exists(), "step {step}");
    }
    lab.is_as_found();
}

#[test]
fn a_kill_in_any_step_of_making_a_file_or_a_group_is_undone() {
    let Some(lab) = Lab::new() else { return };
    let path = lab.root.path().join("pagelab-swap-1-0");
    let line = format!(r#""made":"swap-file","path":"{}""#, path.display());
    lab.write_journal(&line);
    assert_eq!(lab.restore(), [Outcome::NotThere]);
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    lab.write_journal(&line);
    assert_eq!(lab.restore(), [Outcome::Removed]);
    // A file outlives a reboot, and is removed after it.
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    lab.write_journal(&line);
    let journal = lab.journal().replace(&boot_id(), "another boot");
    fs::write(lab.root.path().join("lab/knobs.jsonl"), journal).unwrap();
    assert_eq!(lab.restore(), [Outcome::Removed]);

    lab.write_journal(r#""made":"memory-group","path":"/sys/fs/cgroup/memory/pagelab-0-0""#);
    assert_eq!(lab.restore(), [Outcome::NotThere]);
    lab.is_as_found();
}
