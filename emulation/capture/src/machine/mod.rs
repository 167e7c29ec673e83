#![expect(unsafe_code, reason = "what QEMU hands back is a pointer of ours; rules below")]
//! The recorder of a whole machine: what its processor executes between two marks of the guest.
//!
//! The one idea: until the guest says so, nothing is registered but a look at blocks of user space
//! for marks, so that booting costs next to nothing. From the mark [`Mark::Watch`] on everything is
//! translated anew, with a callback before each instruction and after each access, and what is
//! executed in a window goes into the log: a line of JSON for each path that is new, and one for
//! each sample. The guest's own words, which it leaves in its memory, go between them.
//!
//! # Rules
//! 1. What is handed to QEMU with a callback is an [`Insn`] of ours that is never freed: QEMU may
//!    run a translated block until it ends.

mod insn;
mod window;

use std::{
    collections::HashMap,
    ffi::{c_int, c_uint, c_void},
    fmt::Write as _,
    fs::File,
    io::{self, BufWriter, Write},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use self::{
    insn::{Mark, mark, shape},
    window::{Insn, Run, Window},
};
use crate::{
    api::{Api, Block, Whole},
    named,
};

/// Addresses of user space are below.
const KERNEL: u64 = 1 << 63;
/// The longest message of a guest: its symbols are a few MiB.
const MESSAGE_MAX: u64 = 64 << 20;

static MACHINE: OnceLock<Machine> = OnceLock::new();
/// Whether a window is open.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Machine {
    id: u64,
    api: Api,
    whole: Whole,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: BufWriter<File>,
    window: Window,
    paths: HashMap<Vec<Run>, usize>,
    /// Why the log ends before the guest does.
    failed: Option<io::Error>,
}

/// Called once, before the machine starts.
pub(super) fn install(
    id: u64,
    target: &str,
    vcpus: c_int,
    arguments: &[String],
) -> Result<(), String> {
    if target != "x86_64" {
        return Err(format!("a machine of {target} cannot be watched: only x86_64"));
    }
    if vcpus != 1 {
        return Err(format!("a machine of {vcpus} processors: a path is that of one (-smp 1)"));
    }
    let [argument] = arguments else {
        return Err("exactly one option is wanted: log=FILE".to_owned());
    };
    let path = argument
        .strip_prefix("log=")
        .ok_or_else(|| format!("no option is called `{argument}`; there is log=FILE"))?;
    let (api, whole) = (Api::of_this_process()?, Whole::of_this_process()?);
    let log =
        named::empty(path.as_ref()).map_err(|error| format!("cannot write {path}: {error}"))?;
    let log = BufWriter::new(log);
    let (window, paths) = (Window::default(), HashMap::new());
    let state = Mutex::new(State { log, window, paths, failed: None });
    let machine = Machine { id, api, whole, state };
    MACHINE.set(machine).map_err(|_| "loaded twice".to_owned())?;
    api.register(id, translated_unwatched, exited);
    Ok(())
}

impl Machine {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers what a mark in a block does.
    fn attend(&self, block: Block, is_watched: bool) {
        let mut says = false;
        for one in self.api.insns(block) {
            let (addr, bytes) = self.api.place(one);
            let (code, length) = self.whole.code(one);
            let code = &code[..length.min(bytes)];
            if std::mem::take(&mut says) {
                self.api.on_access(one, said, std::ptr::null_mut());
            }
            let mark = if addr < KERNEL { mark(code) } else { None };
            let with = std::ptr::null_mut();
            match mark {
                Some(Mark::Say) => says = true,
                Some(Mark::Watch) => self.api.on_execution(one, watch, with),
                Some(Mark::Rest) => self.api.on_execution(one, rest, with),
                Some(Mark::Begin) if is_watched => self.api.on_execution(one, begin, with),
                Some(Mark::End) if is_watched => self.api.on_execution(one, end, with),
                None if is_watched => {
                    let bytes = u32::try_from(bytes).unwrap_or(0);
                    let insn = Box::new(Insn { addr, bytes, shape: shape(code) });
                    // Rule 1: for as long as the process lives.
                    let with = std::ptr::from_mut(Box::leak(insn)).cast();
                    self.api.on_execution(one, executed, with);
                    self.api.on_access(one, accessed, with);
                }
                _ => (),
            }
        }
    }
}

impl State {
    fn say(&mut self, line: &str) {
        let written = self.log.write_all(line.as_bytes()).and_then(|()| self.log.write_all(b"\n"));
        if let Err(error) = written
            && self.failed.is_none()
        {
            crate::say(&format!("cannot write the log: {error}"));
            self.failed = Some(error);
        }
    }

    /// A window has ended.
    fn sample(&mut self) {
        let runs = self.window.runs();
        let next = self.paths.len();
        let path = if let Some(path) = self.paths.get(runs) {
            *path
        } else {
            let line = path_line(next, runs);
            self.paths.insert(runs.to_vec(), next);
            self.say(&line);
            next
        };
        let places = self.window.places();
        self.say(&format!("{{\"sample\":{{\"path\":{path},\"places\":{places:?}}}}}"));
    }
}

fn path_line(number: usize, runs: &[Run]) -> String {
    let mut line = format!("{{\"path\":{{\"number\":{number},\"runs\":[");
    for (index, run) in runs.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let Run { start, bytes, insns, loads, stores, locked, string, end, stack } = run;
        let end = *end as u8;
        let _ = write!(
            line,
            "{comma}[{start},{bytes},{insns},{loads},{stores},{locked},{string},{end},{stack}]"
        );
    }
    line.push_str("]}}");
    line
}

