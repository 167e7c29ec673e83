//! `explain --translation=capture`: the program once more, under emulation, and after how many
//! other pages it uses each page again.
//!
//! The one idea: the accesses go from the plugin through a pipe into the model
//! ([`pagelab_trace::stats::Uses`]), so that no trace lies anywhere, however long it is. Nobody
//! sees this run: it reads a file anew or nothing, and what it writes is thrown away.

mod memory;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, ErrorKind, IsTerminal, PipeReader, Read, Seek, SeekFrom},
    os::unix::{
        fs::{FileTypeExt, MetadataExt},
        process::ExitStatusExt,
    },
    path::Path,
    process::{ExitStatus, Stdio},
    thread,
};

use anyhow::anyhow;
use pagelab_record::walks::{Captured, End, Pages, Uses};
use pagelab_sys::{machine::Tree, memory::memfd, process::interrupted};
use pagelab_trace::{
    decode,
    stats::{self, Reused},
};

use self::memory::{CLASSES, Memory, PLACES};
use pagelab_cli::{exit::Failure, output};
use pagelab_emulation::capture::{Counters, Ready, State, attend, place};

/// Operations after which a capture ends, unless told otherwise.
pub(super) const OPS_MAX: u64 = 1_000_000_000;
/// The QEMU whose programs this machine runs itself.
const NATIVE: &str = if cfg!(target_arch = "riscv64") { "qemu-riscv64" } else { "qemu-x86_64" };
/// What asks for it.
const COMMAND: &str = "pagelab explain --translation=capture";
/// The kind of memory that is executed.
const INSTRUCTIONS: &str = "instructions";
/// Bytes that are taken from the plugin at once, at most.
const PIECE_BYTES: usize = 256 << 10;
/// The bits of a mode by which a program has its owner's or its group's rights.
const SET_ID: u32 = 0o6000;

/// A run that can be made.
#[derive(Debug)]
pub(super) struct Capture {
    ready: Ready,
    arguments: Vec<OsString>,
    stdin: Option<File>,
    max: u64,
}

impl Capture {
    /// Looks for all that it takes, before the program runs for the first time.
    ///
    /// # Errors
    /// When this host lacks something, or the program cannot be run this way or not twice.
    pub(super) fn prepare(words: &[OsString], max: u64) -> Result<Self, Failure> {
        let (name, arguments) = words.split_first().expect("clap requires a program");
        let ready = Ready::find(name, None, COMMAND)?;
        let path = ready.program.path.as_path();
        let refused = |why: &str| {
            usage!("{} {why}: --translation=sample looks at it while it runs", path.display())
        };
        if ready.program.emulator != NATIVE {
            return Err(refused("is for another machine than this one"));
        }
        if fs::metadata(path).is_ok_and(|about| about.mode() & SET_ID != 0) {
            return Err(refused("is setuid or setgid, and would have other rights in qemu-user"));
        }
        Ok(Self { ready, arguments: arguments.to_vec(), stdin: stdin()?, max })
    }

    /// Runs it; `ended` is how the program ended by itself, `None` where nobody saw.
    ///
    /// # Errors
    /// When QEMU cannot be started or its plugin's counters cannot be read.
    pub(super) fn run(self, ended: Option<ExitStatus>) -> Result<Captured, Failure> {
        let Some(ended) = ended else { return Ok(captured(End::Interrupted, 0, &[])) };
        let (from, pipe) = io::pipe().map_err(Failure::host)?;
        let buffer = memfd::create("pagelab-capture").map_err(Failure::host)?;
        let told = [
            ("out", place(&pipe)),
            ("shared", place(&buffer)),
            ("fetch", "apart".to_owned()),
            ("max", self.max.to_string()),
        ];
        let mut command = self.ready.command(&self.arguments, told);
        command.stdin(self.stdin.map_or_else(Stdio::null, Stdio::from));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let emulator = self.ready.program.emulator;
        let child = child.map_err(|error| host!("cannot start {emulator}: {error}"))?;
        let mut memory = Memory::of(child.id());
        let uses = stats::Uses::new(CLASSES, move |addr| memory.class_of(addr));
        let model = move || Model { uses, kept: Vec::new(), bytes: 0 }.take(from);
        let model = thread::Builder::new().spawn(model).map_err(Failure::host)?;
        let status = attend(child, || model.is_finished()).map_err(Failure::host)?;
        // The plugin is gone, and with this the pipe ends.
        drop(pipe);
        let model = model.join().map_err(|_| Failure::internal(anyhow!("the model failed")))?;
        let mut model = model.map_err(Failure::internal)?;
        let counters = Counters::read(&buffer).map_err(Failure::internal)?;
        let rest = counters.rest(&buffer, model.bytes).map_err(Failure::internal)?;
        model.see(&rest).map_err(Failure::internal)?;
        let end = match counters.state {
            _ if interrupted() => End::Interrupted,
            State::Full => End::Bound,
            State::Exited if status == ended => End::Whole,
            // A signal ends it without a word, as it does by itself.
            State::Running if status.signal().is_some() && status.signal() == ended.signal() => {
                End::Whole
            }
            State::Running if status.success() => End::Became,
            _ => End::Otherwise,
        };
        if end == End::Otherwise {
            output::warn(&format!(
                "under {emulator} the program ended otherwise ({status}) than by itself ({ended}): \
                 what was captured is not used"
            ));
        }
        Ok(captured(end, counters.ops, &model.uses.finish()))
    }
}

