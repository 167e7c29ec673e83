//! What is behind a segment: each back end, what it needs of the machine, and how it is met.
//!
//! The one idea: a row says what must be there before the program starts. A pool that is too small
//! is made larger for as long as the program runs, as for a case, where we have the right to; what
//! is missing otherwise is refused, with how much there is and the command that gives more.

use std::time::Duration;

use pagelab_bench::needs::Pool;
use pagelab_bench::{Need, Needed, Remedy};
use pagelab_cli::{exit::Failure, settings};
use pagelab_interpose::segment::{AHEAD_OF, AHEAD_SHARE, Backing, Leaf, Wish, Zero};
use pagelab_memtype::workloads::needs::Module;
use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::{
    knobs::KnobGuard,
    machine::{Topology, rights, thp::HugePages},
    memtype::Device,
};

/// A back end.
pub(super) struct Row {
    backing: Backing,
    /// What it is, for the help.
    pub(super) about: &'static str,
    /// What it needs of the machine for segments of these sizes.
    needs: fn(&Wish) -> Vec<Needed>,
}

/// The table.
pub(super) const ROWS: [Row; 3] = [
    Row {
        backing: Backing::Thp,
        about: "transparent huge pages, where the kernel finds some",
        needs: |wish| match wish.zero {
            Zero::Ahead => vec![Available(bytes(wish)).needed()],
            Zero::Fault | Zero::Release => Vec::new(),
        },
    },
    Row {
        backing: Backing::Hugetlb,
        about: "pages of a hugetlb pool, all taken when the program starts",
        needs: pools,
    },
    Row {
        backing: Backing::Module,
        about: "frames of the kernel module, contiguous",
        needs: |wish| vec![Module.needed(), Frames(bytes(wish)).needed()],
    },
];

