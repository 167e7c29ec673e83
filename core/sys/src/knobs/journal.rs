//! The old values of everything that is changed now, and the names of everything that was made.
//!
//! One idea: an entry is on the disk *before* the knob is written and gone only *after* it is
//! back, so at every instant the file lists at least what is changed. An entry has two states. It
//! is *pending* until the value was read back (`holds` is missing): a kill in between may leave
//! anything, so it is put back whatever the knob holds. Afterwards it is *settled*, and a knob
//! that holds something else was changed by someone else.
//!
//! What is made instead of set ([`Made`]) has a line of its own kind; a line of a setting is
//! written as it always was, so an older journal is read as well.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{KnobError, made::Made};

/// A journal longer than this is not ours.
const BYTES_MAX: u64 = 1 << 20;

/// One change of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Ascending: the later of two entries of one path was made on top of the earlier.
    pub(super) id: u64,
    /// The boot it was made in; a reboot has reset the knob, and somebody may have set it since.
    pub(super) boot: String,
    pub(super) pid: u32,
    #[serde(flatten)]
    pub(super) change: Change,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Change {
    /// Something that was not there before.
    Made(Made),
    /// The value of a knob.
    Set(Setting),
}

/// One change of one knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setting {
    /// With every link followed.
    pub(super) path: PathBuf,
    pub(super) old: String,
    /// What was asked for.
    pub(super) new: String,
    /// What the knob held after the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holds: Option<String>,
}

impl Entry {
    /// The change of this knob, if it is one.
    pub(super) fn setting_of(&self, path: &Path) -> Option<&Setting> {
        match &self.change {
            Change::Set(setting) if setting.path == path => Some(setting),
            _ => None,
        }
    }
}

/// The entries, in memory and on the disk alike.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    entries: Vec<Entry>,
    /// Whether the file may hold something else than the entries: a torn line.
    torn: bool,
}

