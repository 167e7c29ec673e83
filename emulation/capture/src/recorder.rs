//! Records in the order in which the guest's threads made their accesses.
//!
//! The one idea: a [`Pen`] is the right to append, held for one instruction or one access. It
//! writes straight into the buffer in the trace's own format, so that nothing is copied, counted or
//! decided twice; the buffer goes to the trace's file a mebibyte at a time. The file is opened for
//! each of these, so that a guest which closes descriptors that are not its own cannot touch it.
//!
//! Whatever happens, the trace's file holds whole records only.

use std::{
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use pagelab_trace::{
    Width,
    raw::{self, HEAD_BYTES, LOAD, STORE},
};

use crate::{
    named,
    shared::{BUFFER_BYTES, Shared, State},
};

/// Writes the trace.
#[derive(Debug)]
pub(crate) struct Recorder {
    shared: Shared,
    out: PathBuf,
    max: u64,
    is_busy: AtomicBool,
}

/// What goes on after something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// The capture.
    Capture,
    /// Nothing: all that was asked for is recorded.
    Full,
}

impl Recorder {
    /// A recorder of at most `max` operations to a file that is empty or not there yet.
    ///
    /// # Errors
    /// When the file cannot be written or holds something.
    pub(crate) fn new(shared: Shared, out: PathBuf, max: Option<u64>) -> Result<Self, String> {
        let opened = named::appended(&out, true);
        let length = opened.and_then(|file| file.metadata()).map(|about| about.len());
        match length {
            Ok(0) => Ok(Self {
                shared,
                out,
                max: max.unwrap_or(u64::MAX),
                is_busy: AtomicBool::new(false),
            }),
            Ok(_) => Err(format!("{} is there already", out.display())),
            Err(error) => Err(format!("cannot write {}: {error}", out.display())),
        }
    }

    /// The counters and the buffer.
    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Where the trace goes.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// Waits for the turn to append.
    ///
    /// # Errors
    /// When the buffer is full and cannot be written to the trace.
    #[inline]
    pub(crate) fn pen(&self) -> io::Result<Pen<'_>> {
        while self.is_busy.swap(true, Ordering::Acquire) {
            self.wait();
        }
        let head = self.shared.head();
        let mut at = as_index(head.length.load(Ordering::Relaxed));
        if at > BUFFER_BYTES {
            self.flush()?;
            at = 0;
        }
        Ok(Pen { recorder: self, at, left: self.max - head.ops.load(Ordering::Relaxed) })
    }

    #[cold]
    fn wait(&self) {
        // The other thread may be writing a mebibyte to a disk.
        while self.is_busy.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    /// Writes what is in the buffer, and that this was all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn finish(&self, state: State) -> io::Result<()> {
        // Never put down: nothing is appended any more.
        let _ = self.pen()?;
        self.flush()?;
        self.shared.head().enter(state);
        Ok(())
    }

    /// Writes the buffer to the trace; the caller has the turn.
    #[cold]
    fn flush(&self) -> io::Result<()> {
        let head = self.shared.head();
        let bytes = self.shared.bytes(as_index(head.length.load(Ordering::Relaxed)));
        let before = head.written.load(Ordering::Relaxed);
        let (mut length, mut outcome) = (bytes.len(), Ok(()));
        if let Err((written, error)) = append(&self.out, bytes) {
            let (whole, lost) = whole_records(bytes, written);
            // A pipe cannot be cut, and whoever reads it counts for itself.
            let _ = cut(&self.out, before + whole as u64);
            head.ops.fetch_sub(lost, Ordering::Relaxed);
            (length, outcome) = (whole, Err(error));
        }
        // In this order: a buffer that is in the file must not seem to be missing from it.
        head.length.store(0, Ordering::Release);
        head.written.store(before + length as u64, Ordering::Release);
        outcome
    }
}

/// The right to append; given back when it is dropped or [`put down`](Self::put_down).
#[derive(Debug)]
pub(crate) struct Pen<'r> {
    recorder: &'r Recorder,
    at: usize,
    /// Operations until the capture is full.
    left: u64,
}

