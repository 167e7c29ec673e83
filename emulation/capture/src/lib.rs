#![expect(unsafe_code, reason = "the edge to C; rules below")]
//! The plugin of QEMU, `libpagelab_capture.so`: under qemu-user it writes a memory trace.
//!
//! The one idea: QEMU calls us before each instruction and after each access of the guest, and we
//! append the operations to a trace in the raw format, in the order in which they happen. Before
//! the first instruction the guest's memory goes into an image, so that what the guest never wrote
//! (code, constants, arguments) is there on replay. `pagelab trace capture` starts QEMU with this;
//! emulation/docs/trace-capture.md says what is captured and what is not. Where a whole machine is
//! emulated it is another recorder, `machine`, that `fault/path` starts QEMU with.
//!
//! It is no library: its only callers are QEMU's loader and QEMU's translated code.
//!
//! # Rules
//! 1. What QEMU's loader passes is valid as its header says: there are `count` arguments, and
//!    `info` and its name live as long as the call.
//! 2. A process that the guest forks is not captured, and touches nothing of the capture.

mod api;
mod guest;
mod machine;
mod named;
mod options;
mod recorder;
mod shared;

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Once, OnceLock,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
};

use pagelab_trace::op::FETCHED;

use crate::{
    api::{Api, Block, Executed, Info},
    guest::{Memory, pieces},
    options::{Fetch, Options},
    recorder::{Next, Recorder},
    shared::{Shared, State},
};

/// The version of the interface that this plugin was made for; QEMU reads it after
/// [`CHOOSE_VERSION`] has set it.
#[unsafe(no_mangle)]
pub(crate) static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Called when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = {
    extern "C" fn choose() {
        qemu_plugin_version.store(api::version_served(), Ordering::Relaxed);
    }
    choose
};

/// Exit code of a guest whose capture failed.
const FAILED: c_int = 1;

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
/// Off in a process that the guest forked, and after the end.
static IS_CAPTURING: AtomicBool = AtomicBool::new(true);

#[derive(Debug)]
struct Plugin {
    api: Api,
    memory: Memory,
    recorder: Recorder,
    fetch: Option<Executed>,
    image: Option<PathBuf>,
    started: Once,
    /// Whether somebody reads the counters; otherwise we say on stderr how it ended.
    is_watched: bool,
}

/// Called by QEMU once, before the guest is loaded.
///
/// # Safety
/// As QEMU's loader does: rule 1.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: rule 1.
    let info = unsafe { &*info };
    // SAFETY: rule 1.
    let target = unsafe { CStr::from_ptr(info.target) }.to_string_lossy();
    let arguments: Vec<String> = (0..usize::try_from(count).unwrap_or(0))
        .map(|index| {
            // SAFETY: rule 1.
            let argument = unsafe { arguments.add(index) };
            // SAFETY: rule 1.
            let argument = unsafe { *argument };
            // SAFETY: rule 1.
            unsafe { CStr::from_ptr(argument) }.to_string_lossy().into_owned()
        })
        .collect();
    let installed = if info.is_system {
        machine::install(id, &target, info.vcpus[1], &arguments)
    } else {
        install(id, &target, &arguments)
    };
    match installed {
        Ok(()) => 0,
        Err(why) => {
            say(&why);
            -1
        }
    }
}

fn install(id: u64, target: &str, arguments: &[String]) -> Result<(), String> {
    let fetched = match target {
        "riscv64" => halfwords_fetched,
        "x86_64" => bytes_fetched,
        other => {
            return Err(format!("a guest for {other} cannot be captured: only riscv64 and x86_64"));
        }
    };
    let options = Options::parse(arguments.iter().map(String::as_str))?;
    let api = Api::of_this_process()?;
    let is_watched = options.shared.is_some();
    let shared = Shared::map(options.shared.as_deref())
        .map_err(|error| format!("cannot map the buffer: {error}"))?;
    // After the buffer: that is no memory of the guest's.
    let memory = Memory::at(options.base).map_err(|error| format!("/proc/self/maps: {error}"))?;
    let plugin = Plugin {
        api,
        memory,
        recorder: Recorder::new(shared, options.out, options.max)?,
        fetch: match options.fetch {
            Fetch::On => Some(fetched),
            Fetch::Off => None,
            Fetch::Apart => Some(fetched_apart),
        },
        image: options.image,
        started: Once::new(),
        is_watched,
    };
    PLUGIN.set(plugin).map_err(|_| "loaded twice".to_owned())?;
    leave_children_alone(is_watched)?;
    api.register(id, translated, exited);
    Ok(())
}