/// While nothing is watched only user space is looked at: the kernel makes no marks.
extern "C" fn translated_unwatched(_id: u64, block: Block) {
    let Some(machine) = MACHINE.get() else { return };
    let first = machine.api.insns(block).next();
    if first.is_some_and(|insn| machine.api.place(insn).0 < KERNEL) {
        machine.attend(block, false);
    }
}

extern "C" fn translated_watched(_id: u64, block: Block) {
    if let Some(machine) = MACHINE.get() {
        machine.attend(block, true);
    }
}

extern "C" fn watch(_vcpu: c_uint, _with: *mut c_void) {
    extern "C" fn forgotten(id: u64) {
        if let Some(machine) = MACHINE.get() {
            machine.api.register(id, translated_watched, exited);
        }
    }
    if let Some(machine) = MACHINE.get() {
        machine.whole.forget(machine.id, forgotten);
    }
}

extern "C" fn rest(_vcpu: c_uint, _with: *mut c_void) {
    extern "C" fn forgotten(id: u64) {
        if let Some(machine) = MACHINE.get() {
            machine.api.register(id, translated_unwatched, exited);
        }
    }
    if let Some(machine) = MACHINE.get() {
        machine.whole.forget(machine.id, forgotten);
    }
}

extern "C" fn begin(_vcpu: c_uint, _with: *mut c_void) {
    if let Some(machine) = MACHINE.get() {
        machine.state().window.clear();
        IS_OPEN.store(true, Ordering::Relaxed);
    }
}

extern "C" fn end(_vcpu: c_uint, _with: *mut c_void) {
    if IS_OPEN.swap(false, Ordering::Relaxed)
        && let Some(machine) = MACHINE.get()
    {
        machine.state().sample();
    }
}

/// Rule 1.
fn insn_of<'a>(with: *mut c_void) -> &'a Insn {
    // SAFETY: rule 1.
    unsafe { &*with.cast_const().cast::<Insn>() }
}

extern "C" fn executed(_vcpu: c_uint, with: *mut c_void) {
    if IS_OPEN.load(Ordering::Relaxed)
        && let Some(machine) = MACHINE.get()
    {
        machine.state().window.execute(insn_of(with));
    }
}

extern "C" fn accessed(_vcpu: c_uint, info: u32, addr: u64, with: *mut c_void) {
    if IS_OPEN.load(Ordering::Relaxed)
        && let Some(machine) = MACHINE.get()
    {
        let effect = machine.api.effect(info);
        let bytes = effect.bytes as u64;
        machine.state().window.access(insn_of(with), addr, bytes, effect.reads, effect.writes);
    }
}

/// A message: at the address that was loaded from lie its address and its length.
extern "C" fn said(_vcpu: c_uint, _info: u32, addr: u64, _with: *mut c_void) {
    let Some(machine) = MACHINE.get() else { return };
    let word = |at: u64| -> Option<u64> {
        let bytes = machine.whole.memory(at, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let message = || -> Option<Vec<u8>> {
        let (at, length) = (word(addr)?, word(addr.wrapping_add(8))?);
        let length = usize::try_from(length).ok().filter(|_| length <= MESSAGE_MAX)?;
        machine.whole.memory(at, length)
    };
    // What the guest hands on of its kernel's files is lines, which JSON has not: it takes its
    // processor seconds to say that otherwise.
    let plain = |byte: &mut u8| match *byte {
        b'\n' => *byte = b';',
        0..b' ' => *byte = b' ',
        _ => (),
    };
    let text = message().map(|mut bytes| {
        bytes.iter_mut().for_each(plain);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let line =
        text.map_or_else(|| "{\"unheard\":true}".to_owned(), |text| format!("{{\"say\":{text}}}"));
    machine.state().say(&line);
}

extern "C" fn exited(_id: u64, _with: *mut c_void) {
    let Some(machine) = MACHINE.get() else { return };
    let is_open = IS_OPEN.swap(false, Ordering::Relaxed);
    let mut state = machine.state();
    state.say(&format!("{{\"end\":{{\"is_open\":{is_open}}}}}"));
    if let Err(error) = state.log.flush() {
        crate::say(&format!("cannot write the log: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::{window::End, *};

    #[test]
    fn what_cannot_be_watched_is_refused() {
        let log = ["log=/nowhere/at/all".to_owned()];
        for (target, vcpus, arguments, named) in [
            ("riscv64", 1, &log[..], "only x86_64"),
            ("x86_64", 2, &log, "2 processors"),
            ("x86_64", 1, &[], "log=FILE"),
            ("x86_64", 1, &["out=/a".to_owned()], "`out=/a`"),
            ("x86_64", 1, &log, "this QEMU has no"),
        ] {
            let error = install(0, target, vcpus, arguments).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_path_is_a_line_of_json() {
        let run = Run {
            start: u64::MAX,
            bytes: 7,
            insns: 2,
            loads: 1,
            stores: 0,
            locked: 1,
            string: 4096,
            end: End::Calls,
            stack: 1,
        };
        assert_eq!(
            path_line(3, &[run, run]),
            "{\"path\":{\"number\":3,\"runs\":[[18446744073709551615,7,2,1,0,1,4096,1,1],\
             [18446744073709551615,7,2,1,0,1,4096,1,1]]}}"
        );
    }
}