/// What the run reads: a file anew from where it stands, or nothing.
fn stdin() -> Result<Option<File>, Failure> {
    const STDIN: &str = "/proc/self/fd/0";
    // What is closed holds nothing either.
    let Ok(about) = fs::metadata(STDIN) else { return Ok(None) };
    let kind = about.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Err(usage!(
            "--translation=capture runs the program twice, and stdin is a pipe, which can be read \
             once: name a file (< FILE), or nothing (< /dev/null)",
        ));
    }
    if !kind.is_file() {
        if io::stdin().is_terminal() {
            output::warn("the program runs twice, and the second time it reads nothing");
        }
        return Ok(None);
    }
    let again = || -> io::Result<File> {
        let at = Tree::machine().field_number("proc/self/fdinfo/0", "pos");
        let mut file = File::open(Path::new(STDIN))?;
        file.seek(SeekFrom::Start(at.unwrap_or(0)))?;
        Ok(file)
    };
    let again = again();
    again.map(Some).map_err(|error| host!("stdin cannot be read twice: {error}"))
}

/// Records on their way into the model.
struct Model<F> {
    uses: stats::Uses<F>,
    /// The start of a record.
    kept: Vec<u8>,
    /// Bytes that came.
    bytes: u64,
}

impl<F: FnMut(u64) -> usize> Model<F> {
    /// Takes all that comes.
    fn take(mut self, mut from: PipeReader) -> io::Result<Self> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return Ok(self),
                Ok(count) => {
                    self.bytes += count as u64;
                    self.see(&piece[..count])?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sees the records that are whole.
    fn see(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.kept.extend_from_slice(bytes);
        let used = decode::visit(&self.kept, 0, &mut self.uses);
        let used = used.map_err(|error| io::Error::other(error.to_string()))?;
        self.kept.drain(..used);
        Ok(())
    }
}

/// As a record has it: places that were used, and what was executed.
fn captured(end: End, ops: u64, reused: &[Reused]) -> Captured {
    let of_places = |counts: &[u64]| -> Vec<Uses> {
        let pairs = counts[..CLASSES].chunks(2);
        let data = pairs.map(|pair| Uses { all: pair[0] + pair[1], whole: pair[1] });
        data.chain([Uses { all: counts[CLASSES], whole: 0 }]).collect()
    };
    let names = PLACES.iter().map(|place| place.name()).chain([INSTRUCTIONS]);
    let first = reused.first().map_or_else(Vec::new, |pages| of_places(&pages.first));
    let is_used: Vec<bool> = first.iter().map(|uses| uses.all > 0).collect();
    let is_told = |at: usize| at == PLACES.len() || is_used.get(at).is_some_and(|is_used| *is_used);
    let told = |counts: &[u64]| -> Vec<Uses> {
        let all = of_places(counts).into_iter().enumerate();
        all.filter(|(at, _)| is_told(*at)).map(|(_, uses)| uses).collect()
    };
    let pages = |reused: &Reused| Pages {
        bytes: 1 << reused.page_shift,
        first: told(&reused.first),
        again: reused.again.iter().map(|(far, counts)| (*far, told(counts))).collect(),
    };
    let places = names.enumerate().filter(|(at, _)| is_told(*at));
    Captured {
        end,
        ops,
        places: places.map(|(_, name)| name.to_owned()).collect(),
        sizes: reused.iter().map(pages).collect(),
    }
}

#[cfg(test)]
mod tests {
    use pagelab_trace::{Op, Width, op::FETCHED, raw};

    use super::*;

    #[test]
    fn records_may_come_in_pieces_of_any_length_and_a_place_has_both_its_classes() {
        let mut bytes = Vec::new();
        for op in [
            Op::store(0x1000, Width::W8, 7),
            Op::load(0x2000, Width::W4),
            Op::load(0x5000 | FETCHED, Width::W1),
            Op::load(0x1008, Width::W1),
        ] {
            raw::encode(op, &mut bytes);
        }
        let class_of = |addr: u64| usize::from(addr >= 0x2000);
        let uses = stats::Uses::new(CLASSES, class_of);
        let mut model = Model { uses, kept: Vec::new(), bytes: 0 };
        bytes.chunks(7).for_each(|piece| model.see(piece).unwrap());
        assert!(model.kept.is_empty());
        let captured = captured(End::Whole, 4, &model.uses.finish());
        let pages = captured.pages(4096).unwrap();
        assert_eq!(pages.first[0], Uses { all: 2, whole: 1 });
        assert_eq!(pages.first.last(), Some(&Uses { all: 1, whole: 0 }));
        assert_eq!(pages.misses(0, 1).all, 1);
        assert_eq!(captured.pages(2 << 20).unwrap().misses(0, 1).all, 0);
    }

    #[test]
    fn what_is_no_trace_is_an_error() {
        let uses = stats::Uses::new(CLASSES, |_| 0);
        let mut model = Model { uses, kept: Vec::new(), bytes: 0 };
        assert!(model.see(&[9; 40]).is_err());
    }
}
