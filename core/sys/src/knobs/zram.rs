//! A zram device of one's own: compressed memory behind a block device, in use as swap.
//!
//! One idea: a device is asked for by `hot_add` (Linux 4.2), so it is nobody else's before it is
//! ours, and it goes by `hot_remove` as a whole. The kernel gives the lowest free number, which is
//! why its name can be journalled before it exists; `diskseq` (Linux 5.15) tells it from a later
//! device of the same number.
//!
//! An idle device that is there already is left alone: somebody may be about to use it.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    KnobError, Knobs, Outcome,
    made::Made,
    making::Making,
    swap::{self, SwapSpace},
    value::{again, is_busy, write},
};
use crate::machine::{Tree, value};

const CONTROL: &str = "sys/class/zram-control";

/// Attempts at what fails as long as somebody has the device open: udev looks at every new one.
const ATTEMPTS: u32 = 60;
const WAIT: Duration = Duration::from_millis(50);

/// Whether the kernel can add a device.
pub fn is_offered(tree: &Tree) -> bool {
    tree.path(format!("{CONTROL}/hot_add")).exists()
}

/// The compression algorithms that the kernel lists, its default first; empty where no device is
/// there to ask.
pub fn algorithms(tree: &Tree) -> Vec<String> {
    let mut devices = tree.numbered("sys/block", "zram").into_iter();
    let text = devices.find_map(|n| tree.text(format!("sys/block/zram{n}/comp_algorithm")));
    let text = text.unwrap_or_default();
    let default = value::selected(&text).to_owned();
    let mut names: Vec<String> =
        text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect();
    names.sort_by_key(|name| *name != default);
    names
}

/// One device.
#[derive(Debug)]
struct Device<'t> {
    tree: &'t Tree,
    number: u32,
}

impl Device<'_> {
    /// One of its files, in the tree.
    fn file(&self, name: &str) -> String {
        format!("sys/block/zram{}/{name}", self.number)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tree.path(self.file(name))
    }

    fn node(&self) -> PathBuf {
        self.tree.path(format!("dev/zram{}", self.number))
    }

    fn exists(&self) -> bool {
        self.path("").is_dir()
    }

    fn is_initialised(&self) -> bool {
        self.tree.number(self.file("initstate")) == Some(1_u32)
    }

    /// 0 where the kernel does not number its disks.
    fn diskseq(&self) -> u64 {
        self.tree.number(self.file("diskseq")).unwrap_or(0)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), KnobError> {
        let path = self.path(file);
        write(&path, value).map_err(KnobError::rejected(&path, value))
    }
}

/// Adds a device, sets it up and swaps to it.
pub(super) fn make<'k>(
    knobs: &'k Knobs,
    bytes: u64,
    algorithm: Option<&str>,
) -> Result<(Making<'k>, SwapSpace), KnobError> {
    let tree = knobs.place.tree();
    let priority = swap::priority_above_all(tree)?;
    let there = tree.numbered("sys/block", "zram");
    let free = (0..=there.len()).find(|number| !there.contains(number)).unwrap_or(there.len());
    let number = u32::try_from(free).expect("fewer than 2^32 devices");
    let making = Making::begin(knobs, Made::Zram { number, bytes, diskseq: None })?;
    let control = tree.path(format!("{CONTROL}/hot_add"));
    let added = fs::read_to_string(&control).map_err(KnobError::of("read", &control))?;
    let number = added.trim().parse().unwrap_or(number);
    let device = Device { tree, number };
    making.came_to(&Made::Zram { number, bytes, diskseq: Some(device.diskseq()) })?;
    if let Some(algorithm) = algorithm {
        device.set("comp_algorithm", algorithm)?;
    }
    let algorithm = tree.choice(device.file("comp_algorithm"));
    device.set("disksize", &bytes.to_string())?;
    let node = device.node();
    if !node.exists() {
        let why = "the kernel's new device does not appear; mount devtmpfs on /dev".to_owned();
        return Err(KnobError::Unsuitable { path: node, why });
    }
    // O_EXCL refuses a block device that is in use.
    let flags = libc::O_EXCL | libc::O_NOFOLLOW;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(&node);
    swap::write_header(&file.map_err(KnobError::of("open", &node))?, &node, bytes)?;
    swap::on(&node, priority)?;
    Ok((making, SwapSpace { path: node, kind: swap::Kind::Zram, algorithm, bytes }))
}

/// Removes the device of this number, if it is the one that was added.
pub(super) fn remove(tree: &Tree, number: u32, diskseq: Option<u64>) -> Result<Outcome, KnobError> {
    let device = Device { tree, number };
    if !device.exists() {
        return Ok(Outcome::NotThere);
    }
    let not_ours = |why: &str| Ok(Outcome::NotOurs { why: why.to_owned() });
    match diskseq {
        // Killed around the add: a device of ours was not set up yet.
        None if device.is_initialised() => return not_ours("it was set up by someone else"),
        Some(seq) if seq != device.diskseq() => return not_ours("it was added later"),
        _ => {}
    }
    swap::off(tree, &device.node())?;
    if device.is_initialised() {
        write_when_closed(&device.path("reset"), "1")?;
    }
    write_when_closed(&tree.path(format!("{CONTROL}/hot_remove")), &number.to_string())?;
    Ok(Outcome::Removed)
}

