//! Directories by descriptor: a second user plants links and directories, before and meanwhile.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

use std::{
    fs,
    io::Write,
    os::{
        fd::AsRawFd,
        unix::{
            fs::{MetadataExt, PermissionsExt, chown, lchown, symlink},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command},
};

use pagelab_sys::{
    files::folder::{Existing, Folder, FolderError, target},
    machine::rights,
};

/// The second user: nobody.
const OTHER: u32 = 65534;

/// A directory as `/tmp` is, in which a second user works, and a file that is root's alone.
struct Stage {
    room: tempfile::TempDir,
}

impl Stage {
    /// `None` where nobody can be played but oneself.
    #[expect(clippy::print_stderr, reason = "the harness shows it with --nocapture, as all skips")]
    fn set() -> Option<Self> {
        if !rights::is_root() {
            eprintln!("skipped: only root can play a second user; to run it: run as root");
            return None;
        }
        let room = tempfile::tempdir().unwrap();
        fs::set_permissions(room.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let stage = Self { room };
        fs::create_dir(stage.path("shared")).unwrap();
        fs::set_permissions(stage.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::create_dir(stage.path("root")).unwrap();
        fs::write(stage.path("root/secret"), "secret").unwrap();
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// A directory of the second user.
    fn foreign(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        chown(&path, Some(OTHER), Some(OTHER)).unwrap();
        path
    }

    /// The second user does something over and over.
    fn meanwhile(&self, what: &str) -> Meanwhile {
        let script = format!("while :; do {what}; done 2>/dev/null");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(self.path("shared")).uid(OTHER).gid(OTHER);
        Meanwhile(command.spawn().unwrap())
    }

    #[track_caller]
    fn is_unharmed(&self) {
        let names = fs::read_dir(self.path("root")).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs::read(self.path("root/secret")).unwrap(), b"secret");
    }
}

struct Meanwhile(Child);

impl Drop for Meanwhile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(result: Result<T, FolderError>, path: &Path) {
    let error = result.unwrap_err();
    assert!(matches!(error, FolderError::Foreign { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&path.display().to_string()), "{text}");
    assert!(text.contains("root's alone"), "it names the cure: {text}");
}

#[test]
fn root_makes_nothing_in_a_directory_of_another_user_or_below_it() {
    let Some(stage) = Stage::set() else { return };
    let foreign = stage.foreign("foreign");
    is_refused(Folder::open(&foreign), &foreign);
    is_refused(Folder::make(&foreign.join("a/b")), &foreign);
    is_refused(target(&foreign.join("file"), Existing::Replace), &foreign);
    fs::create_dir(foreign.join("mine")).unwrap();
    is_refused(Folder::open(&foreign.join("mine")), &foreign);
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
}

#[test]
fn root_makes_nothing_where_everybody_may_write_unless_it_is_sticky() {
    let Some(stage) = Stage::set() else { return };
    let shared = stage.path("shared");
    assert!(Folder::make(&shared.join("run")).is_ok());
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    is_refused(Folder::open(&shared.join("run")), &shared);
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o775)).unwrap();
    chown(&shared, None, Some(OTHER)).unwrap();
    is_refused(Folder::open(&shared.join("run")), &shared);
}

#[test]
fn root_follows_its_own_links_and_nobody_elses() {
    let Some(stage) = Stage::set() else { return };
    let link = stage.path("shared/link");
    symlink("../root", &link).unwrap();
    assert!(Folder::open(&link).unwrap().has("secret"));
    lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    is_refused(Folder::open(&link), &link);
    is_refused(target(&link.join("new"), Existing::Keep), &link);
    let link = stage.path("shared/file");
    symlink("../root/secret", &link).unwrap();
    lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    is_refused(target(&link, Existing::Replace), &link);
    stage.is_unharmed();
}

#[test]
fn a_file_with_a_second_name_is_replaced_and_not_emptied() {
    let Some(stage) = Stage::set() else { return };
    let name = stage.path("shared/name");
    fs::hard_link(stage.path("root/secret"), &name).unwrap();
    assert!(Folder::open(&stage.path("shared")).unwrap().append_to("name").is_err());
    let mut new = target(&name, Existing::Replace).unwrap();
    new.file.write_all(b"new").unwrap();
    new.made.keep();
    assert_eq!(fs::read(&name).unwrap(), b"new");
    stage.is_unharmed();
}

#[test]
fn a_link_planted_between_any_two_steps_leads_nowhere() {
    let Some(stage) = Stage::set() else { return };
    let folder = Folder::open(&stage.path("shared")).unwrap();
    let _other = stage.meanwhile("ln -s ../root/secret page; rm -f page; touch page; rm -f page");
    for _ in 0..2000 {
        folder.replace("page", b"ours").unwrap();
        // It is root's now, which the second user cannot remove.
        assert_eq!(fs::symlink_metadata(stage.path("shared/page")).unwrap().len(), 4);
        folder.remove("page").unwrap();
        if let Ok(mut file) = folder.create("page") {
            assert_eq!(file.metadata().unwrap().uid(), 0, "nobody else's file is opened");
            file.write_all(b"ours").unwrap();
            folder.remove("page").unwrap();
        }
        if let Ok(mut target) = target(&stage.path("shared/page"), Existing::Keep) {
            assert_eq!(target.file.metadata().unwrap().uid(), 0);
            target.file.write_all(b"ours").unwrap();
        }
    }
    stage.is_unharmed();
}

#[test]
fn a_directory_swapped_for_a_link_at_any_moment_leads_nowhere() {
    let Some(stage) = Stage::set() else { return };
    let _other = stage.meanwhile(
        "mkdir run; mv run away; ln -s ../root run; rm run; mv away run; rmdir run; rmdir away",
    );
    let path = stage.path("shared/run");
    for _ in 0..20_000 {
        match Folder::make(&path) {
            // Made here, and root's: the second user can neither move nor remove it.
            Ok(folder) => {
                folder.create("journal").unwrap().write_all(b"ours").unwrap();
                assert_eq!(fs::read(path.join("journal")).unwrap(), b"ours");
                fs::remove_dir_all(&path).unwrap();
            }
            Err(FolderError::Foreign { .. } | FolderError::Io { .. }) => (),
            Err(error) => panic!("{error}"),
        }
    }
    stage.is_unharmed();
}

#[test]
fn what_is_no_regular_file_is_written_to_as_it_is() {
    // A pipe, and a link to it as /dev/stderr is one; whose this program's own is nobody knows.
    let (_end, pipe) = std::io::pipe().unwrap();
    let room = tempfile::tempdir().unwrap();
    let (pipe, link) = (format!("/proc/self/fd/{}", pipe.as_raw_fd()), room.path().join("stderr"));
    symlink(&pipe, &link).unwrap();
    for path in [Path::new("/dev/null"), Path::new(&pipe), &link] {
        let target = target(path, Existing::Keep).unwrap();
        assert!(!target.made.is_new(), "{path:?}");
    }
    let error = target(Path::new("/dev/full"), Existing::Keep).unwrap().file.write_all(b"x");
    assert!(error.is_err());
    assert!(target(Path::new("/"), Existing::Keep).is_err());
    assert!(target(Path::new(""), Existing::Keep).is_err());
}

#[test]
fn a_file_that_exists_is_kept_or_replaced_as_told() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("a");
    fs::write(&path, "old").unwrap();
    let error = target(&path, Existing::Keep).unwrap_err();
    assert!(matches!(error, FolderError::Exists { .. }), "{error}");
    let new = target(&path, Existing::Replace).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    drop(new);
    assert!(!path.exists(), "what is not said to be kept is removed");
    target(&path, Existing::Keep).unwrap().made.keep();
    assert!(path.exists());
    assert!(target(&room.path().join("no/such/place"), Existing::Keep).is_err());
}

#[test]
fn a_file_that_is_replaced_leaves_nothing_beside_it_even_where_it_fails() {
    let room = tempfile::tempdir().unwrap();
    let folder = Folder::make(&room.path().join("a/b")).unwrap();
    folder.replace("page", b"one").unwrap();
    folder.replace("page", b"two").unwrap();
    assert_eq!(fs::read(room.path().join("a/b/page")).unwrap(), b"two");
    assert!(folder.create("page").is_err(), "what is there is not opened");
    assert!(folder.create_private("page").is_err());
    fs::create_dir(room.path().join("a/b/directory")).unwrap();
    assert!(folder.replace("directory", b"no").is_err());
    assert_eq!(fs::read_dir(room.path().join("a/b")).unwrap().count(), 2);
    folder.sync().unwrap();
}

#[test]
fn a_file_that_is_filled_first_has_its_name_only_then_and_never_anothers() {
    let room = tempfile::tempdir().unwrap();
    let folder = Folder::open(room.path()).unwrap();
    let place = room.path().join("journal");
    let filled = folder.create_filled("journal", |mut file| {
        assert!(!place.exists(), "a kill now would leave half of it under its name");
        file.write_all(b"header")
    });
    filled.unwrap().unwrap();
    assert_eq!(fs::read(&place).unwrap(), b"header");
    let again = folder.create_filled("journal", |_| -> Result<(), ()> { panic!("it is there") });
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    let late = folder.create_filled("late", |_| fs::write(room.path().join("late"), "first"));
    assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(folder.create_filled("failed", |_| Err::<(), _>(7)).unwrap(), Err(7));
    let mut left: Vec<_> =
        fs::read_dir(room.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["journal", "late"]);
    assert_eq!(fs::read(room.path().join("late")).unwrap(), b"first");
}
