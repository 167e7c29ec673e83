//! The settings of the machine: one test at a time, no other run beside, left as they were found.

use std::{
    cell::Cell,
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use pagelab_sys::{
    knobs::{Door, KnobError, Place, patiently},
    machine::{
        FreeMemory, Tree, selected,
        thp::{HugePages, Policy, Pool},
    },
};

use super::{DEADLINE, skip, until};

/// Locked by a test that changes a setting, or whose meaning depends on one that others change.
/// Tests may be threads or processes.
const LOCK: &str = "pagelab-tests.lock";

thread_local! {
    /// Whether the test that this thread runs has shut the door.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// The right to change settings, or to rely on nobody changing them.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Nobody else's run takes the knobs meanwhile; `None` without the right to ask for that.
    _door: Option<Door>,
    _turn: File,
}

impl Machine {
    /// Waits for its turn and for runs of other people on this machine to end, and keeps others
    /// away until it is dropped. What this test starts is let in: see [`let_in`].
    pub(crate) fn alone() -> Self {
        let lock = env::temp_dir().join(LOCK);
        // In a folder for all, another user's file may be read and locked, and not created again.
        let create = |_| File::options().create(true).append(true).open(&lock);
        let turn = File::open(&lock).or_else(create).unwrap();
        turn.lock().unwrap();
        #[expect(clippy::print_stderr, reason = "why a test takes long")]
        let mut tell = |held: &KnobError| eprintln!("waiting: {held}");
        let shut = || Door::shut(&Place::machine(), "tests of pagelab");
        let door = match patiently(DEADLINE, &mut tell, shut) {
            Ok(door) => Some(door),
            Err(KnobError::Denied { .. }) => None,
            Err(error) => panic!("{error}"),
        };
        IS_ALONE.set(true);
        Self { _door: door, _turn: turn }
    }

    /// The same, where this process may change settings; says so otherwise.
    pub(crate) fn as_root() -> Option<Self> {
        if is_root() {
            return Some(Self::alone());
        }
        skip("settings of the machine are root's", "run the tests as root");
        None
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        IS_ALONE.set(false);
    }
}

/// Has free memory put together where little of it lies in blocks of 2 MiB: on a machine whose
/// memory is full of files, huge pages come now and then, and a run says rightly that they did not.
pub(crate) fn put_together() {
    const BLOCKS: u64 = 256;
    let free = FreeMemory::of(&Tree::machine(), 0);
    if free.is_some_and(|free| free.blocks(2 << 20) < BLOCKS) && is_root() {
        // It acts when it is written, and is no setting; a kernel without compaction has none.
        let _ = fs::write("/proc/sys/vm/compact_memory", "1");
    }
}

/// The environment of what a test starts: while the test is alone on the machine, its runs may
/// take the knobs. Those of the tests beside it may not: a run that starts puts back what it finds
/// changed by nobody alive, which is what some of these tests have made and look at.
pub(crate) fn let_in() -> Option<(&'static str, String)> {
    IS_ALONE.get().then(|| (Door::VARIABLE, std::process::id().to_string()))
}

/// A setting as it was found; put back should a failed test leave it changed.
#[derive(Debug)]
pub(crate) struct Saved {
    path: PathBuf,
    found: String,
}

impl Saved {
    pub(crate) fn of(path: &Path) -> Self {
        let mut saved = Self { path: path.to_owned(), found: String::new() };
        saved.found = saved.now();
        saved
    }

    /// Its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its value as it was found.
    pub(crate) fn found(&self) -> &str {
        &self.found
    }

    /// Its value now.
    pub(crate) fn now(&self) -> String {
        selected(&fs::read_to_string(&self.path).unwrap()).to_owned()
    }

    /// Waits until it holds this value.
    pub(crate) fn becomes(&self, value: &str) {
        let what = format!("{} to become {value}", self.path.display());
        until(&what, || (self.now() == value).then_some(()));
    }

    /// Asserts that it is as it was found.
    #[track_caller]
    pub(crate) fn is_back(&self) {
        assert_eq!(self.now(), self.found, "{}", self.path.display());
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        if self.now() != self.found {
            let _ = fs::write(&self.path, &self.found);
        }
    }
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    pagelab_sys::machine::rights::is_root()
}

/// The setting of 64 KiB folios, where this kernel has them and they are off.
pub(crate) fn small_folio() -> Option<Saved> {
    let huge = HugePages::machine();
    let path = huge.enabled_path(64 << 10);
    match (path, huge.policy(64 << 10)) {
        (Some(path), Some(Policy::Never)) => Some(Saved::of(&path)),
        (Some(path), _) => {
            let cure = format!("echo never | sudo tee {}", path.display());
            skip("64k folios are on already", &cure);
            None
        }
        (None, _) => {
            skip("this kernel has no 64k folios", "use Linux 6.8 or newer");
            None
        }
    }
}

/// The pool of 2 MiB pages, where this kernel has one with fewer free pages than `pages`.
pub(crate) fn pool(pages: u64) -> Option<(Saved, Pool)> {
    let pools = HugePages::machine().pools();
    let Some(pool) = pools.into_iter().find(|pool| pool.page_size == 2 << 20) else {
        skip("this kernel has no pool of 2m pages", "use a kernel with hugetlbfs");
        return None;
    };
    if pool.free >= pages {
        let cure = format!("echo 0 | sudo tee {}", pool.path.display());
        skip("the pool has enough pages already", &cure);
        return None;
    }
    Some((Saved::of(&pool.path), pool))
}
