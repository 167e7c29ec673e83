//! A machine: what its emulator is told, and what becomes of it.
//!
//! The one idea: the machine is one processor, always emulated, with nothing in it that could ask
//! for attention but a timer and a serial line. It stops where its first process waits for orders,
//! and is saved there for whoever has other orders for the same machine. Files that it is given and
//! that it writes are in memory and have no name, so that a machine that is killed leaves nothing.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    process::{Command, Stdio},
};

use pagelab_bench::{Error, Plain, digest};
use pagelab_initrd::Modules;
use pagelab_sys::{memory::memfd, process::child};

use pagelab_mappings::kinds::KINDS;

use super::{
    debugger::{Debugger, Steps, Target},
    disk::{self, named},
    guest::{COMMAND, ORDERS, Orders},
    initrd,
    inside::Inside,
    kernel::Found,
    log::Log,
    monitor::Monitor,
    qemu::{EMULATOR, Emulator, PLUGIN, plugin},
    saved::{Place, Saved},
};

/// What the kernel is told in every machine. Addresses of programs are the same in every boot; with
/// one processor a kernel would take the locks off its locked instructions; and an eighth of all
/// that is executed before the first process would be a test of a source of random numbers.
const PARAMETERS: &str = "console=ttyS0 loglevel=4 panic=-1 oops=panic noreplace-smp norandmaps \
                          initcall_blacklist=jent_mod_init audit=0 no_timer_check";
/// Where the kernel lies is the same in every boot, too, unless somebody asks for another.
const IN_PLACE: [&str; 2] = ["nokaslr", "kaslr"];

/// A machine that can be booted.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) kernel: Found,
    /// More words for the kernel.
    pub(super) parameters: String,
    pub(super) memory_mib: u64,
    /// Whether half of the memory is on a node without a processor.
    pub(super) has_two_nodes: bool,
    /// Whether it loads modules, where the kernel came with some.
    pub(super) has_modules: bool,
    /// Whether its program is in a memory cgroup of its own.
    pub(super) has_group: bool,
    /// Bytes of a disk with an empty file system; 0 for none.
    pub(super) disk: u64,
}

/// What came of a machine.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) log: Log,
    /// Whether it was booted, and not one that was saved.
    pub(super) is_booted: bool,
    /// Why it was not saved, though it should have been.
    pub(super) unsaved: Option<String>,
}

/// How a machine comes to where it waits for its orders.
#[derive(Debug)]
enum Start {
    /// It is not saved, with the reason, unless nobody wanted it to be.
    Boot(Option<String>),
    BootAndSave(Place),
    Load(Place),
}

impl Machine {
    /// Has a machine of this kind that was saved measure a case. Where there is none it is booted,
    /// and saved on the way.
    ///
    /// # Errors
    /// When it does not boot, its kernel panics, or what it was told cannot be done.
    pub(super) fn run(&self, inside: &Inside) -> Result<Ran, Error> {
        if self.disk > 0 {
            // What is on the disk would have to be saved with it, and QEMU saves no NVMe.
            return self.boot(inside);
        }
        let prepared = self.prepared(inside)?;
        let start = match Saved::find(&prepared.digest) {
            Ok(Saved::Whole(place)) => match prepared.conduct(Start::Load(place))? {
                Some(ran) => return Ok(ran),
                // Made by an emulator that only says that it is the same.
                None => return self.booted(inside, Some("it could not be loaded".to_owned())),
            },
            Ok(Saved::Missing(place)) => Start::BootAndSave(place),
            Err(why) => Start::Boot(Some(why)),
        };
        Ok(prepared.conduct(start)?.expect("what is booted is not loaded"))
    }

