//! One boot of the lane: its initramfs, its run, its verdict and its logs.
//!
//! Whatever came of a boot, its console and its results stay in [`LOGS`] under the boot's name
//! until the next run of the same. Nothing that failed is tried again, but for one kind, which is
//! no case's: QEMU (seen with 7.2) may translate an instruction while the guest's other processor
//! patches it, half old and half new, and the kernel stumbles over it. A kernel without a module of
//! ours that oopses and panics is booted a second time; its console is kept as `NAME.panic`, and
//! the boot says so.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use pagelab_initrd::{Archive, Modules};

use super::{
    Options,
    build::Programs,
    disk,
    fetch::{Kernel, Supplies},
    machines,
    ours::NAME as OURS,
    path,
    qemu::Start,
    skips::{self, Expected},
    summary::{Booted, Summary},
    table::{Boot, Orders},
};
use crate::shell;

/// Logs of the boots.
pub(crate) const LOGS: &str = "target/vm/logs";
/// From start to end: `pagelab check` takes every kind of fault, three minutes on an idle host.
/// Both limits leave out what the host has no processor for: see [`super::qemu`].
const LIMIT: Duration = Duration::from_secs(1800);
/// From the start to the first line of the first process, which takes seconds.
const LIMIT_SILENT: Duration = Duration::from_secs(240);
/// With `--soak` there is no reason to hurry, and a kernel that checks itself takes a multiple.
const LIMIT_SOAK: Duration = Duration::from_secs(4 * 3600);

/// What is said of a boot whose kernel panicked by itself the first time.
const STUMBLED: &str = "\n        the kernel panicked without a module of ours: booted again";

/// What all boots share.
#[derive(Debug)]
pub(super) struct Lane {
    programs: Programs,
    supplies: Supplies,
    /// The image of the disk.
    image: PathBuf,
    /// Our module, by kernel.
    ours: BTreeMap<String, PathBuf>,
    expected: Vec<Expected>,
    options: Options,
}

/// What the lane starts, and waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Run<'a> {
    /// A machine of the lane's own, and which round of it this is.
    Boot(u32, &'a Boot),
    /// A kernel, and places among the rows of [`path`].
    Path(&'static str, &'a [usize]),
}

impl Lane {
    /// A lane whose logs can be written.
    pub(super) fn new(
        programs: Programs,
        supplies: Supplies,
        ours: BTreeMap<String, PathBuf>,
        expected: Vec<Expected>,
        options: Options,
    ) -> Result<Self> {
        fs::create_dir_all(LOGS).context(LOGS)?;
        Ok(Self { programs, supplies, image: disk::image()?, ours, expected, options })
    }

