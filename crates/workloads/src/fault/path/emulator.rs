//! The emulator: where it is, what it is told, and what becomes of it.
//!
//! The one idea: the machine is one processor, always emulated, with nothing in it that could ask
//! for attention but a timer and a serial line. Files that it is given and that it writes are in
//! memory and have no name, so that a machine that is killed leaves nothing.

use std::{
    env,
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use pagelab_bench::{Error, Plain};
use pagelab_initrd::Modules;
use pagelab_sys::{files::beside::library, memory::memfd, process::child};

use super::{
    debugger::{Debugger, Steps, Target},
    disk::{self, named},
    guest::{COMMAND, Orders},
    initrd,
    inside::Inside,
    kernel::{Found, cache},
    log::Log,
};

/// The emulator by its name.
const QEMU: &str = "qemu-system-x86_64";
/// The first QEMU whose plugins may read memory.
const VERSION_MIN: (u32, u32) = (9, 2);

/// What the kernel is told in every machine. Addresses of programs are the same in every boot; with
/// one processor a kernel would take the locks off its locked instructions; and an eighth of all
/// that is executed before the first process would be a test of a source of random numbers.
const PARAMETERS: &str = "console=ttyS0 loglevel=4 panic=-1 oops=panic noreplace-smp norandmaps \
                          initcall_blacklist=jent_mod_init audit=0 no_timer_check";
/// Where the kernel lies is the same in every boot, too, unless somebody asks for another.
const IN_PLACE: [&str; 2] = ["nokaslr", "kaslr"];

/// An emulator that loads plugins.
pub(crate) const EMULATOR: Plain = Plain {
    name: "QEMU 9.2 or newer for x86-64 that loads plugins",
    has: || Emulator::find().is_some(),
    cure: "cargo xtask vm boot/ (on Debian), or sudo apt-get install qemu-system-x86 where that is \
           9.2 or newer; one that says no -plugin in its --help was built without",
};

/// Our plugin.
pub(crate) const PLUGIN: Plain = Plain {
    name: "the plugin libpagelab_capture.so beside this executable",
    has: || plugin().is_some(),
    cure: "cargo build --workspace (with --release for that of target/release)",
};

fn plugin() -> Option<PathBuf> {
    library("pagelab-capture").ok()?.ok()
}

/// An emulator and where its firmware is.
#[derive(Debug)]
struct Emulator {
    program: PathBuf,
    data: Vec<PathBuf>,
}

impl Emulator {
    /// The system's where it is new enough; else that of the lane of machines.
    fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let systems = env::split_paths(&path).map(|folder| folder.join(QEMU));
        let systems = systems.map(|program| Self { program, data: Vec::new() });
        let root = cache().map(|cache| cache.join("qemu"));
        let fetched = root.map(|root| Self {
            program: root.join("usr/bin").join(QEMU),
            data: ["usr/share/qemu", "usr/share/seabios"].map(|one| root.join(one)).to_vec(),
        });
        systems.chain(fetched).find(Self::is_fit)
    }

    fn is_fit(&self) -> bool {
        let says = |flag| {
            let asked = Command::new(&self.program).arg(flag).stdin(Stdio::null()).output().ok()?;
            Some(String::from_utf8_lossy(&asked.stdout).into_owned())
        };
        self.program.is_file()
            && says("--version").is_some_and(|text| version(&text) >= Some(VERSION_MIN))
            && says("--help").is_some_and(|text| text.contains("-plugin"))
    }
}

/// `QEMU emulator version 10.0.2 (Debian …)`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (_, version) = text.split_once(" version ")?;
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// A machine that can be booted.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) kernel: Found,
    /// More words for the kernel.
    pub(super) parameters: String,
    pub(super) memory_mib: u64,
    /// Whether half of the memory is on a node without a processor.
    pub(super) has_two_nodes: bool,
    /// Modules that it loads, where the kernel came with some.
    pub(super) modules: &'static [&'static str],
    /// Bytes of a disk with an empty file system; 0 for none.
    pub(super) disk: u64,
}

