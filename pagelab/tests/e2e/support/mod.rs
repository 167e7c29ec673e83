//! What every test here stands on: a directory of its own, the binary, and a deadline.

mod live;
mod machine;
mod memory_group;

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

pub(crate) use live::{Beside, Live, signal, state};
pub(crate) use machine::{Machine, Saved, is_root, let_in, pool, put_together, small_folio};
pub(crate) use memory_group::MemoryGroup;
use pagelab_record::{Measured, Outcome, Record, journal, vocabulary::series::COLD};
use pagelab_sys::{machine::proc, time::monotonic_raw_ns};
use tempfile::TempDir;

/// Longer than anything here takes, on a machine that others use too.
const DEADLINE: Duration = Duration::from_secs(600);

/// The name of a series without the mark of memory that the host had taken back: it does so
/// whenever it likes, and a repetition that lasts long cannot be spared.
pub(crate) fn plain(series: &str) -> &str {
    series.strip_suffix(COLD).unwrap_or(series)
}

/// What a report says where so many of all planned cases have a record, each of them valid.
pub(crate) fn done(records: usize, planned: usize) -> String {
    if records == 0 {
        return format!("{planned} of {planned} planned cases have no record");
    }
    format!("{records} valid")
}

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("pagelab").to_owned()
}

/// Builds a library of ours, unless whoever started the tests has: nothing here links it, so cargo
/// does not build it for these tests.
pub(crate) fn build_library(package: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let binary = binary();
    let folder = binary.parent().unwrap();
    // Whoever comes second waits until it is built.
    let mut done = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if env::var_os("PAGELAB_BUILT").is_none() && !done.contains(package) {
        let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--locked", "--package", package]);
        build.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().unwrap().success(), "{package} was not built");
        done.insert(package);
    }
    folder.join(format!("lib{}.so", package.replace('-', "_")))
}

/// Flags that name what must not be there yet.
const MAKES: [&str; 3] = ["-o", "--report", "--folded"];

/// Says why a test does nothing here, and what would change that.
#[expect(clippy::print_stderr, reason = "the harness shows it with --nocapture, as all skips")]
pub(crate) fn skip(reason: &str, cure: &str) {
    eprintln!("skipped: {reason}; to run it: {cure}");
}

