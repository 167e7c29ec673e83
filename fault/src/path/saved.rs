//! Machines that were saved where they wait for their orders, so that they are booted once.
//!
//! The one idea: a file's name is the digest of all that made the machine what it is, and the same
//! digest is its last line, which is written once the rest is on the disk. So a file that is torn,
//! or of another machine, is none. Whoever makes one holds it locked; a kill leaves a file that is
//! not whole, which the next one makes anew or removes. Nothing waits for ever: the lock ends with
//! its process.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use pagelab_sys::{files::folder::Folder, time::unix_seconds};

use super::kernel::cache;

/// Bytes of all files at most, beside the one that was made last: a machine is 100 to 300 MiB.
const BYTES_MAX: u64 = 2 << 30;

/// What there is of a machine.
#[derive(Debug)]
pub(super) enum Saved {
    /// All of it.
    Whole(Place),
    /// Nothing: it is to be made.
    Missing(Place),
}

/// The file of a machine. While nothing is in it nobody else has it.
#[derive(Debug)]
pub(super) struct Place {
    folder: Folder,
    name: String,
    pub(super) file: File,
}

impl Saved {
    /// Looks for a machine by the digest of what it is, and waits for whoever makes it.
    ///
    /// # Errors
    /// Why there can be none.
    pub(super) fn find(digest: &str) -> Result<Self, String> {
        let root = cache().ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("saved");
        Self::find_in(&root, digest)
    }

    fn find_in(root: &Path, digest: &str) -> Result<Self, String> {
        let folder = Folder::make(root).map_err(|error| error.to_string())?;
        let failed = |error: io::Error| format!("{}: {error}", root.join(digest).display());
        loop {
            let file = match folder.create(digest) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    folder.append_to(digest)
                }
                made => made,
            };
            let file = match file {
                // It was removed between the two.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(failed)?,
            };
            if !is_whole(&file, digest).map_err(failed)? {
                file.lock().map_err(failed)?;
            }
            // Whoever held it may have removed it.
            if file.metadata().map_err(failed)?.nlink() == 0 {
                continue;
            }
            let is_whole = is_whole(&file, digest).map_err(failed)?;
            let place = Place { folder, name: digest.to_owned(), file };
            if is_whole {
                let _ = place.file.unlock();
                // The one that was used last is removed last.
                let now = Duration::from_secs(unix_seconds().cast_unsigned());
                let _ = place.file.set_modified(SystemTime::UNIX_EPOCH + now);
                return Ok(Self::Whole(place));
            }
            place.file.set_len(0).map_err(failed)?;
            return Ok(Self::Missing(place));
        }
    }
}

impl Place {
    /// Says that the machine is in the file, and makes room for it.
    ///
    /// # Errors
    /// When the disk is full; then the file is gone.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let last = last_line(&self.name);
        let written = self.file.sync_data().and_then(|()| self.file.write_all(last.as_bytes()));
        if written.is_err() {
            self.remove();
            return written;
        }
        // The lock ends with the file, and room that cannot be made now is made next time.
        let _ = make_room(&self.folder, &self.name, BYTES_MAX);
        Ok(())
    }

    /// Removes it: it is not what it says, or was not made.
    pub(super) fn remove(self) {
        let _ = self.folder.remove(&self.name);
    }
}

fn last_line(digest: &str) -> String {
    format!("\n{digest}\n")
}

fn is_whole(mut file: &File, digest: &str) -> io::Result<bool> {
    let wanted = last_line(digest);
    let Some(start) = file.metadata()?.len().checked_sub(wanted.len() as u64) else {
        return Ok(false);
    };
    let mut found = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(wanted.len() as u64).read_to_end(&mut found)?;
    Ok(start > 0 && found == wanted.as_bytes())
}

/// Removes what nobody makes any more and is not whole, and of the rest what was not used for
/// longest, until what is left beside `newest` has `most` bytes.
fn make_room(folder: &Folder, newest: &str, most: u64) -> io::Result<()> {
    let mut others = Vec::new();
    for entry in fs::read_dir(folder.path())? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| *name != newest) else { continue };
        let Ok(file) = folder.append_to(name) else { continue };
        let found = file.metadata()?;
        if is_whole(&file, name)? {
            others.push((found.modified()?, found.len(), name.to_owned()));
        } else if file.try_lock().is_ok() {
            folder.remove(name)?;
        }
    }
    others.sort_unstable();
    let mut sum = 0;
    for (_, bytes, name) in others.into_iter().rev() {
        sum += bytes;
        if sum > most {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(root: &Path, digest: &str) -> Saved {
        Saved::find_in(&root.join("saved"), digest).unwrap()
    }

    fn make(root: &Path, digest: &str) {
        let Saved::Missing(mut place) = find(root, digest) else { panic!("it is there") };
        place.file.write_all(b"machine").unwrap();
        place.finish().unwrap();
    }

    #[test]
    fn a_machine_is_made_once_and_found_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), "a");
        let Saved::Whole(place) = find(root.path(), "a") else { panic!("it was made") };
        place.remove();
        assert!(matches!(find(root.path(), "a"), Saved::Missing(_)));
    }

    #[test]
    fn what_is_torn_or_of_another_machine_is_made_anew() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), "a");
        let path = root.path().join("saved/a");
        let whole = fs::read(&path).unwrap();
        let foreign = String::from_utf8(whole.clone()).unwrap().replace("\na\n", "\nb\n");
        for bytes in [&whole[..whole.len() - 1], &whole[7..], foreign.as_bytes(), b""] {
            fs::write(&path, bytes).unwrap();
            assert!(matches!(find(root.path(), "a"), Saved::Missing(_)));
        }
        fs::write(&path, whole).unwrap();
        assert!(matches!(find(root.path(), "a"), Saved::Whole(_)));
    }

    #[test]
    fn room_is_made_by_what_was_not_used_for_longest_and_by_what_nobody_makes() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            make(root.path(), name);
        }
        let folder = root.path().join("saved");
        let age = |name: &str, seconds| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::options()
                .append(true)
                .open(folder.join(name))
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        age("b", 1);
        age("a", 2);
        fs::write(folder.join("killed"), "mach").unwrap();
        let Saved::Missing(_held) = find(root.path(), "made now") else { panic!("it is new") };
        make_room(&Folder::open(&folder).unwrap(), "c", 12).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["a", "c", "made now"]);
    }

    #[test]
    fn who_waits_for_a_machine_that_another_makes_has_it() {
        let root = tempfile::tempdir().unwrap();
        let Saved::Missing(mut place) = find(root.path(), "a") else { panic!("it is new") };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| find(root.path(), "a"));
            place.file.write_all(b"machine").unwrap();
            place.finish().unwrap();
            assert!(matches!(other.join().unwrap(), Saved::Whole(_)));
        });
    }
}