impl Journal {
    /// Reads the journal. A torn line is left out: its change was never made.
    pub(super) fn load(path: PathBuf) -> io::Result<Self> {
        let mut text = Vec::new();
        match File::open(&path) {
            Ok(file) => file.take(BYTES_MAX).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let lines = || text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let entries: Vec<Entry> =
            lines().filter_map(|line| serde_json::from_slice(line).ok()).collect();
        // A last line without its newline is not to be appended to either.
        let torn = lines().count() > entries.len() || text.last().is_some_and(|b| *b != b'\n');
        Ok(Self { path, entries, torn })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn get(&self, id: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Notes a change that is about to be made, and waits until it is on the disk.
    pub(super) fn append(&mut self, change: Change) -> io::Result<u64> {
        let entry = Entry {
            id: self.entries.iter().map(|entry| entry.id).max().unwrap_or(0) + 1,
            boot: crate::machine::environment::boot_id(),
            pid: std::process::id(),
            change,
        };
        let id = entry.id;
        self.mend()?;
        // Until it is on the disk whole.
        self.torn = true;
        let mut file = options().append(true).create(true).open(&self.path)?;
        file.write_all(&line(&entry)?)?;
        file.sync_data()?;
        self.torn = false;
        self.entries.push(entry);
        Ok(id)
    }

    /// Notes what the knob holds after the write: the change is complete.
    pub(super) fn settle(&mut self, id: u64, holds: &str) -> Result<(), KnobError> {
        self.amend(id, |change| {
            if let Change::Set(setting) = change {
                setting.holds = Some(holds.to_owned());
            }
        })
    }

    /// Notes how far something that is being made has come.
    pub(super) fn remake(&mut self, id: u64, made: &Made) -> Result<(), KnobError> {
        self.amend(id, |change| *change = Change::Made(made.clone()))
    }

    fn amend(&mut self, id: u64, amend: impl Fn(&mut Change)) -> Result<(), KnobError> {
        let entries = self.entries.iter_mut().filter(|entry| entry.id == id);
        entries.for_each(|entry| amend(&mut entry.change));
        self.rewrite().map_err(KnobError::of("write", &self.path))
    }

    /// Lets the change that was made on top of `id` put back what `id` would have put back.
    /// False when there is no such change: then `id` is the one that the knob shows.
    pub(super) fn bequeath(&mut self, id: u64) -> bool {
        let Some(Change::Set(gone)) = self.get(id).map(|entry| entry.change.clone()) else {
            return false;
        };
        let later = self.entries.iter_mut().filter(|entry| entry.id > id);
        let mut on_top = later.filter_map(|entry| match &mut entry.change {
            Change::Set(setting) if setting.path == gone.path => Some(setting),
            _ => None,
        });
        on_top.next().map(|heir| heir.old = gone.old).is_some()
    }

    /// Removes a change that is undone.
    pub(super) fn remove(&mut self, id: u64) -> io::Result<()> {
        self.entries.retain(|entry| entry.id != id);
        self.rewrite()
    }

    /// Cuts off what cannot be read.
    pub(super) fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.rewrite()?;
            self.torn = false;
        }
        Ok(())
    }

    /// Writes all entries anew, so that a reader sees the old file or the new one.
    fn rewrite(&self) -> io::Result<()> {
        let mut text = Vec::new();
        for entry in &self.entries {
            text.extend(line(entry)?);
        }
        let temporary = self.path.with_extension("tmp");
        let mut file = options().write(true).create(true).truncate(true).open(&temporary)?;
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(&temporary, &self.path)
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

fn line(entry: &Entry) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set(path: &str, old: &str, new: &str) -> Change {
        let (path, old, new) = (path.into(), old.into(), new.into());
        Change::Set(Setting { path, old, new, holds: None })
    }

    fn zram(diskseq: Option<u64>) -> Made {
        Made::Zram { number: 1, bytes: 4096, diskseq }
    }

    #[test]
    fn what_is_appended_is_read_back_and_a_torn_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("knobs.jsonl");
        let mut journal = Journal::load(path.clone()).unwrap();
        let first = journal.append(set("/sys/a", "0", "1")).unwrap();
        journal.append(set("/sys/b", "2", "3")).unwrap();
        journal.settle(first, "1").unwrap();
        let made = journal.append(Change::Made(zram(None))).unwrap();
        journal.remake(made, &zram(Some(7))).unwrap();
        let settings: Vec<_> = journal.entries.iter().map(|entry| entry.change.clone()).collect();
        let mut settled = set("/sys/a", "0", "1");
        let Change::Set(setting) = &mut settled else { panic!("it is a setting") };
        setting.holds = Some("1".to_owned());
        let expected = [settled, set("/sys/b", "2", "3"), Change::Made(zram(Some(7)))];
        assert_eq!(settings, expected);
        let text = fs::read(&path).unwrap();
        for cut in 0..=text.len() {
            fs::write(&path, &text[..cut]).unwrap();
            let read = Journal::load(path.clone()).unwrap();
            let whole = text[..cut].split(|byte| *byte == b'\n').count() - 1;
            // A line that lacks nothing but its newline is whole.
            assert!(read.entries.len() - whole <= 1);
            assert_eq!(read.entries[..], journal.entries[..read.entries.len()]);
            assert_eq!(read.torn, cut > 0 && text[cut - 1] != b'\n', "{cut}");
        }
    }

    #[test]
    fn a_foreign_line_is_cut_off_before_another_follows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("knobs.jsonl");
        fs::write(&path, "not ours\n").unwrap();
        let mut journal = Journal::load(path.clone()).unwrap();
        assert!(journal.torn);
        let ids = [(); 3].map(|()| journal.append(set("/sys/a", "0", "1")).unwrap());
        assert_eq!(ids, [1, 2, 3]);
        assert!(!journal.torn && !fs::read_to_string(&path).unwrap().contains("ours"));
        fs::write(&path, "not ours\n").unwrap();
        Journal::load(path.clone()).unwrap().mend().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn the_file_is_private_and_reached_by_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let (path, victim) = (directory.path().join("knobs.jsonl"), directory.path().join("x"));
        let mut journal = Journal::load(path.clone()).unwrap();
        assert_eq!(journal.path(), path);
        journal.append(set("/sys/a", "0", "1")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).unwrap();
        fs::write(&victim, "").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        journal.append(set("/sys/a", "0", "1")).unwrap_err();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "");
        let nowhere = Journal::load(victim.join("knobs.jsonl")).unwrap_err();
        assert_ne!(nowhere.kind(), io::ErrorKind::NotFound, "that would be an empty journal");
    }

    #[test]
    fn an_entry_that_leaves_first_bequeaths_its_old_value() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::load(directory.path().join("knobs.jsonl")).unwrap();
        let outer = journal.append(set("/sys/a", "0", "1")).unwrap();
        let inner = journal.append(set("/sys/a", "1", "2")).unwrap();
        assert!(!journal.bequeath(inner));
        assert!(journal.bequeath(outer));
        journal.remove(outer).unwrap();
        let heir = journal.get(inner).unwrap().setting_of(Path::new("/sys/a")).unwrap();
        assert_eq!(heir.old, "0");
    }

    #[test]
    fn the_line_of_a_setting_is_written_as_before_there_was_anything_else() {
        let line = r#"{"id":1,"boot":"b","pid":2,"path":"/sys/a","old":"0","new":"1","holds":"1"}"#;
        let entry: Entry = serde_json::from_str(line).unwrap();
        assert!(entry.setting_of(Path::new("/sys/a")).is_some());
        assert_eq!(serde_json::to_string(&entry).unwrap(), line);
    }
}