/// Writes as soon as nobody has the device open.
fn write_when_closed(path: &Path, value: &str) -> Result<(), KnobError> {
    let written = again(ATTEMPTS, WAIT, is_busy, |_| write(path, value));
    written.map_err(KnobError::of("write", path))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::knobs::Place;

    /// A machine with one device, of which these files say these things.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        for directory in ["sys/block/zram1", CONTROL, "proc"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        for (path, text) in files {
            fs::write(root.path().join("sys/block/zram1").join(path), text).unwrap();
        }
        fs::write(root.path().join(CONTROL).join("hot_remove"), "").unwrap();
        let tree = Tree::at(root.path());
        (root, tree)
    }

    fn removed(tree: &Tree) -> String {
        tree.text(format!("{CONTROL}/hot_remove")).unwrap()
    }

    #[test]
    fn the_default_algorithm_is_listed_first() {
        let (_root, tree) = machine(&[("comp_algorithm", "lzo lzo-rle [lz4] zstd\n")]);
        assert_eq!(algorithms(&tree), ["lz4", "lzo", "lzo-rle", "zstd"]);
        assert!(!is_offered(&tree), "there is no hot_add");
    }

    #[test]
    fn only_the_device_that_was_added_is_removed() {
        let (_root, tree) = machine(&[("initstate", "0\n"), ("diskseq", "11\n")]);
        assert_eq!(remove(&tree, 7, None).unwrap(), Outcome::NotThere);
        assert!(matches!(remove(&tree, 1, Some(10)).unwrap(), Outcome::NotOurs { .. }));
        assert_eq!(removed(&tree), "");
        assert_eq!(remove(&tree, 1, Some(11)).unwrap(), Outcome::Removed);
        assert_eq!(removed(&tree), "1");
    }

    #[test]
    fn killed_around_the_add_an_idle_device_is_removed_and_one_at_work_is_not() {
        let (_root, tree) = machine(&[("initstate", "1\n"), ("diskseq", "11\n")]);
        assert!(matches!(remove(&tree, 1, None).unwrap(), Outcome::NotOurs { .. }));
        assert_eq!(removed(&tree), "");
        let (_root, tree) = machine(&[("initstate", "0\n"), ("diskseq", "11\n")]);
        assert_eq!(remove(&tree, 1, None).unwrap(), Outcome::Removed);
    }

    /// Knobs of a machine, over which a shell watches that does nothing. It is a child, which other
    /// tests would wait for or end.
    fn knobs(root: &tempfile::TempDir, tree: Tree) -> Knobs {
        let place = Place::at(root.path().join("lab")).with_tree(tree);
        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", "printf R >&0; exec cat"]);
        Knobs::acquire(&place, "test", watchdog).unwrap()
    }

    /// One kernel's answer to `hot_add`: the device that is there, set up by then.
    fn machine_that_adds_1() -> (tempfile::TempDir, Tree) {
        let files = [
            ("initstate", "1\n"),
            ("diskseq", "11\n"),
            ("comp_algorithm", "[lzo] zstd\n"),
            ("disksize", ""),
            ("reset", ""),
        ];
        let (root, tree) = machine(&files);
        fs::write(root.path().join(CONTROL).join("hot_add"), "1\n").unwrap();
        (root, tree)
    }

    #[test]
    fn a_device_is_set_up_step_by_step_and_goes_again_when_swap_refuses_it() {
        let _alone = crate::alone();
        let (root, tree) = machine_that_adds_1();
        assert!(is_offered(&tree));
        fs::create_dir(root.path().join("dev")).unwrap();
        fs::write(root.path().join("dev/zram1"), "").unwrap();
        let knobs = knobs(&root, tree.clone());
        // An ordinary file that is shorter than its header says is no swap for any kernel; and who
        // may not swap is told so.
        let node = root.path().join("dev/zram1");
        let error = make(&knobs, 1 << 20, Some("zstd")).unwrap_err();
        let is_denied = matches!(&error, KnobError::Denied { path } if *path == node);
        assert!(is_denied || error.to_string().contains("swapon"), "{error}");
        let text = |file: &str| tree.text(format!("sys/block/zram1/{file}")).unwrap();
        assert!(text("comp_algorithm").starts_with("zstd"));
        assert_eq!(text("disksize"), "1048576");
        let header = fs::read(root.path().join("dev/zram1")).unwrap();
        assert!(header.ends_with(b"SWAPSPACE2"));
        // By its number of disks it is ours, though it is at work: the journal was told.
        assert_eq!((text("reset").as_str(), removed(&tree).as_str()), ("1", "1"));
        assert_eq!(knobs.take_warnings(), Vec::<String>::new());
    }

    #[test]
    fn a_device_that_does_not_appear_or_refuses_is_named_and_goes_again() {
        let _alone = crate::alone();
        let (root, tree) = machine_that_adds_1();
        let knobs = knobs(&root, tree.clone());
        let error = make(&knobs, 1 << 20, None).unwrap_err();
        assert!(error.to_string().contains("devtmpfs"), "{error}");
        assert_eq!(removed(&tree), "1");
        fs::remove_file(root.path().join("sys/block/zram1/comp_algorithm")).unwrap();
        let error = make(&knobs, 1 << 20, Some("zstd")).unwrap_err();
        assert!(matches!(error, KnobError::Rejected { .. }), "{error}");
    }

    #[test]
    fn a_device_that_was_set_up_is_reset_first() {
        let (_root, tree) = machine(&[("initstate", "1"), ("diskseq", "3"), ("reset", "")]);
        assert_eq!(remove(&tree, 1, Some(3)).unwrap(), Outcome::Removed);
        assert_eq!(tree.text("sys/block/zram1/reset").unwrap(), "1");
    }
}
