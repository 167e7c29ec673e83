//! What the kernel said since somebody last asked, and whether it was a complaint.
//!
//! The one idea: `/dev/kmsg` keeps a place for each reader, so that what a case provoked is told
//! apart from what was there before. It is not the console: a log level hides nothing here.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
};

/// `O_NONBLOCK`: reading past the last record is an error instead of a wait.
const NONBLOCK: i32 = 0o4000;
/// A record is never longer (`CONSOLE_EXT_LOG_MAX`, `PRINTKRB_RECORD_MAX` before it: 8 KiB).
const RECORD_BYTES_MAX: usize = 8192;

/// How a line of the kernel's log begins that must not be there after a test.
const COMPLAINTS: &[&str] = &[
    "BUG:",
    "BUG ",
    "WARNING:",
    "Oops",
    "Kernel panic",
    "kernel BUG at",
    "general protection fault",
    "Unable to handle",
    "INFO: task",
    // Of lockdep, and of page poisoning.
    "INFO: trying to register non-static key",
    "pagealloc: memory corruption",
    "pagealloc: single bit error",
    "list_add corruption",
    "list_del corruption",
    "double fault",
];

/// A reader's place in the kernel's log.
#[derive(Debug)]
pub(crate) struct KernelLog(File);

impl KernelLog {
    /// A place at the end: what was said before is not read.
    pub(crate) fn from_now() -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open("/dev/kmsg")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// A place at the first record that is still there.
    pub(crate) fn from_the_start() -> io::Result<Self> {
        OpenOptions::new().read(true).custom_flags(NONBLOCK).open("/dev/kmsg").map(Self)
    }

    /// What was said since the last call.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; RECORD_BYTES_MAX];
        loop {
            match self.0.read(&mut record) {
                Ok(0) => return lines,
                Ok(bytes) => lines.extend(message(&String::from_utf8_lossy(&record[..bytes]))),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    lines.push("(older messages were overwritten before they were read)".into());
                }
                // WouldBlock: that was the last one.
                Err(_) => return lines,
            }
        }
    }
}

/// The message of a record: `level,number,microseconds,flags;text`, then lines of attributes.
fn message(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    text.lines().next().map(str::to_owned)
}

/// Whether a message says that the kernel found a mistake in itself or in a module.
pub(crate) fn is_complaint(line: &str) -> bool {
    COMPLAINTS.iter().any(|complaint| line.starts_with(complaint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_its_message() {
        let record = "4,1203,9145,-;WARNING: CPU: 0 PID: 1\n SUBSYSTEM=x\n";
        assert_eq!(message(record).unwrap(), "WARNING: CPU: 0 PID: 1");
        assert_eq!(message("nothing"), None);
    }

    #[test]
    fn a_complaint_is_told_from_a_word_in_passing() {
        for line in ["WARNING: CPU: 1 PID: 2 at mm/x.c:1", "BUG: unable to handle page fault"] {
            assert!(is_complaint(line), "{line}");
        }
        for line in ["debugfs: mounted", "x86/fpu: no BUG here", "pagelab: loaded"] {
            assert!(!is_complaint(line), "{line}");
        }
    }
}
