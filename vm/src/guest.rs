//! What a case sees of the machine that it runs on, and the things that several cases do.
//!
//! The one idea: a case asks here instead of knowing paths, so that it runs in a virtual machine
//! and on a host alike. It is not the machine's set-up, which is done before the first case.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use pagelab_record::{Nature, Record, journal};
use pagelab_sys::{machine::Tree, vm::guest as kernel};
use serde::{Deserialize, Serialize};

use crate::verdict::{self, Verdict};

/// The file of the initramfs that says what to do.
pub(crate) const ORDERS: &str = "/orders.json";
/// Where the lane puts modules.
const MODULES: &str = "/modules";
/// The user that owns nothing, on every distribution.
pub(crate) const NOBODY: u32 = 65534;

/// What the lane asks of a boot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Orders {
    /// Name of the kernel: `6.1`, `6.1-rt`, `6.12`, `newest`.
    pub(crate) kernel: String,
    /// Name of the machine.
    pub(crate) machine: String,
    /// Files below `/modules` to load at boot, in order.
    pub(crate) load: Vec<String>,
    /// Cases to run, in order.
    pub(crate) cases: Vec<String>,
    /// Whether cases that can go on for long should.
    pub(crate) soak: bool,
}

/// The machine, as a case sees it.
#[derive(Debug)]
pub(crate) struct Guest {
    orders: Option<Orders>,
    pagelab: PathBuf,
}

/// Answers of one run of `pagelab`.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it said.
    pub(crate) stderr: String,
}

impl Guest {
    /// This machine: a guest of the lane where there are orders, a host otherwise.
    pub(crate) fn here() -> Result<Self> {
        if let Ok(text) = fs::read_to_string(ORDERS) {
            let orders = serde_json::from_str(&text).context(ORDERS)?;
            return Ok(Self { orders: Some(orders), pagelab: "/bin/pagelab".into() });
        }
        let beside = env::current_exe()?.with_file_name("pagelab");
        let pagelab = env::var_os("PAGELAB").map_or(beside, PathBuf::from);
        Ok(Self { orders: None, pagelab })
    }

    /// Whether this is a virtual machine of the lane.
    pub(crate) fn is_ours(&self) -> bool {
        self.orders.is_some()
    }

    /// The kernel's name in the lane; on a host its release.
    pub(crate) fn kernel(&self) -> String {
        let release = || text("/proc/sys/kernel/osrelease").unwrap_or_default();
        self.orders.as_ref().map_or_else(release, |orders| orders.kernel.clone())
    }

    /// The machine's name in the lane; `host` elsewhere.
    pub(crate) fn machine(&self) -> &str {
        self.orders.as_ref().map_or("host", |orders| &orders.machine)
    }

    /// Whether to go on for long: `cargo xtask vm --soak`.
    pub(crate) fn soak(&self) -> bool {
        let asked = || env::var_os("PAGELAB_SOAK").is_some();
        self.orders.as_ref().map_or_else(asked, |orders| orders.soak)
    }

    /// Says what came of a part of the case; a failed part fails the case.
    #[expect(clippy::unused_self, reason = "only who has a guest runs a case")]
    pub(crate) fn part(&self, name: &str, outcome: Result<Verdict>) {
        verdict::say_part(name, outcome);
    }

    /// Says something that is worth reading but decides nothing.
    #[expect(clippy::unused_self, reason = "only who has a guest runs a case")]
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        verdict::say(&verdict::Line::Note(text.to_string()));
    }

    /// Says how far a long case is, where somebody who waits can read it: on a guest's console,
    /// by way of the kernel's log. Nobody needs it afterwards.
    pub(crate) fn progress(&self, text: impl std::fmt::Display) {
        // A warning, since the lane's kernels keep what is less off the console.
        const LEVEL: &str = "<4>";
        if self.is_ours() {
            let _ = fs::write("/dev/kmsg", format!("{LEVEL}guest: {text}\n"));
        }
    }

    /// A command that runs `pagelab` with these words.
    pub(crate) fn pagelab(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.pagelab);
        command.args(words).env("NO_COLOR", "1").current_dir(env::temp_dir());
        command
    }

    /// Runs `pagelab` as root.
    pub(crate) fn run(&self, words: &[&str]) -> Result<Ran> {
        ran(&mut self.pagelab(words))
    }

    /// Runs `pagelab`, which must end well.
    pub(crate) fn done(&self, words: &[&str]) -> Result<Ran> {
        let ran = self.run(words)?;
        let Ran { code, stdout, stderr } = &ran;
        ensure!(*code == 0, "pagelab {}: exit code {code}: {stdout}{stderr}", words.join(" "));
        Ok(ran)
    }

    /// Runs `pagelab` as a user that may do nothing.
    pub(crate) fn run_as_nobody(&self, words: &[&str]) -> Result<Ran> {
        ran(self.pagelab(words).uid(NOBODY).gid(NOBODY))
    }

    /// Runs cases of a workload, each in one process and as short as they can be, and reads the
    /// records that are left, whatever the exit code. A comma in a value makes several cases.
    ///
    /// By a suite of its own: a grid would measure the machine's limits first, which takes an
    /// emulated processor a minute and tells nothing.
    pub(crate) fn records(&self, workload: &str, case: &[(&str, &str)]) -> Result<Vec<Record>> {
        self.left_by(workload, case, Self::run).map(|(records, _)| records)
    }

    /// The same as a user that may do nothing, with the exit code.
    pub(crate) fn records_of_nobody(
        &self,
        workload: &str,
        case: &[(&str, &str)],
    ) -> Result<(Vec<Record>, i32)> {
        self.left_by(workload, case, Self::run_as_nobody)
    }

    fn left_by(
        &self,
        workload: &str,
        case: &[(&str, &str)],
        run_as: fn(&Self, &[&str]) -> Result<Ran>,
    ) -> Result<(Vec<Record>, i32)> {
        let folder = Folder::with_suite(workload, case)?;
        let run = folder.path.join("run");
        let ran = run_as(self, &folder.words().each_ref().map(String::as_str))?;
        let contents = journal::read(&run.join(journal::FILE))
            .with_context(|| format!("pagelab exited with {}: {}", ran.code, ran.stderr))?;
        for record in &contents.records {
            let told = record.nature == Nature::Emulated;
            ensure!(told || !self.is_ours(), "{} is {:?}", record.workload, record.nature);
        }
        ensure!(contents.damage.is_none(), "the journal is damaged: {:?}", contents.damage);
        ensure!(!contents.records.is_empty(), "no records: {}", ran.stderr);
        Ok((contents.records, ran.code))
    }

    /// Loads a module that the case named; dropping what is returned unloads it.
    #[expect(clippy::unused_self, reason = "only who has a guest may load modules")]
    pub(crate) fn load(&self, module: &'static str, parameters: &str) -> Result<Loaded> {
        let file = Path::new(MODULES).join(format!("{module}.ko"));
        kernel::load_module(&file, parameters)?;
        Ok(Loaded { module })
    }
}

