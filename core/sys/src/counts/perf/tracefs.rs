#![expect(unsafe_code, reason = "a thread gets a mount namespace of its own")]
//! The kernel's tracepoints by name: the number that perf knows each by, and where its fields are.
//!
//! The one idea: where tracefs is not mounted it is mounted for one short-lived thread, in a mount
//! namespace that ends with it, so that nothing on the machine changes. Field positions are read,
//! never assumed: they differ between kernels.
//!
//! It enables nothing and writes nothing below tracefs.
//!
//! Rules for the unsafe block:
//! 1. The namespace is unshared by a thread that was started for it and that ends right after;
//!    `CLONE_NEWNS` changes the calling thread only (and unshares its working directory).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    thread::{UnshareFlags, unshare_unsafe},
};

/// Where tracefs is mounted, where it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracepoint of the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// `system:name`.
    pub name: String,
    /// The number that perf knows it by.
    pub id: u64,
    /// Offset and length of each field in the raw data of a sample.
    fields: BTreeMap<String, (usize, usize)>,
}

impl Tracepoint {
    /// An unsigned field of up to 8 bytes in the raw data of a sample; `None` where the kernel has
    /// no such field or the data are shorter.
    pub fn field(&self, raw: &[u8], name: &str) -> Option<u64> {
        let (offset, length) = *self.fields.get(name)?;
        let bytes = raw.get(offset..offset.checked_add(length)?)?;
        let mut word = [0; 8];
        word.get_mut(..length)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// From the text of its `format` file; `None` where that has no number.
    pub fn parse(name: &str, format: &str) -> Option<Self> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let fields = format.lines().filter_map(field).collect();
        Some(Self { name: name.to_owned(), id, fields })
    }
}

/// Name, offset and length of a line `field:unsigned long address; offset:8; size:8; signed:0;`.
fn field(line: &str) -> Option<(String, (usize, usize))> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let name = parts.next()?.rsplit([' ', '*']).next()?.split('[').next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let offset = number("offset:")?;
    Some((name.to_owned(), (offset, number("size:")?)))
}

/// The tracepoints of these names (`system:name`); `None` for one that the kernel does not have or
/// that this process may not see.
pub fn tracepoints(names: &[&str]) -> Vec<Option<Tracepoint>> {
    let mounted = PLACES.iter().map(Path::new).find(|place| place.join("events").is_dir());
    if let Some(place) = mounted {
        return read(place, names);
    }
    let asked: Vec<String> = names.iter().map(ToString::to_string).collect();
    let in_private = move || -> Option<Vec<Option<Tracepoint>>> {
        let place = mount_privately()?;
        Some(read(&place, &asked.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let looks = thread::Builder::new().spawn(in_private).ok();
    let found = looks.and_then(|looks| looks.join().ok()).flatten();
    found.unwrap_or_else(|| vec![None; names.len()])
}

/// Mounts tracefs where only the calling thread sees it.
fn mount_privately() -> Option<PathBuf> {
    let place = PLACES.iter().map(PathBuf::from).find(|place| place.is_dir())?;
    // SAFETY: rule 1: the caller is a thread of its own, and shares no memory rules that depend on
    // a mount namespace; no file descriptor changes.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.ok()?;
    let propagation = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", propagation).ok()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("pagelab", &place, "tracefs", flags, None).ok()?;
    Some(place)
}

fn read(place: &Path, names: &[&str]) -> Vec<Option<Tracepoint>> {
    let one = |name: &&str| {
        let (system, event) = name.split_once(':')?;
        let path = place.join("events").join(system).join(event).join("format");
        Tracepoint::parse(name, &fs::read_to_string(path).ok()?)
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: page_fault_user\nID: 190\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:unsigned long address;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:20;\tsize:16;\tsigned:0;\n\nprint fmt: \"%lx\"\n";

    #[test]
    fn fields_are_found_where_the_kernel_says() {
        let point = Tracepoint::parse("exceptions:page_fault_user", FORMAT).unwrap();
        let mut raw = [0; 24];
        raw[8..16].copy_from_slice(&0x7f00_1234_5678_u64.to_le_bytes());
        raw[16..20].copy_from_slice(&9_u32.to_le_bytes());
        assert_eq!(point.id, 190);
        assert_eq!(point.field(&raw, "address"), Some(0x7f00_1234_5678));
        assert_eq!(point.field(&raw, "order"), Some(9));
        assert!(point.fields.contains_key("comm"));
        // Longer than a number, not there at all, and data that end too early.
        assert_eq!(point.field(&[0; 64], "comm"), None);
        assert_eq!(point.field(&raw, "error_code"), None);
        assert_eq!(point.field(&raw[..10], "address"), None);
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn what_the_kernel_does_not_have_is_none_and_nothing_stays_mounted() {
        // Anything else may be mounted meanwhile by somebody else.
        let mounts = || {
            let text = fs::read_to_string("/proc/self/mounts").unwrap();
            text.lines().any(|line| line.starts_with("pagelab "))
        };
        let found = tracepoints(&["exceptions:page_fault_user", "no:such_event", "nonsense"]);
        assert_eq!(found.len(), 3);
        assert!(found[1].is_none() && found[2].is_none());
        match &found[0] {
            Some(point) => assert!(point.id > 0 && point.fields.contains_key("error_code")),
            None => {
                eprintln!(
                    "skipped: no tracepoints here; to run it: sudo, on a kernel with tracefs"
                );
            }
        }
        assert!(!mounts());
    }
}