/// A forked child shares the buffer and the trace, and is not captured; a capture that somebody
/// watches dies with whoever does.
fn leave_children_alone(is_watched: bool) -> Result<(), String> {
    extern "C" fn in_the_child() {
        IS_CAPTURING.store(false, Ordering::Relaxed);
    }
    // SAFETY: the function touches one atomic.
    if unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) } != 0 {
        return Err("cannot tell forked children apart".to_owned());
    }
    if is_watched {
        // SAFETY: sets an attribute of this process.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }
    Ok(())
}

/// The capture, while there is one.
#[inline]
fn capturing() -> Option<&'static Plugin> {
    PLUGIN.get().filter(|_| IS_CAPTURING.load(Ordering::Relaxed))
}

extern "C" fn translated(_id: u64, block: Block) {
    let Some(plugin) = capturing() else { return };
    plugin.started.call_once(|| plugin.start());
    for insn in plugin.api.insns(block) {
        if let Some(fetched) = plugin.fetch {
            let (addr, bytes) = plugin.api.place(insn);
            plugin.api.on_execution(insn, fetched, pack(addr, bytes));
        }
        plugin.api.on_access(insn, accessed, std::ptr::null_mut());
    }
}

/// Address and length of an instruction in one word: no instruction has more than 15 bytes, and an
/// address has 60 bits, sign-extended.
#[expect(clippy::cast_possible_truncation, reason = "QEMU runs 64-bit guests on 64-bit hosts only")]
fn pack(addr: u64, bytes: usize) -> *mut c_void {
    ((addr << 4) as usize | bytes & 15) as *mut c_void
}

#[inline]
fn unpack(packed: *mut c_void) -> (u64, usize) {
    let word = packed as usize as u64;
    ((word.cast_signed() >> 4).cast_unsigned(), (word & 15) as usize)
}

/// RISC-V: halfwords, which every instruction is made of.
extern "C" fn halfwords_fetched(_vcpu: c_uint, packed: *mut c_void) {
    use pagelab_trace::Width::W2;
    let Some(plugin) = capturing() else { return };
    let (addr, bytes) = unpack(packed);
    plugin.append(|pen| {
        pen.load(addr, W2);
        for at in (2..bytes).step_by(2) {
            pen.load(addr.wrapping_add(at as u64), W2);
        }
    });
}

/// x86-64: the widest pieces that are left of it, of 8, 4, 2 and 1 bytes.
extern "C" fn bytes_fetched(_vcpu: c_uint, packed: *mut c_void) {
    let Some(plugin) = capturing() else { return };
    let (addr, bytes) = unpack(packed);
    plugin.append(|pen| pieces(addr, bytes).for_each(|(addr, width)| pen.load(addr, width)));
}

/// Any machine: one load for each instruction, told from those of data by its address.
extern "C" fn fetched_apart(_vcpu: c_uint, packed: *mut c_void) {
    let Some(plugin) = capturing() else { return };
    let (addr, _) = unpack(packed);
    plugin.append(|pen| pen.load(addr | FETCHED, pagelab_trace::Width::W1));
}

