//! Where a program of tests runs whose code has a mistake in it.
//!
//! The one idea: as root, a mistake could reach the machine. So the program sees `/sys` and
//! `/proc/sys` for reading only, has `/run` (the knobs' lock) and `/var/tmp` (swap files) of its
//! own, processes and a memory cgroup of its own. What is left when it ends is ended, switched off
//! and removed. A device could not be told from somebody else's: there is no way to add one.
//! Nobody but root could change the machine: they need no room.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

use anyhow::{Context, Result, bail};

use crate::shell::{output, program};

/// What prepares the room, inside its own namespaces; `$1` is its directory. Whoever was started in
/// the background ignores two signals, which tests send.
const PREPARE: &str = "\
mount --make-rprivate /
mount -t tmpfs pagelab-mutants /run
mount --bind \"$1\" /var/tmp
mount -o remount,bind,ro /sys
if [ -d /sys/class/zram-control ]; then mount -t tmpfs pagelab-mutants /sys/class/zram-control; fi
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
shift
exec env --default-signal=INT,QUIT \"$@\"";

/// Where groups are made, in version 1 and 2 of cgroups.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
/// The group of a room.
const GROUP: &str = "pagelab-mutants";

/// Runs a program in a room, and ends as it ended; the first word is the room's directory, which
/// lies on a disk, because swap files lie in it.
#[expect(clippy::exit, reason = "its exit code is ours")]
pub(super) fn run(words: &[OsString]) -> Result<()> {
    let [directory, words @ ..] = words else { bail!("--room takes a directory and a program") };
    let directory = Path::new(directory);
    let (name, arguments) = words.split_first().context("--room takes a program")?;
    let status = if output(&mut program("id", ["-u"]))?.trim() == "0" {
        clear(directory)?;
        let status = enter(directory, words)?.status().context("starting unshare");
        clear(directory)?;
        status?
    } else {
        Command::new(name).args(arguments).status().context("starting the tests")?
    };
    exit(status.code().unwrap_or(101));
}

/// The command that makes the room and runs the program in it.
fn enter(directory: &Path, words: &[OsString]) -> Result<Command> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let mut command = program("sh", ["-c"]);
    // First into the group, so that nothing is outside of it.
    let join = group().map_or(String::new(), |group| {
        let group = group.display();
        format!("mkdir -p {group} && echo $$ > {group}/cgroup.procs && ")
    });
    // It ends with us, also when we are killed because its tests hang.
    let unshare = "exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
                   --mount-proc sh -ec \"$0\" sh";
    command.arg(format!("{join}{unshare} \"$@\"")).arg(PREPARE).arg(directory).args(words);
    Ok(command)
}

/// The room's group, where memory is controlled.
fn group() -> Option<PathBuf> {
    let mut above = GROUPS.iter().map(Path::new);
    let found = above.find(|above| {
        let controls = ["memory.stat", "cgroup.subtree_control"];
        above.join("cgroup.procs").exists() && controls.iter().any(|file| above.join(file).exists())
    });
    found.map(|above| above.join(GROUP))
}

/// Takes away what a program before has left in its room.
fn clear(directory: &Path) -> Result<()> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    for path in files(directory).iter().filter(|path| is_on(&swaps, directory, path)) {
        output(program("swapoff", [""; 0]).arg(path)).context("switching off a swap file")?;
    }
    if directory.exists() {
        fs::remove_dir_all(directory)
            .with_context(|| format!("emptying {}", directory.display()))?;
    }
    if let Some(group) = group().filter(|group| group.exists()) {
        // The kernel's own files in it go with it.
        let below = fs::read_dir(&group).into_iter().flatten().flatten();
        below.map(|entry| entry.path()).filter(|path| path.is_dir()).for_each(|path| {
            let _ = fs::remove_dir(path);
        });
        let _ = fs::remove_dir(group);
    }
    Ok(())
}

/// Every file in a directory and those below.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.map(|entry| entry.path());
    found.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Whether the kernel swaps to a file of a room. Once the room is gone, the kernel names it from
/// where the room had it mounted.
fn is_on(swaps: &str, directory: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(directory) else { return false };
    let named = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    named.map(Path::new).any(|named| named.ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_swap_in_the_room_is_switched_off() {
        let swaps = "Filename Type Size Used Priority\n\
                     /.tmpA/pagelab-swap-1-0 file 16380 0 32512\n\
                     /a/room/.tmpB/y file 16380 0 1\n\
                     /dev/sda2 partition 8 0 -2\n";
        let is_on = |path| is_on(swaps, Path::new("/a/room"), Path::new(path));
        assert!(is_on("/a/room/.tmpA/pagelab-swap-1-0") && is_on("/a/room/.tmpB/y"));
        assert!(!is_on("/a/room/.tmpC/pagelab-swap-1-0") && !is_on("/dev/sda2"));
    }

    #[test]
    fn a_program_gets_its_words_behind_the_room() {
        let words = ["/a/test", "it's a \"name\"", "-q"].map(OsString::from);
        let directory = std::env::temp_dir().join(format!("pagelab-room-{}", std::process::id()));
        let command = enter(&directory, &words).unwrap();
        fs::remove_dir(&directory).unwrap();
        let given: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        assert_eq!(given[4..], words);
        assert_eq!(given[3], directory);
    }
}