    /// Runs them all, as many at once as was asked for, and says what came of each.
    pub(super) fn all(&self, runs: Vec<Run<'_>>) -> Summary {
        let queue = Mutex::new(VecDeque::from(runs));
        let summary = Mutex::new(Summary::default());
        let next = || lock(&queue).pop_front();
        let work = || {
            while let Some(run) = next() {
                let booted = self.one(run);
                println!("{}", booted.text);
                lock(&summary).add(&booted);
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.options.jobs.get() {
                scope.spawn(work);
            }
        });
        summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever goes wrong is what came of it.
    fn one(&self, run: Run<'_>) -> Booted {
        let (kernel, name, ran) = match run {
            Run::Boot(round, boot) => (boot.kernel.as_str(), boot.name(), self.boot(boot, round)),
            Run::Path(kernel, rows) => {
                (kernel, format!("fault/path on {kernel}"), self.path(kernel, rows))
            }
        };
        ran.unwrap_or_else(|error| {
            let text = format!("\n[vm] FAILED: {name}: {error:#}");
            let (kernel, failures) = (kernel.to_owned(), vec![format!("{error:#}")]);
            Booted { failures, text, kernel, ..Booted::default() }
        })
    }

    /// Rows of `fault/path`, which boots its machines itself.
    fn path(&self, kernel: &str, rows: &[usize]) -> Result<Booted> {
        let mut booted = path::run(&self.programs.pagelab, Path::new(LOGS), kernel, rows)?;
        let place = (kernel, path::MACHINE);
        let wrong = skips::wrong(&self.expected, place, &booted.judged.findings);
        booted.text.extend(wrong.iter().map(|why| format!("\n        {why}")));
        booted.failures.extend(wrong);
        Ok(booted)
    }

    /// Boots and waits for the end.
    fn boot(&self, boot: &Boot, round: u32) -> Result<Booted> {
        let kernel = self.supplies.kernel(&boot.kernel)?;
        // Rounds of one boot may run at once.
        let name = if round == 0 { boot.name() } else { format!("{}.{}", boot.name(), round + 1) };
        let base = Path::new(LOGS).join(&name);
        let initrd = log(&base, "initrd");
        fs::write(&initrd, self.initrd(boot, kernel)?)
            .with_context(|| initrd.display().to_string())?;
        let console = log(&base, "console");
        let start = Start {
            machine: machines::find(&boot.machine)?,
            memory_mib: boot.memory_mib,
            parameters: &boot.parameters,
            kernel: &kernel.image,
            initrd: &initrd,
            image: &self.image,
            console: &console,
            limit: if self.options.soak { LIMIT_SOAK } else { LIMIT },
            silent: LIMIT_SILENT,
        };
        let run = || -> Result<_> {
            let (recording, took) = shell::timed(|| self.supplies.qemu.run(&start));
            Ok((recording?, took))
        };
        let (mut recording, mut took) = run()?;
        let stumbled = recording.has_panicked_alone() && !boot.panics;
        if stumbled {
            fs::rename(&console, log(&base, "panic"))?;
            (recording, took) = run()?;
        }
        fs::write(log(&base, "results"), &recording.results)
            .with_context(|| base.display().to_string())?;
        if self.options.keep {
            println!("{}", shell::line(&self.supplies.qemu.command(&start)));
        } else {
            let _ = fs::remove_file(&initrd);
        }
        let last_words = recording.last_words();
        let judged = recording.judge(&boot.cases);
        let judged = if boot.panics { judged.that_panicked(&boot.cases) } else { judged };
        let place = (boot.kernel.as_str(), boot.machine.as_str());
        let mut failures = judged.failures.clone();
        failures.extend(skips::wrong(&self.expected, place, &judged.findings));
        let mut booted = Booted {
            judged,
            failures,
            kernel: boot.kernel.clone(),
            seconds: took.as_secs(),
            ..Booted::default()
        };
        booted.text = booted.describe(&name, took, &base);
        if stumbled {
            booted.text.push_str(STUMBLED);
        }
        if !booted.is_good() {
            booted.text.push_str(&last_words);
        }
        if round > 0 && booted.is_good() {
            for kind in ["console", "results"] {
                let _ = fs::remove_file(log(&base, kind));
            }
        }
        Ok(booted)
    }

    fn initrd(&self, boot: &Boot, kernel: &Kernel) -> Result<Vec<u8>> {
        let mut archive = Archive::new();
        let asked = self.programs.asked.iter().filter(|_| !boot.programs.is_empty());
        for (place, file) in self.programs.always.iter().chain(asked) {
            archive.copy(place, file)?;
        }
        let machine = machines::find(&boot.machine)?;
        let asked = boot.modules.iter().map(String::as_str);
        let theirs: Vec<_> = machine
            .modules
            .iter()
            .map(String::as_str)
            .chain(asked.filter(|name| *name != OURS))
            .collect();
        let mut load = Vec::new();
        if !theirs.is_empty() {
            for (file, contents) in Modules::of(&kernel.modules)?.ordered(&theirs)? {
                archive.file(&format!("modules/{file}"), &contents);
                load.push(file);
            }
        }
        if boot.modules.iter().any(|name| name == OURS) {
            let module = self.ours.get(&boot.kernel);
            let module = module.with_context(|| format!("no {OURS} for {}", boot.kernel))?;
            archive.copy(&format!("modules/{OURS}.ko"), module)?;
        }
        let orders = Orders {
            kernel: &boot.kernel,
            machine: &boot.machine,
            load: &load,
            cases: &boot.cases,
            soak: self.options.soak,
        };
        archive.file("orders.json", serde_json::to_string(&orders)?.as_bytes());
        Ok(archive.finish())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of a boot; the names of kernels have dots, so this is no `with_extension`.
fn log(base: &Path, kind: &str) -> PathBuf {
    PathBuf::from(format!("{}.{kind}", base.display()))
}