impl Pen<'_> {
    /// Appends a load.
    #[inline]
    pub(crate) fn load(&mut self, addr: u64, width: Width) {
        self.head(LOAD, addr, width, HEAD_BYTES);
    }

    /// Appends a store of the low bytes of a value.
    #[inline]
    pub(crate) fn store(&mut self, addr: u64, width: Width, value: u64) {
        // Eight bytes whatever the width: what is too much is overwritten by what follows.
        self.recorder.shared.put(self.at + HEAD_BYTES, value.to_le_bytes());
        self.head(STORE, addr, width, HEAD_BYTES + width.bytes());
    }

    #[inline]
    fn head(&mut self, op: u8, addr: u64, width: Width, length: usize) {
        if self.left == 0 {
            return;
        }
        self.recorder.shared.put(self.at, [op, 1 << width as u8]);
        self.recorder.shared.put(self.at + 2, addr.to_le_bytes());
        self.at += length;
        self.left -= 1;
    }

    /// Gives the turn back.
    #[inline]
    pub(crate) fn put_down(self) -> Next {
        self.publish();
        self.recorder.is_busy.store(false, Ordering::Release);
        if self.left == 0 { Next::Full } else { Next::Capture }
    }

    #[inline]
    fn publish(&self) {
        let head = self.recorder.shared.head();
        head.length.store(self.at as u64, Ordering::Release);
        head.ops.store(self.recorder.max - self.left, Ordering::Relaxed);
    }
}