extern "C" fn accessed(_vcpu: c_uint, info: u32, addr: u64, _with: *mut c_void) {
    let Some(plugin) = capturing() else { return };
    let effect = plugin.api.effect(info);
    if effect.reads {
        plugin.append(|pen| {
            pieces(addr, effect.bytes).for_each(|(addr, width)| pen.load(addr, width));
        });
    }
    if effect.writes {
        for (addr, width) in pieces(addr, effect.bytes) {
            // Before the turn: a guest that unmapped this meanwhile leaves here by a signal.
            let value = plugin.memory.stored(addr, width);
            plugin.append(|pen| pen.store(addr, width, value));
        }
    }
}

extern "C" fn exited(_id: u64, _with: *mut c_void) {
    if let Some(plugin) = capturing() {
        plugin.end(State::Exited);
    }
}

impl Plugin {
    /// Before the first instruction: the image.
    fn start(&self) {
        if let Some(path) = &self.image {
            match self.write_image(path) {
                Ok(bytes) => {
                    self.recorder.shared().head().image.store(bytes, Ordering::Relaxed);
                }
                Err(error) => self.fail(State::ImageFailed, path, &error),
            }
        }
        self.recorder.shared().head().enter(State::Running);
    }

    fn write_image(&self, path: &Path) -> io::Result<u64> {
        let file = named::empty(path)?;
        let mut out = BufWriter::new(file);
        self.memory.image()?.write_elf(&mut out)?;
        out.flush()?;
        out.get_ref().metadata().map(|about| about.len())
    }

    #[inline]
    fn append(&self, write: impl FnOnce(&mut recorder::Pen<'_>)) {
        match self.recorder.pen() {
            Ok(mut pen) => {
                write(&mut pen);
                if pen.put_down() == Next::Full {
                    self.end_full();
                }
            }
            Err(error) => self.fail_to_write(&error),
        }
    }

    #[cold]
    fn end_full(&self) {
        self.end(State::Full);
        // The guest is not asked: what it has not written yet is lost, as documented.
        exit(0);
    }

    fn end(&self, state: State) {
        IS_CAPTURING.store(false, Ordering::Relaxed);
        if let Err(error) = self.recorder.finish(state) {
            self.fail_to_write(&error);
        }
        if !self.is_watched {
            let ops = self.recorder.shared().head().ops.load(Ordering::Relaxed);
            say(&format!("{ops} operations in {}", self.recorder.out().display()));
        }
    }

    #[cold]
    fn fail_to_write(&self, error: &io::Error) -> ! {
        self.fail(State::TraceFailed, self.recorder.out(), error)
    }

    /// Ends the guest: a trace with a hole is none.
    #[cold]
    fn fail(&self, state: State, path: &Path, error: &io::Error) -> ! {
        let head = self.recorder.shared().head();
        let number = error.raw_os_error().unwrap_or(0);
        head.errno.store(u64::from(number.cast_unsigned()), Ordering::Relaxed);
        head.enter(state);
        if !self.is_watched {
            say(&format!("cannot write {}: {error}", path.display()));
        }
        exit(FAILED)
    }
}

/// Ends the process from within a callback, where QEMU's own way out would wait for us.
fn exit(code: c_int) -> ! {
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(code) }
}

fn say(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr().lock(), "pagelab capture: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_its_address_and_length() {
        for addr in [0, 0x1_0001, 0x7FFF_FFFF_FFFF, 0xFFFF_FFFF_FF60_0000] {
            for bytes in 1..16 {
                assert_eq!(unpack(pack(addr, bytes)), (addr, bytes));
            }
        }
    }

    #[test]
    fn what_cannot_be_captured_is_refused() {
        let arguments = ["out=/a".to_owned(), "base=1".to_owned()];
        let error = install(0, "ppc64le", &arguments).unwrap_err();
        assert!(error.contains("for ppc64le"), "{error}");
        let error = install(0, "riscv64", &[]).unwrap_err();
        assert!(error.contains("out=PATH is missing"), "{error}");
        let error = install(0, "riscv64", &arguments).unwrap_err();
        assert!(error.contains("this QEMU has no"), "{error}");
    }
}
