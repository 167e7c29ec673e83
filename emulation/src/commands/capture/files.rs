//! The files of a capture, and how it ended.
//!
//! The one idea: this process creates every file and the plugin opens them below our `/proc`
//! entry, so nothing is overwritten, no path needs quoting, and the plugin's buffer is a file in
//! memory that we still hold when the program is gone. What is in that buffer then is appended.

use std::{
    fs::{self, File},
    io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use pagelab_record::units::display_bytes;
use pagelab_sys::{files::folder::Made, memory::memfd, process::interrupted};
use pagelab_trace::image::sidecar;

use super::sink::Sink;
use crate::capture::{Counters, State, place};
use pagelab_cli::{
    exit::{Exit, Failure},
    output,
};

/// The files, created and empty.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    trace: Sink,
    image: Option<(PathBuf, File)>,
    buffer: File,
    /// Removed when nothing was captured.
    made: Vec<Made>,
}

impl Files {
    /// Creates them: the trace, called as the program is unless it has a name, and the image beside
    /// it unless that has one, where there is to be one.
    ///
    /// # Errors
    /// When one exists or cannot be written; then none is left.
    pub(super) fn create(
        program: &Path,
        trace: Option<PathBuf>,
        image: Option<PathBuf>,
        has_image: bool,
    ) -> Result<Self, Failure> {
        let path = trace.unwrap_or_else(|| named_after(program));
        let image = has_image.then(|| image.unwrap_or_else(|| sidecar(&path)));
        let buffer = memfd::create("pagelab-capture").map_err(Failure::host)?;
        let mut made = Vec::new();
        let trace = create(&path, &mut made)?;
        let image = match image {
            Some(path) => Some((path.clone(), create(&path, &mut made)?)),
            None => None,
        };
        let trace = Sink::into(trace, &path).map_err(Failure::host)?;
        Ok(Self { path, trace, image, buffer, made })
    }

    /// The plugin's options that name files, and where it finds them.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'static str, String)> {
        let image = self.image.iter().map(|(_, file)| ("image", place(file)));
        [("out", self.trace.place()), ("shared", place(&self.buffer))].into_iter().chain(image)
    }

    /// Whether what the plugin writes cannot be written on: the program need not run any longer.
    pub(super) fn has_failed(&self) -> bool {
        self.trace.has_failed()
    }

    /// Completes the trace after the program's end and says what is in it.
    ///
    /// # Errors
    /// When nothing was captured, or not all of it could be written.
    pub(super) fn finish(self, status: ExitStatus, emulator: &str) -> Result<Exit, Failure> {
        let counters = Counters::read(&self.buffer).map_err(Failure::internal)?;
        let is_interrupted = interrupted();
        if counters.state <= State::Loaded {
            if is_interrupted {
                return Ok(Exit::Interrupted);
            }
            return Err(host!(
                "{emulator} ended before the program's first instruction ({status})"
            ));
        }
        let Self { path, trace, image, buffer, made } = self;
        made.into_iter().for_each(Made::keep);
        let failed = |what: &Path, error: io::Error| {
            let (what, path) = (what.display(), path.display());
            let context = format!("cannot write {what}; {path} holds what came before");
            Failure::host(anyhow::Error::new(error).context(context))
        };
        let completed = trace.complete(&counters, &buffer);
        match (counters.state, &image) {
            (State::TraceFailed, _) if completed.is_ok() => {
                return Err(failed(&path, counters.error()));
            }
            (State::ImageFailed, Some((image, _))) => return Err(failed(image, counters.error())),
            _ => completed.map_err(|error| failed(&path, error))?,
        }
        let bytes = fs::metadata(&path).map_err(Failure::internal)?.len();
        let mut line = format!("{} operations, {}", counters.ops, size_of(bytes, &path));
        if let Some((image, _)) = &image {
            line.push_str("; memory before the first, ");
            line.push_str(&size_of(counters.image, image));
        }
        output::result(&format!("{line}\n"))?;
        let (exit, note) = judge(counters.state, status, is_interrupted);
        if let Some(note) = note {
            output::warn(&note);
        }
        Ok(exit)
    }
}

/// `PROGRAM.trace`, here.
fn named_after(program: &Path) -> PathBuf {
    let mut name = program.file_name().unwrap_or_default().to_owned();
    name.push(".trace");
    name.into()
}

/// Makes a file; the plugin appends to it, which is nothing for a pipe or a device.
fn create(path: &Path, made: &mut Vec<Made>) -> Result<File, Failure> {
    let target = output::Named::create(path)?.target;
    if !target.made.is_new() {
        let path = path.display();
        return Err(usage!("{path} is no regular file: choose another name"));
    }
    made.push(target.made);
    Ok(target.file)
}

fn size_of(bytes: u64, path: &Path) -> String {
    format!("{} in {}", display_bytes(bytes as f64), path.display())
}

/// The exit code of a capture that is complete, and what to say of the program's end.
fn judge(state: State, status: ExitStatus, is_interrupted: bool) -> (Exit, Option<String>) {
    if is_interrupted {
        let note = "interrupted; the trace holds all operations until then";
        return (Exit::Interrupted, Some(note.to_owned()));
    }
    if let Some(signal) = status.signal() {
        let note = format!("the program died of signal {signal}; the trace holds all until then");
        return (Exit::CaseFailed, Some(note));
    }
    let note = match (state, status.code()) {
        (State::Full, _) => Some("the program was ended: --max is reached".to_owned()),
        (State::Running, _) => {
            Some("the program became another one (execve), which is not captured".to_owned())
        }
        (_, Some(0)) => None,
        (_, code) => Some(format!("the program exited with {}", code.unwrap_or(-1))),
    };
    (Exit::Good, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_called_as_the_program_is() {
        assert_eq!(named_after(Path::new("/usr/bin/gzip")), Path::new("gzip.trace"));
        assert_eq!(named_after(Path::new("./a.out")), Path::new("a.out.trace"));
    }

    #[test]
    fn how_the_program_ended_decides_the_exit_code() {
        let exited = ExitStatus::from_raw(0);
        assert_eq!(judge(State::Exited, exited, false), (Exit::Good, None));
        assert_eq!(judge(State::Full, exited, false).0, Exit::Good);
        let (exit, note) = judge(State::Exited, ExitStatus::from_raw(3 << 8), false);
        assert_eq!((exit, note.as_deref()), (Exit::Good, Some("the program exited with 3")));
        let (exit, note) = judge(State::Running, ExitStatus::from_raw(11), false);
        assert_eq!(exit, Exit::CaseFailed);
        assert!(note.unwrap().contains("signal 11"));
        assert_eq!(judge(State::Running, ExitStatus::from_raw(9), true).0, Exit::Interrupted);
    }
}