    /// Boots it to measure a case, whatever was saved.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub(super) fn boot(&self, inside: &Inside) -> Result<Ran, Error> {
        self.booted(inside, None)
    }

    fn booted(&self, inside: &Inside, unsaved: Option<String>) -> Result<Ran, Error> {
        let ran = self.prepared(inside)?.conduct(Start::Boot(unsaved))?;
        Ok(ran.expect("what is booted is not loaded"))
    }

    /// Boots it without the plugin, and steps through windows.
    ///
    /// # Errors
    /// When it does not boot, or does not come to the windows.
    pub(super) fn step(&self, inside: &Inside, target: &Target) -> Result<Steps, Error> {
        let Prepared { command, console, .. } = &mut self.prepared(inside)?;
        command.args(["-S", "-gdb", "stdio"]);
        let mut emulator = command.spawn().map_err(|error| cannot_start(command, &error))?;
        let steps = Debugger::of(&mut emulator).expect("both are pipes").step(target);
        // It is about to go on, or waits for the next step.
        let ended = emulator.kill().and_then(|()| emulator.wait_with_output());
        let said = ended.map_err(|error| cannot_start(command, &error))?.stderr;
        let said = String::from_utf8_lossy(&said).into_owned();
        steps.map_err(|error| {
            Error::Case(whole(&format!("stepping through windows: {error}"), &said, &text(console)))
        })
    }

    /// All but what looks at it.
    fn prepared(&self, inside: &Inside) -> Result<Prepared, Error> {
        let emulator = Emulator::find().ok_or_else(|| lacks(&EMULATOR))?;
        let failed =
            |error: io::Error| Error::Case(format!("{}: {error}", self.kernel.image.display()));
        let kernel = digest::of_file(&File::open(&self.kernel.image).map_err(failed)?);
        let kernel = kernel.map_err(failed)?;
        let modules = self.modules()?;
        let load = if self.has_modules { &modules[..] } else { &[] };
        let load = load.iter().map(|(path, _)| path.clone()).collect();
        let (inside, has_disk, has_group) = (inside.clone(), self.disk > 0, self.has_group);
        let orders = Orders { inside, has_disk, has_group, load };
        let orders = serde_json::to_vec(&orders).expect("orders have text keys");
        let archive = initrd::archive(&modules)?;
        let words = self.words();
        let program = emulator.program.to_string_lossy();
        let whole = (&emulator.version, program, kernel, digest::of_bytes(&archive), &words);
        let digest = digest::of_bytes(&serde_json::to_vec(&whole).expect("all of it is text"));
        let (initrd, orders) =
            (filled("pagelab-initrd", &archive)?, filled("pagelab-orders", &orders)?);
        let console = memfd::create("pagelab-console")?;
        let mut command = Command::new(&emulator.program);
        for folder in &emulator.data {
            command.arg("-L").arg(folder);
        }
        command.args(words);
        command.arg("-serial").arg(format!("file:{}", named(&console)));
        command.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(named(&initrd));
        command.arg("-fw_cfg").arg(format!("name={ORDERS},file={}", named(&orders)));
        let disk = if self.disk > 0 { Some(disk::image(self.disk)?) } else { None };
        if let Some(disk) = &disk {
            // A driver of it is in the kernels of most distributions, and no module.
            let drive = format!("if=none,id=disk,format=raw,file={}", named(disk));
            command.args(["-drive", &drive, "-device", "nvme,drive=disk,serial=path"]);
        }
        child::dies_with_us(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Prepared { command, console, digest, _others: (initrd, orders, disk) })
    }

    /// The paths of modules in the machine, and what they are, in the order of loading: those of
    /// all kinds, where the kernel came with them, so that one machine is for all.
    fn modules(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let Some(folder) = &self.kernel.modules else { return Ok(Vec::new()) };
        let all: Vec<&str> = KINDS.iter().flat_map(|kind| kind.modules).copied().collect();
        let found = Modules::of(folder).and_then(|modules| modules.ordered(&all));
        match found {
            Ok(found) => Ok(found
                .into_iter()
                .map(|(name, file)| (format!("/modules/{name}"), file))
                .collect()),
            Err(_) if !self.has_modules => Ok(Vec::new()),
            Err(error) => Err(Error::Case(format!("modules: {error:#}"))),
        }
    }

    /// What the emulator is told of the machine itself.
    fn words(&self) -> Vec<String> {
        let mut words: Vec<String> =
            ["-machine", "q35,mem-merge=off", "-accel", "tcg", "-cpu", "max"]
                .into_iter()
                .chain(["-smp", "1", "-m"])
                .map(str::to_owned)
                .collect();
        let mut say = |these: &[&str]| words.extend(these.iter().map(|word| (*word).to_owned()));
        say(&[&format!("{}M", self.memory_mib)]);
        if self.has_two_nodes {
            let half = self.memory_mib / 2;
            for node in 0..2 {
                let cpus = if node == 0 { ",cpus=0" } else { "" };
                say(&["-object", &format!("memory-backend-ram,id=m{node},size={half}M")]);
                say(&["-numa", &format!("node,nodeid={node}{cpus},memdev=m{node}")]);
            }
        }
        // Time goes by instructions, a nanosecond each, so that timers come after as many of them
        // in every boot, however busy the host is; while the processor idles it is passed over.
        say(&["-icount", "shift=0,sleep=off"]);
        say(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        say(&["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        say(&["-device", "pvpanic", "-action", "panic=pause"]);
        let [in_place, anywhere] = IN_PLACE;
        let is_anywhere = self.parameters.split(' ').any(|word| word == anywhere);
        let place = if is_anywhere { anywhere } else { in_place };
        say(&["-append", &format!("{PARAMETERS} {place} {} -- {COMMAND}", self.parameters)]);
        words
    }
}

fn filled(name: &str, contents: &[u8]) -> Result<File, Error> {
    let mut file = memfd::create(name)?;
    file.write_all(contents).map_err(|error| Error::Case(format!("{name}: {error}")))?;
    Ok(file)
}

/// An emulator that is about to start, with the files that it is given and writes.
#[derive(Debug)]
struct Prepared {
    command: Command,
    console: File,
    /// Of all that the machine is before it has its orders.
    digest: String,
    _others: (File, File, Option<File>),
}

impl Prepared {
    /// Starts it with the plugin, has it come to its orders, and waits for its end. Nothing, where
    /// it could not be loaded.
    fn conduct(mut self, start: Start) -> Result<Option<Ran>, Error> {
        let plugin = plugin().ok_or_else(|| lacks(&PLUGIN))?;
        let plugin = plugin.display().to_string().replace(',', ",,");
        let mut log = memfd::create("pagelab-log")?;
        self.command.arg("-plugin").arg(format!("{plugin},log={}", named(&log)));
        self.command.args(["-qmp", "stdio"]);
        if let Start::Load(_) = start {
            self.command.args(["-incoming", "defer"]);
        }
        let emulator = self.command.spawn();
        let mut emulator = emulator.map_err(|error| cannot_start(&self.command, &error))?;
        let mut monitor = Monitor::of(&mut emulator).expect("both are pipes");
        let mut came = monitor.greet();
        let (mut is_booted, mut unsaved) = (true, None);
        match start {
            Start::Boot(why) => {
                came = came.and_then(|()| monitor.await_stop());
                unsaved = why;
            }
            Start::BootAndSave(place) => {
                came = came.and_then(|()| monitor.await_stop());
                let saved = came.is_ok().then(|| monitor.save(&named(&place.file)));
                unsaved = match saved {
                    Some(Ok(())) => place.finish().err().map(|error| error.to_string()),
                    failed => {
                        place.remove();
                        failed.and_then(Result::err).map(|error| error.to_string())
                    }
                };
            }
            Start::Load(place) => {
                if came.is_ok() && monitor.load(&named(&place.file)).is_err() {
                    place.remove();
                    let ended = emulator.kill().and_then(|()| emulator.wait());
                    return ended
                        .map(|_| None)
                        .map_err(|error| cannot_start(&self.command, &error));
                }
                is_booted = false;
            }
        }
        if let Err(error) = came.and_then(|()| monitor.go_on())
            && !has_ended(&error)
        {
            let ended = emulator.kill().and_then(|()| emulator.wait());
            ended.map_err(|error| cannot_start(&self.command, &error))?;
            return Err(Error::Case(format!("the emulator: {error}")));
        }
        let ended = emulator.wait_with_output();
        let ended = ended.map_err(|error| cannot_start(&self.command, &error))?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let log = judged(ended.status.code(), &text(&mut log), &said, &text(&mut self.console))?;
        Ok(Some(Ran { log, is_booted, unsaved }))
    }
}

/// Whether a conversation ended because the emulator did: what it left tells more then.
fn has_ended(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
}

fn lacks(need: &Plain) -> Error {
    Error::Case(format!("{}: {}", need.name, need.cure))
}

fn cannot_start(command: &Command, error: &io::Error) -> Error {
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