impl Machine {
    /// Boots it, waits for its end, and reads what the plugin wrote.
    ///
    /// # Errors
    /// When it does not boot, its kernel panics, or what it was told cannot be done.
    pub(super) fn run(&self, inside: &Inside) -> Result<Log, Error> {
        let Prepared { command, console, .. } = &mut self.prepared(inside)?;
        let plugin = plugin().ok_or_else(|| lacks(&PLUGIN))?;
        let plugin = plugin.display().to_string().replace(',', ",,");
        let mut log = memfd::create("pagelab-log")?;
        command.arg("-plugin").arg(format!("{plugin},log={}", named(&log)));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let ended = command.spawn().and_then(Child::wait_with_output);
        let ended = ended.map_err(|error| cannot_start(command, &error))?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        judged(ended.status.code(), &text(&mut log), &said, &text(console))
    }

    /// Boots it without the plugin, and steps through a window.
    ///
    /// # Errors
    /// When it does not boot, or does not come to the window.
    pub(super) fn step(&self, inside: &Inside, target: &Target) -> Result<Steps, Error> {
        let Prepared { command, console, .. } = &mut self.prepared(inside)?;
        command.args(["-S", "-gdb", "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut emulator = command.spawn().map_err(|error| cannot_start(command, &error))?;
        let steps = Debugger::of(&mut emulator).expect("both are pipes").step(target);
        // It is about to go on, or waits for the next step.
        let ended = emulator.kill().and_then(|()| emulator.wait_with_output());
        let said = ended.map_err(|error| cannot_start(command, &error))?.stderr;
        let said = String::from_utf8_lossy(&said).into_owned();
        steps.map_err(|error| {
            Error::Case(whole(
                &format!("stepping through a window: {error}"),
                &said,
                &text(console),
            ))
        })
    }

    /// All but what looks at it.
    fn prepared(&self, inside: &Inside) -> Result<Prepared, Error> {
        let modules = self.modules()?;
        let load = modules.iter().map(|(path, _)| path.clone()).collect();
        let orders = Orders { inside: inside.clone(), has_disk: self.disk > 0, load };
        let orders = serde_json::to_vec(&orders).expect("orders have text keys");
        let archive = initrd::archive(&orders, &modules)?;
        let mut initrd = memfd::create("pagelab-initrd")?;
        let written = initrd.write_all(&archive);
        written.map_err(|error| Error::Case(format!("the initramfs: {error}")))?;
        let console = memfd::create("pagelab-console")?;
        let mut command = self.command(&initrd, &console)?;
        let disk = if self.disk > 0 { Some(disk::image(self.disk)?) } else { None };
        if let Some(disk) = &disk {
            // A driver of it is in the kernels of most distributions, and no module.
            let drive = format!("if=none,id=disk,format=raw,file={}", named(disk));
            command.args(["-drive", &drive, "-device", "nvme,drive=disk,serial=path"]);
        }
        child::dies_with_us(&mut command);
        command.stderr(Stdio::piped());
        Ok(Prepared { command, console, _others: (initrd, disk) })
    }

    /// The paths of its modules in the machine, and what they are, in the order of loading.
    fn modules(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let Some(folder) = self.kernel.modules.as_ref().filter(|_| !self.modules.is_empty()) else {
            return Ok(Vec::new());
        };
        let found = Modules::of(folder).and_then(|modules| modules.ordered(self.modules));
        let found = found.map_err(|error| Error::Case(format!("modules: {error:#}")))?;
        Ok(found.into_iter().map(|(name, file)| (format!("/modules/{name}"), file)).collect())
    }

    fn command(&self, initrd: &File, console: &File) -> Result<Command, Error> {
        let emulator = Emulator::find().ok_or_else(|| lacks(&EMULATOR))?;
        let mut command = Command::new(&emulator.program);
        for folder in &emulator.data {
            command.arg("-L").arg(folder);
        }
        command.args(["-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m"]);
        // Even, so that it has two halves.
        command.arg(format!("{}M", self.memory_mib & !1));
        if self.has_two_nodes {
            let half = self.memory_mib / 2;
            for node in 0..2 {
                let cpus = if node == 0 { ",cpus=0" } else { "" };
                command.args(["-object", &format!("memory-backend-ram,id=m{node},size={half}M")]);
                command.args(["-numa", &format!("node,nodeid={node}{cpus},memdev=m{node}")]);
            }
        }
        // Time goes by instructions, a nanosecond each, so that timers come after as many of them
        // in every boot, however busy the host is; while the processor idles it is passed over.
        command.args(["-icount", "shift=0,sleep=off"]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.arg("-serial").arg(format!("file:{}", named(console)));
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        command.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(named(initrd));
        let [in_place, anywhere] = IN_PLACE;
        let is_anywhere = self.parameters.split(' ').any(|word| word == anywhere);
        let place = if is_anywhere { anywhere } else { in_place };
        let words = format!("{PARAMETERS} {place} {} -- {COMMAND}", self.parameters);
        command.arg("-append").arg(words);
        Ok(command)
    }
}

/// An emulator that is about to start, with the files that it is given and writes.
#[derive(Debug)]
struct Prepared {
    command: Command,
    console: File,
    _others: (File, Option<File>),
}

fn lacks(need: &Plain) -> Error {
    Error::Case(format!("{}: {}", need.name, need.cure))
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Error {
    Error::Case(format!("cannot start {}: {error}", command.get_program().display()))
}

/// What a machine left, with what its emulator and its kernel said; or why it is nothing.
fn judged(code: Option<i32>, log: &str, said: &str, console: &str) -> Result<Log, Error> {
    let failed = |why: &str| Err(Error::Case(whole(why, said, console)));
    let log = match Log::read(log) {
        Ok(log) => log,
        Err(why) => return failed(&why),
    };
    // The guest leaves with 0, of which QEMU makes 1.
    match (code, log.failure()) {
        (_, Some(error)) => Err(error),
        (Some(1), None) if log.record.is_some() => Ok(log),
        _ if log.is_open => failed("the machine ended within a window"),
        _ if log.kernel.release.is_empty() => failed(
            "the machine never came to its first process: is this a kernel for x86-64 that has \
             CONFIG_BLK_DEV_INITRD, CONFIG_BINFMT_ELF and CONFIG_SERIAL_8250_CONSOLE",
        ),
        _ => failed("the machine ended before its time"),
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What went wrong, with the last words of the emulator and of the kernel.
fn whole(why: &str, said: &str, console: &str) -> String {
    let last = |text: &str| {
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        line.map(str::to_owned)
    };
    let panic = console.lines().find(|line| line.contains("Kernel panic")).map(str::to_owned);
    let words = [("QEMU", last(said)), ("the console", panic.or_else(|| last(console)))];
    words.into_iter().fold(why.to_owned(), |why, (who, words)| match words {
        Some(words) => format!("{why}; {who} says: {words}"),
        None => why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_two_numbers() {
        assert_eq!(version("QEMU emulator version 10.0.2 (Debian 1:10.0.2)\n"), Some((10, 0)));
        assert_eq!(version("QEMU emulator version 9.2\n"), Some((9, 2)));
        assert_eq!(version("error while loading shared libraries"), None);
        assert!(Some((10, 0)) >= Some(VERSION_MIN) && Some((7, 2)) < Some(VERSION_MIN));
    }

    #[test]
    fn whoever_ends_too_early_is_told_with_its_last_words() {
        const PANIC: &str = "[1] Kernel panic - not syncing: Fatal exception\n";
        let kernel = "{\"say\":{\"kernel\":{\"release\":\"6.12.1\",\"command\":\"\"}}}\n";
        let end = |is_open: bool| format!("{{\"end\":{{\"is_open\":{is_open}}}}}\n");
        let came = [kernel, &end(false)].concat();
        let open = [kernel, &end(true)].concat();
        let (none, two) = (end(false), "QEMU: a machine of 2 processors: a path is that of one");
        for (code, log, said, console, wanted) in [
            (Some(0), &*open, "", PANIC, ["within a window", "Fatal exception"]),
            (Some(0), &*came, "", PANIC, ["before its time", "Fatal exception"]),
            (None, &*came, "killed", "", ["before its time", "QEMU says: killed"]),
            (Some(0), &*none, "", "VFS: no root\n", ["first process", "VFS: no root"]),
            (Some(1), "", two, "", ["the log ends before", "2 processors"]),
        ] {
            let error = judged(code, log, said, console).unwrap_err().to_string();
            assert!(wanted.iter().all(|words| error.contains(words)), "{error}");
        }
    }

    #[test]
    fn last_words_are_those_of_a_panic_where_there_was_one() {
        let console = "[1] Kernel panic - not syncing: x\n[2] ---[ end ]---\n\n";
        let said = whole("it ended", "", console);
        assert_eq!(said, "it ended; the console says: [1] Kernel panic - not syncing: x");
        assert_eq!(whole("it ended", "a\nb\n", ""), "it ended; QEMU says: b");
    }
}