/// Seconds after which a case has hung, by the clock of a machine that goes on while a host that is
/// busy does not give it a processor.
pub(crate) const LIMIT_S: &str = "1800";

/// Looks again every 20 ms until it is so; whether it came to that within ten minutes, which
/// nothing takes that happens at all.
pub(crate) fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    for _ in 0..30_000 {
        if is_so()? {
            return Ok(true);
        }
        sleep(Duration::from_millis(20));
    }
    Ok(false)
}

/// A folder with a suite of one workload; dropping it removes it and what was run in it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Cases as short as they can be; a comma in a value makes several.
    pub(crate) fn with_suite(workload: &str, case: &[(&str, &str)]) -> Result<Self> {
        let path = PathBuf::from(scratch());
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        let folder = Self { path };
        let mut text = format!(
            "name = \"guest\"\nsummary = \"one workload\"\nforks = 1\nbudget = 0.001\n\
             limit = {LIMIT_S}\nrepetitions-min = 1\n[[case]]\nworkload = \"{workload}\"\n"
        );
        for (name, values) in case {
            let values: Vec<_> = values.split(',').map(|value| format!("\"{value}\"")).collect();
            text.push_str(&format!("{name} = [{}]\n", values.join(", ")));
        }
        let suite = folder.path.join("suite.toml");
        fs::write(&suite, text).with_context(|| suite.display().to_string())?;
        // Sticky, as /tmp is: whoever runs it writes here, and root does so nowhere else.
        let anybody = Permissions::from_mode(0o1777);
        let opened = fs::set_permissions(&folder.path, anybody);
        opened.with_context(|| folder.path.display().to_string())?;
        Ok(folder)
    }

    /// What `pagelab` is told to run it: to wait, too, as a run that was killed has the machine's
    /// settings until its watchdog has put them back.
    pub(crate) fn words(&self) -> [String; 6] {
        let path = |name| self.path.join(name).to_string_lossy().into_owned();
        let suite = path("suite.toml");
        ["run".into(), "--wait=120".into(), "--suite".into(), suite, "-o".into(), path("run")]
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A module that is unloaded when this is dropped.
#[derive(Debug)]
pub(crate) struct Loaded {
    module: &'static str,
}

impl Loaded {
    /// Unloads it now, and says when that fails.
    pub(crate) fn unload(self) -> Result<()> {
        let module = self.module;
        std::mem::forget(self);
        Ok(kernel::unload_module(module)?)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = kernel::unload_module(self.module);
    }
}

/// The path of a file or folder that nobody uses yet, not made.
pub(crate) fn scratch() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = env::temp_dir().join(format!("pagelab-guest-{}-{count}", std::process::id()));
    path.to_string_lossy().into_owned()
}

/// The text of a file of the kernel, without the line's end.
pub(crate) fn text(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    Ok(text.trim_end().to_owned())
}

/// Writes a file of the kernel.
pub(crate) fn set(path: &str, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("writing {value} to {path}"))
}

/// A field of `/proc/meminfo` in kB.
pub(crate) fn meminfo_kb(field: &str) -> Result<u64> {
    let kb = Tree::machine().field_number("proc/meminfo", field);
    kb.with_context(|| format!("/proc/meminfo has no {field}"))
}

/// Entries of a folder whose name begins so, sorted.
pub(crate) fn names(folder: &str, beginning: &str) -> Vec<String> {
    let mut names = Tree::machine().names(folder);
    names.retain(|name| name.starts_with(beginning));
    names
}

fn ran(command: &mut Command) -> Result<Ran> {
    let Output { status, stdout, stderr } = command
        .output()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let Some(code) = status.code() else {
        bail!("pagelab ended by {status}: {}", String::from_utf8_lossy(&stderr));
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ran { code, stdout: text(stdout), stderr: text(stderr) })
}