/// The row of a name on the command line.
pub(super) fn named(text: &str) -> Result<Backing, String> {
    Backing::named(text.as_bytes()).ok_or_else(|| {
        let names: Vec<_> =
            ROWS.iter().map(|row| format!("{} ({})", row.backing.name(), row.about)).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Bytes of both segments.
fn bytes(wish: &Wish) -> u64 {
    segments(wish).sum()
}

/// Bytes of each, as they are reserved.
fn segments(wish: &Wish) -> impl Iterator<Item = u64> {
    [wish.heap, wish.mmap].into_iter().map(|bytes| bytes.next_multiple_of(Leaf::Pmd.bytes()))
}

/// Pages of a pool: of 1 GiB as many as fit where they are the leaf, the rest of 2 MiB.
fn pools(wish: &Wish) -> Vec<Needed> {
    let giant = if wish.leaf == Leaf::Pud { Leaf::Pud.bytes() } else { u64::MAX };
    let (mut large, mut small) = (0, 0);
    for bytes in segments(wish) {
        large += bytes / giant;
        small += bytes % giant / Leaf::Pmd.bytes();
    }
    let pools = [Pool { shift: 30, pages: large }, Pool { shift: 21, pages: small }];
    pools.into_iter().filter(|pool| pool.pages > 0).map(Need::needed).collect()
}

/// So many bytes from the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Frames(u64);

impl Need for Frames {
    fn name(&self) -> String {
        format!("{} of the module's memory", format_bytes(self.0))
    }

    fn check(&self) -> bool {
        let most = |device: Device| {
            let info = device.info();
            info.limit_bytes().max(info.reserved().map_or(0, |(_, bytes)| bytes))
        };
        Device::open().is_ok_and(|device| most(device) >= self.0)
    }

    fn cure(&self) -> String {
        "ask for smaller segments, or: sudo modprobe -r pagelab; sudo modprobe pagelab limit_mb=N"
            .to_owned()
    }

    fn found(&self) -> Option<String> {
        let most = Device::open().ok()?.info().limit_bytes();
        Some(format!("it gives {} at most", display_bytes(most as f64)))
    }
}

/// So many bytes that can be zeroed ahead: others need some, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Available(u64);

impl Available {
    fn most() -> u64 {
        Topology::machine().memory_budget().bytes / AHEAD_OF * AHEAD_SHARE
    }
}

impl Need for Available {
    fn name(&self) -> String {
        format!("{} of available memory before the program begins", display_bytes(self.0 as f64))
    }

    fn check(&self) -> bool {
        self.0 <= Self::most()
    }

    fn cure(&self) -> String {
        "ask for less by --heap and --mmap, or take --zero fault".to_owned()
    }

    fn found(&self) -> Option<String> {
        let by = Topology::machine().memory_budget().limited_by;
        let most = display_bytes(Self::most() as f64);
        Some(format!("it takes {most} at most: {AHEAD_SHARE} of {AHEAD_OF} parts of {by}"))
    }
}

/// Refuses what no back end could do, whatever the machine has.
pub(super) fn refuse(wish: &Wish) -> Result<(), String> {
    let name = wish.backing.name();
    let keeps = wish.zero == Zero::Release;
    match wish.backing {
        Backing::Thp if keeps && wish.mmap == 0 => {
            Err("--zero release keeps maps that are given back, and --mmap 0 (SMM_MMAP) has none: \
             give --mmap a size, or take --zero fault"
                .to_owned())
        }
        Backing::Thp if wish.zero == Zero::Ahead && bytes(wish) == 0 => {
            Err("--zero ahead takes the memory of both segments before each program begins: say \
                 how much, by --heap or --mmap (SMM_HEAP, SMM_MMAP)"
                .to_owned())
        }
        Backing::Thp => Ok(()),
        Backing::Module if keeps => Err(format!(
            "--zero release does not go with --backing {name}, which zeroes in the fault that \
             takes memory again: take --zero fault, or --zero ahead for the first time"
        )),
        Backing::Hugetlb if keeps => Err(format!(
            "--zero release does not go with --backing {name}: whoever gives pages of a pool back \
             zeroes them, as no helper may keep them: leave --zero out"
        )),
        _ if wish.heap == 0 && wish.mmap == 0 => Err(format!(
            "--backing {name} sets memory aside for this program alone: say how much, by --heap \
             or --mmap (SMM_HEAP, SMM_MMAP)"
        )),
        Backing::Hugetlb if wish.leaf == Leaf::Base => {
            Err("--backing hugetlb has pages of 2m and of 1g: ask for --leaf 2m or --leaf 1g"
                .to_owned())
        }
        Backing::Hugetlb | Backing::Module => Ok(()),
    }
}

/// Does something while the machine has what the back end needs.
///
/// # Errors
/// When the machine lacks it and cannot be given it; what was set is put back then.
pub(super) fn held<T>(
    wish: &Wish,
    patience: Duration,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let row = ROWS.iter().find(|row| row.backing == wish.backing);
    let needs = row.map_or_else(Vec::new, |row| (row.needs)(wish));
    let lacking: Vec<_> = needs.iter().filter(|need| !need.check()).collect();
    if lacking.is_empty() {
        return act();
    }
    let settable = |need: &&&Needed| matches!(need.remedy(), Some(Remedy::Set(..)));
    if let Some(need) = lacking.iter().find(|need| !settable(need) || !rights::is_root()) {
        return Err(lack(wish, need.as_ref()));
    }
    let knobs = settings::knobs("segment run", patience)?;
    let mut guards: Vec<KnobGuard<'_>> = Vec::new();
    for need in lacking {
        // What another one changed meanwhile is not set again.
        let Some(Remedy::Set(paths, value)) = need.pending() else { continue };
        for path in paths {
            guards.push(knobs.set(path, &value).map_err(Failure::host)?);
        }
        if !need.check() {
            let found = found(need.as_ref());
            return Err(host!(
                "--backing {} needs {}, and the kernel found no more{found}: ask for smaller \
                 segments, or put free memory together: echo 1 | sudo tee \
                 /proc/sys/vm/compact_memory",
                wish.backing.name(),
                need.name()
            ));
        }
    }
    let came = act();
    // The latest first.
    while let Some(guard) = guards.pop() {
        drop(guard);
    }
    came
}

fn lack(wish: &Wish, need: &dyn Need) -> Failure {
    let (name, cure, found) = (need.name(), need.cure(), found(need));
    let who = match wish.backing {
        Backing::Thp => format!("--zero {}", wish.zero.name()),
        Backing::Hugetlb | Backing::Module => format!("--backing {}", wish.backing.name()),
    };
    host!("{who} needs {name}{found}: {cure}")
}

/// What there is of it: `, and there are 3`.
fn found(need: &dyn Need) -> String {
    if let Some(pool) = need.of::<Pool>() {
        let pools = HugePages::machine().pools();
        let found = pools.into_iter().find(|found| found.page_size == 1 << pool.shift);
        return found.map_or_else(
            || ", and this kernel has no such pool".to_owned(),
            |found| format!(", and {} are free", found.free.saturating_sub(found.reserved)),
        );
    }
    need.found().map_or_else(String::new, |found| format!(" ({found})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wish: &Wish) -> Vec<String> {
        pools(wish).iter().map(|need| need.name()).collect()
    }

    #[test]
    fn pools_are_asked_for_by_whole_leaves_and_their_rests() {
        let wish = Wish { heap: 1 << 30, mmap: (2 << 30) + (3 << 20), ..Wish::default() };
        assert_eq!(names(&wish), ["1538 free hugetlb pages of 2m"]);
        let wish = Wish { leaf: Leaf::Pud, ..wish };
        assert_eq!(names(&wish), ["3 free hugetlb pages of 1g", "2 free hugetlb pages of 2m"]);
        assert!(names(&Wish { heap: 0, mmap: 0, ..wish }).is_empty());
    }

    #[test]
    fn memory_that_is_set_aside_is_asked_for_by_its_size() {
        let of = |backing, heap, leaf| refuse(&Wish { backing, heap, leaf, ..Wish::default() });
        assert!(of(Backing::Thp, 0, Leaf::Base).is_ok());
        assert!(of(Backing::Hugetlb, 0, Leaf::Pmd).unwrap_err().contains("--heap or --mmap"));
        assert!(of(Backing::Hugetlb, 1 << 30, Leaf::Base).unwrap_err().contains("--leaf 2m"));
        assert!(of(Backing::Module, 1 << 30, Leaf::Base).is_ok());
    }

    #[test]
    fn what_cannot_be_zeroed_at_release_is_refused() {
        let of = |backing, mmap| {
            let wish =
                Wish { backing, mmap, zero: Zero::Release, heap: 1 << 30, ..Wish::default() };
            refuse(&wish)
        };
        assert!(of(Backing::Thp, 1 << 30).is_ok());
        assert!(of(Backing::Thp, 0).unwrap_err().contains("--mmap 0"));
        assert!(of(Backing::Hugetlb, 1 << 30).unwrap_err().contains("leave --zero out"));
        assert!(of(Backing::Module, 1 << 30).unwrap_err().contains("--zero fault"));
    }

    #[test]
    fn memory_that_is_zeroed_ahead_is_asked_for_by_its_size_and_available() {
        let of = |heap| Wish { heap, zero: Zero::Ahead, ..Wish::default() };
        assert!(refuse(&of(0)).unwrap_err().contains("--heap or --mmap"));
        assert!(refuse(&of(1 << 30)).is_ok());
        let need = |wish: &Wish| (ROWS[0].needs)(wish);
        assert!(need(&of(64 << 20)).iter().all(|need| need.check()));
        let much = need(&of(1 << 50));
        assert!(!much[0].check() && much[0].found().unwrap().contains("3 of 4 parts of "));
        let why = lack(&of(1 << 50), much[0].as_ref()).sentence();
        assert!(why.starts_with("--zero ahead needs 1024 TiB of available memory"), "{why}");
        assert!(need(&Wish { zero: Zero::Fault, ..of(1 << 50) }).is_empty());
    }

    #[test]
    fn every_back_end_has_its_row() {
        let rows = ROWS.map(|row| row.backing);
        assert_eq!(rows, Backing::ALL);
        assert!(named("shm").unwrap_err().contains("hugetlb (pages of a hugetlb pool"));
    }
}