/// Asks until there is an answer, or fails the test when the deadline has passed.
pub(crate) fn until<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = monotonic_raw_ns() + u64::try_from(DEADLINE.as_nanos()).unwrap();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(monotonic_raw_ns() < deadline, "in vain waited for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs something that needs huge pages; again where it did not come out well and the kernel found
/// no memory in one piece meanwhile, for it or for somebody else.
///
/// Memory of others cannot be kept away. What comes out badly with a huge page for all who asked
/// is a failure at once.
pub(crate) fn with_huge_pages<T>(is_good: impl Fn(&T) -> bool, mut run: impl FnMut() -> T) -> T {
    until("huge pages for all who ask", || {
        let before = lacked_huge_pages();
        let came = run();
        let is_final = is_good(&came) || lacked_huge_pages() == before;
        if !is_final {
            put_together();
        }
        is_final.then_some(came)
    })
}

/// How often the kernel had no huge page for somebody.
fn lacked_huge_pages() -> u64 {
    vmstat(&[
        "thp_fault_fallback",
        "thp_zero_page_alloc_failed",
        "thp_collapse_alloc_failed",
        "htlb_buddy_alloc_fail",
    ])
}

/// Pages that the kernel took from a page table by itself so far: to move or to reclaim them.
fn pages_taken() -> u64 {
    vmstat(&["pgmigrate_", "compact_isolated", "pgsteal_", "pswpout"])
}

/// The sum of the machine's counters whose names begin so.
fn vmstat(beginnings: &[&str]) -> u64 {
    let counts = fs::read_to_string("/proc/vmstat").unwrap();
    let is_one = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
    proc::counts(&counts).filter(|(name, _)| is_one(name)).map(|(_, count)| count).sum()
}

/// Repeats something as long as it comes out wrong and the kernel took pages meanwhile: a page that
/// is moved faults twice. It counts a batch after it has moved all of it, so a wrong result waits
/// for that.
#[track_caller]
pub(crate) fn undisturbed<T>(
    wrong: impl Fn(&T) -> Option<String>,
    mut run: impl FnMut() -> T,
) -> T {
    let look_again = Duration::from_millis(20);
    until("a run in which the kernel takes no page", || {
        let before = pages_taken();
        let came = run();
        let Some(wrong) = wrong(&came) else { return Some(came) };
        let mut looks = (0..3000).map(|_| {
            std::thread::sleep(look_again);
            pages_taken()
        });
        assert!(looks.any(|now| now != before), "{wrong}");
        None
    })
}

/// A directory of its own for one test; commands run in it, so that nothing is left elsewhere.
#[derive(Debug)]
pub(crate) struct Lab {
    place: TempDir,
    /// What the last command said beside its results.
    said: Mutex<String>,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its results.
    pub(crate) stdout: String,
    /// What it said beside them.
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn new() -> Self {
        put_together();
        Self { place: tempfile::tempdir().unwrap(), said: Mutex::default() }
    }

    /// A path in it.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.place.path().join(name)
    }

    /// Writes a file into it.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Copies a program, or a script, so that it can be run here.
    ///
    /// By a process of its own: were the copy ever open for writing in this one, what another test
    /// starts at that moment would hold it open too, and running it would be `ETXTBSY`.
    pub(crate) fn program(&self, from: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.path(name);
        let mut install = Command::new("install");
        assert!(
            install
                .args(["-m", "755", "--"])
                .arg(from.as_ref())
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        path
    }

    /// The binary under test where another user may run it, in a folder that lets everybody in: the
    /// way to the build may be closed to others.
    pub(crate) fn binary_for_everybody(&self) -> PathBuf {
        fs::set_permissions(self.path("."), fs::Permissions::from_mode(0o777)).unwrap();
        let path = self.path("pagelab");
        match fs::hard_link(binary(), &path) {
            Ok(()) => path,
            // Another file system.
            Err(_) => self.program(binary(), "pagelab"),
        }
    }

    /// Writes a suite of its own, one process a case; each case is written as `fault/throughput
    /// page=4k size=16m`. A case may take as long as the test may wait: it does not hang because it
    /// waits for a processor.
    pub(crate) fn suite(&self, cases: &[&str]) -> String {
        let mut text = "name = \"e2e\"\nsummary = \"a test\"\nforks = 1\nlimit = 600\n".to_owned();
        for case in cases {
            let mut words = case.split_whitespace();
            text.push_str(&format!("[[case]]\nworkload = \"{}\"\n", words.next().unwrap()));
            for word in words {
                let (key, value) = word.split_once('=').unwrap();
                text.push_str(&format!("{key} = \"{value}\"\n"));
            }
        }
        self.file("suite.toml", text);
        "./suite.toml".to_owned()
    }

    /// Runs the binary to its end. `explain` and `try` say nothing of a program while other tests
    /// change the machine's settings: they run again then, alone.
    pub(crate) fn pagelab(&self, words: &[impl AsRef<OsStr>]) -> Ended {
        let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
        let may_repeat = let_in().is_none()
            && [Some("explain"), Some("try")]
                .contains(&words.first().and_then(|word| word.to_str()));
        let ended = self.ended(assert_cmd::Command::new(binary()).args(&words));
        if !(may_repeat && ended.is_disturbed()) {
            return ended;
        }
        for made in words.windows(2).filter(|pair| MAKES.iter().any(|flag| pair[0] == *flag)) {
            let path = self.path(made[1].to_str().unwrap());
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        let _machine = Machine::alone();
        self.ended(assert_cmd::Command::new(binary()).args(&words))
    }

    /// Runs any command to its end, in this directory.
    pub(crate) fn ended(&self, command: &mut assert_cmd::Command) -> Ended {
        command.envs(let_in()).current_dir(self.place.path()).timeout(DEADLINE);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        self.said.lock().unwrap().clone_from(&text(output.stderr.clone()));
        Ended {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Measures some cases into `name` and returns how that ended. One that needs the settings of
    /// the machine waits until another run has put them back; one that takes pages of a pool waits
    /// for the test that set the pool aside.
    pub(crate) fn measure(&self, name: &str, cases: &[&str]) -> Ended {
        let takes_pool = cases.iter().any(|case| case.contains("hugetlb"));
        let _machine = (takes_pool && let_in().is_none()).then(Machine::alone);
        let suite = self.suite(cases);
        self.pagelab(&["run", "--wait", "--suite", &suite, "-o", name])
    }

    /// The same, where a case needs huge pages: until it ends with this code, or had all of them.
    pub(crate) fn measure_huge(&self, name: &str, cases: &[&str], code: i32) -> Ended {
        with_huge_pages(
            |ended: &Ended| ended.code == Some(code),
            || {
                let _ = fs::remove_dir_all(self.path(name));
                self.measure(name, cases)
            },
        )
    }

    /// The records of a run; fails when its journal is damaged.
    pub(crate) fn records(&self, run: &str) -> Vec<Record> {
        let contents = journal::read(&self.path(run));
        let said = || self.said.lock().unwrap().clone();
        let contents = contents.unwrap_or_else(|error| panic!("{error}; said: {}", said()));
        assert_eq!(contents.damage, None);
        contents.records
    }

    /// The lines of a run's journal that are whole, as bytes; none where there is no journal yet.
    pub(crate) fn lines(&self, run: &str) -> Vec<Vec<u8>> {
        let bytes = fs::read(self.path(run).join(journal::FILE)).unwrap_or_default();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| line.ends_with(b"\n")).map(<[u8]>::to_vec).collect()
    }
}

impl Ended {
    /// Whether it refused because others change the machine's settings, or did without a round.
    fn is_disturbed(&self) -> bool {
        let said = [
            "while the program was watched, so nothing is said of its faults",
            "settings as they were before the rounds",
            "settings that stay while the program is watched",
            "holds the machine's settings",
            "while it ran, so it is left out of this round",
        ];
        [&self.stdout, &self.stderr].iter().any(|text| said.iter().any(|said| text.contains(said)))
    }

    /// Asserts the exit code, showing all that was said when it is another.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        let Self { stdout, stderr, .. } = self;
        assert_eq!(self.code, Some(code), "stdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }

    /// Asserts that stderr holds all of these.
    #[track_caller]
    pub(crate) fn complains(&self, of: &[&str]) -> &Self {
        for text in of {
            assert!(self.stderr.contains(text), "no `{text}` in stderr:\n{}", self.stderr);
        }
        self
    }

    /// Asserts that stdout holds all of these, wherever its lines were broken.
    #[track_caller]
    pub(crate) fn shows(&self, what: &[&str]) -> &Self {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let flat = words(&self.stdout);
        for text in what {
            assert!(flat.contains(&words(text)), "no `{text}` in stdout:\n{}", self.stdout);
        }
        self
    }
}

/// What was measured.
#[track_caller]
pub(crate) fn measured(record: &Record) -> &Measured {
    match &record.outcome {
        Outcome::Measured(measured) => measured,
        other => panic!("{} was not measured: {other:?}", record.workload),
    }
}

/// Why it failed.
#[track_caller]
pub(crate) fn failure(record: &Record) -> &str {
    match &record.outcome {
        Outcome::Failed { reason } => reason,
        other => panic!("{} did not fail: {other:?}", record.workload),
    }
}

/// What it was skipped for, where a test is about that.
#[track_caller]
pub(crate) fn lacked(record: &Record) -> &str {
    match &record.outcome {
        Outcome::Skipped { need, .. } => need,
        other => panic!("{} was not skipped: {other:?}", record.workload),
    }
}

/// Says so when the machine skipped a record for want of something.
pub(crate) fn is_skipped(record: &Record) -> bool {
    if let Outcome::Skipped { need, cure } = &record.outcome {
        skip(&format!("this machine lacks {need}"), cure);
        return true;
    }
    false
}