/// Buffers are far below 4 GiB.
#[inline]
fn as_index(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Appends to a file; what was written before the error comes with it.
fn append(path: &Path, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let opened = named::appended(path, false);
    let mut file = opened.map_err(|error| (0, error))?;
    let mut at = 0;
    while at < bytes.len() {
        match file.write(&bytes[at..]) {
            Ok(0) => return Err((at, ErrorKind::WriteZero.into())),
            Ok(count) => at += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err((at, error)),
        }
    }
    Ok(())
}

fn cut(path: &Path, length: u64) -> io::Result<()> {
    named::existing(path)?.set_len(length)
}

/// Bytes of the records that are whole within the first `written` bytes, and how many are not.
fn whole_records(bytes: &[u8], written: usize) -> (usize, u64) {
    let (mut whole, mut at, mut lost) = (0, 0, 0);
    while let Ok(Some((_, length))) = raw::decode_one(&bytes[at..], 0) {
        at += length;
        if at <= written {
            whole = at;
        } else {
            lost += 1;
        }
    }
    (whole, lost)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pagelab_trace::Op;

    use super::*;

    fn recorder(folder: &tempfile::TempDir, max: Option<u64>) -> Recorder {
        let out = folder.path().join("trace");
        Recorder::new(Shared::map(None).unwrap(), out, max).unwrap()
    }

    fn ops(bytes: &[u8]) -> Vec<Op> {
        let (mut at, mut ops) = (0, Vec::new());
        while let Some((op, length)) = raw::decode_one(&bytes[at..], 0).unwrap() {
            ops.push(op);
            at += length;
        }
        assert_eq!(at, bytes.len(), "a record is cut");
        ops
    }

    /// A few operations of every width.
    fn sample(count: u64) -> Vec<Op> {
        let op = |index: u64| {
            let width = Width::ALL[(index % 4) as usize];
            let addr = u64::MAX - index * 0x0123_4567_89AB;
            if index.is_multiple_of(3) {
                Op::store(addr, width, index.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            } else {
                Op::load(addr, width)
            }
        };
        (0..count).map(op).collect()
    }

    fn write(recorder: &Recorder, op: Op) -> io::Result<Next> {
        let mut pen = recorder.pen()?;
        match op.access {
            pagelab_trace::Access::Load => pen.load(op.addr, op.width),
            // What is above the width must not show.
            pagelab_trace::Access::Store(value) if op.width != Width::W8 => {
                pen.store(op.addr, op.width, value | 0xAA << (8 * op.width.bytes()));
            }
            pagelab_trace::Access::Store(value) => pen.store(op.addr, op.width, value),
        }
        Ok(pen.put_down())
    }

    #[test]
    fn records_are_those_of_the_raw_format_whatever_the_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = recorder(&folder, None);
        let ops = sample(200_000);
        let mut expected = Vec::new();
        for op in &ops {
            assert_eq!(write(&recorder, *op).unwrap(), Next::Capture);
            raw::encode(*op, &mut expected);
        }
        assert!(expected.len() > 2 * BUFFER_BYTES);
        recorder.finish(State::Exited).unwrap();
        assert!(fs::read(folder.path().join("trace")).unwrap() == expected);
        let head = recorder.shared().head();
        assert_eq!(head.ops.load(Ordering::Relaxed), 200_000);
        assert_eq!(head.written.load(Ordering::Relaxed), expected.len() as u64);
    }

    #[test]
    fn a_full_capture_has_as_many_operations_as_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = recorder(&folder, Some(5));
        for _ in 0..2 {
            let mut pen = recorder.pen().unwrap();
            pen.load(0, Width::W2);
            pen.load(2, Width::W2);
            assert_eq!(pen.put_down(), Next::Capture);
        }
        let mut pen = recorder.pen().unwrap();
        pen.store(8, Width::W1, 7);
        pen.load(4, Width::W2);
        assert_eq!(pen.put_down(), Next::Full);
        recorder.finish(State::Full).unwrap();
        let ops = ops(&fs::read(folder.path().join("trace")).unwrap());
        assert_eq!((ops.len(), ops[4]), (5, Op::store(8, Width::W1, 7)));
    }

    #[test]
    fn threads_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = recorder(&folder, None);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let recorder = &recorder;
                scope.spawn(move || {
                    for index in 0..20_000 {
                        let mut pen = recorder.pen().unwrap();
                        pen.load(thread << 32 | index, Width::W4);
                        pen.store(thread << 32 | index, Width::W8, thread);
                        assert_eq!(pen.put_down(), Next::Capture);
                    }
                });
            }
        });
        recorder.finish(State::Exited).unwrap();
        let ops = ops(&fs::read(folder.path().join("trace")).unwrap());
        assert_eq!(ops.len(), 160_000);
        let mut next = [0; 4];
        for pair in ops.chunks(2) {
            let thread = pair[0].addr >> 32;
            assert_eq!(pair[0].addr & 0xFFFF_FFFF, next[thread as usize]);
            assert_eq!(pair[1], Op::store(pair[0].addr, Width::W8, thread));
            next[thread as usize] += 1;
        }
    }

    #[test]
    fn a_trace_that_is_there_is_not_overwritten() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "mine").unwrap();
        let shared = Shared::map(None).unwrap();
        let error = Recorder::new(shared, file.path().to_owned(), None).unwrap_err();
        assert!(error.ends_with("is there already"), "{error}");
        assert_eq!(fs::read(file.path()).unwrap(), b"mine");
    }

    #[test]
    fn what_a_full_disk_took_is_counted_by_whole_records() {
        let mut bytes = Vec::new();
        for op in sample(4) {
            raw::encode(op, &mut bytes);
        }
        // A store of 1, a load of 10, a load of 10, a store of 8.
        assert_eq!(bytes.len(), 11 + 10 + 10 + 18);
        assert_eq!(whole_records(&bytes, 10), (0, 4));
        assert_eq!(whole_records(&bytes, 11), (11, 3));
        assert_eq!(whole_records(&bytes, 48), (31, 1));
        assert_eq!(whole_records(&bytes, 49), (49, 0));
    }

    #[test]
    fn a_disk_that_is_full_leaves_the_records_that_are_whole() {
        let Ok(out) = fs::canonicalize("/dev/full") else { return };
        let shared = Shared::map(None).unwrap();
        let recorder = Recorder::new(shared, out, None).unwrap();
        assert_eq!(write(&recorder, Op::load(0, Width::W1)).unwrap(), Next::Capture);
        let error = recorder.finish(State::Exited).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(recorder.shared().head().ops.load(Ordering::Relaxed), 0);
    }
}
