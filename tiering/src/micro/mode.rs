//! What moves pages while the accesses are made: nothing, or one of the kernel's own modes, as the
//! settings that make it so.
//!
//! The one idea: a mode is a list of settings, each a need with its remedy, so that a run as root
//! sets them for the case, journalled, and puts them back. The interface of pghot has two
//! generations, neither in a released kernel; which one is there is asked of the files.

use pagelab_bench::{
    Need, Needed, Plain,
    needs::{Node, Setting, far_node, near_node},
    words,
};
use pagelab_sys::machine::Tree;

use super::{damon, ours};

words! {
    /// What moves pages.
    pub enum Mode {
        /// Nothing: NUMAB0.
        None = "none",
        /// NUMA balancing between nodes, whatever their tier: NUMAB1.
        Numab1 = "numab1",
        /// NUMA balancing between tiers: NUMAB2.
        Numab2 = "numab2",
        /// pghot fed by the hint faults of NUMAB2.
        Pghot = "pghot",
        /// pghot fed by the processor's samples: HWHINTS.
        Hwhints = "pghot-hwhints",
        /// DAMON's `migrate_hot`, by a monitor of the slow node.
        Damon = "damon",
        /// Our own engine, by soft-dirty bits.
        Ours = "ours",
    }
}

/// NUMA balancing: 0, 1 and 2 are the published NUMAB0, NUMAB1 and NUMAB2.
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Reads as a word and takes one (since Linux 5.19).
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
/// Of the driver of hardware samples.
const SAMPLER: &str = "/sys/devices/system/cpu/ibs-mprof/enabled";

/// How soon and how often the kernel marks pages, where it is hurried: as often as it allows.
const HURRY: [(&str, &str); 3] = [
    ("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "100"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", "100"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms", "500"),
];

/// The files of one generation of pghot.
#[derive(Debug, PartialEq, Eq)]
struct Generation {
    /// A bit for each source: 1 are hint faults, 2 the processor's samples.
    sources: &'static str,
    /// Accesses that make a page hot.
    threshold: &'static str,
    /// The node that pages go to: 0 unless it is told another, whichever is the fast one.
    target: &'static str,
}

/// v7 of the series, then what came after it.
const GENERATIONS: [Generation; 2] = [
    Generation {
        sources: "/sys/kernel/debug/pghot/enabled_sources",
        threshold: "/sys/kernel/debug/pghot/freq_threshold",
        target: "/sys/kernel/debug/pghot/target_nid",
    },
    Generation {
        sources: "/proc/sys/vm/pghot_enabled_sources",
        threshold: "/proc/sys/vm/pghot_freq_threshold",
        target: "/proc/sys/vm/pghot_target_nid",
    },
];

/// How often and how much pghot's daemon moves, in both generations: its defaults, with which the
/// published numbers were made.
const DAEMON: [(&str, &str); 3] = [
    ("/sys/kernel/debug/pghot/kmigrated_sleep_ms", "100"),
    ("/sys/kernel/debug/pghot/kmigrated_batch_nr", "512"),
    ("/proc/sys/vm/pghot_promote_rate_limit_MBps", "65536"),
];

/// How long ago two accesses may lie to make a page hot, in milliseconds, in both generations: 3000
/// where a record has a byte, 5000 where it has four, which no file tells.
const WINDOW: &str = "/proc/sys/vm/pghot_promote_freq_window_ms";

/// What a case asks for beside its mode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tuned {
    /// Whether the kernel marks pages as often as it can.
    pub(super) is_hurried: bool,
    /// pghot's window; as the kernel has it where nobody says.
    pub(super) window_ms: Option<u64>,
}

/// The generation whose files are there.
fn generation(tree: &Tree) -> Option<&'static Generation> {
    GENERATIONS.iter().find(|generation| tree.path(&generation.sources[1..]).is_file())
}

const PGHOT: Plain = Plain {
    name: "pghot in the kernel",
    has: || generation(&Tree::machine()).is_some(),
    cure: "use a kernel with the pghot patches (no release has them), and mount debugfs for v7",
};

/// Two nodes in one tier: nothing would be promoted.
const TIERS: Plain = Plain {
    name: "a second memory node in a lower tier",
    has: || {
        let tier = |node: Option<usize>| tier_of(&Tree::machine(), node?);
        matches!((tier(near_node()), tier(far_node())), (Some(near), Some(far)) if near < far)
    },
    cure: "use a machine whose slow memory the kernel puts into a tier of its own: by an HMAT \
           (since Linux 6.7), or memory that dax/kmem brought online",
};

/// The number of the tier that a node is in (since Linux 6.1): the higher, the slower.
fn tier_of(tree: &Tree, node: usize) -> Option<usize> {
    const TIERS: &str = "sys/devices/virtual/memory_tiering";
    let mut tiers = tree.numbered(TIERS, "memory_tier").into_iter();
    tiers.find(|tier| tree.list(format!("{TIERS}/memory_tier{tier}/nodelist")).contains(&node))
}

impl Mode {
    /// The counter of `/proc/vmstat` that says how many base pages it promoted.
    pub(super) fn promotions(self) -> &'static str {
        match self {
            // It counts as promotion what comes from a lower tier since Linux 6.7 only.
            Self::Numab1 => "numa_pages_migrated",
            // It moves by a call, or DAMON does; the kernel counts whatever moves.
            Self::Ours | Self::Damon => "pgmigrate_success",
            _ => "pgpromote_success",
        }
    }

    /// Whether pghot decides.
    pub(super) fn is_pghot(self) -> bool {
        matches!(self, Self::Pghot | Self::Hwhints)
    }

    /// The settings that it consists of.
    fn settings(self, tree: &Tree, tuned: Tuned) -> Vec<Setting> {
        let Tuned { is_hurried, window_ms } = tuned;
        let (balancing, demotes) = match self {
            Self::None | Self::Ours => ("0", false),
            Self::Hwhints | Self::Damon => ("0", true),
            Self::Numab1 => ("1", false),
            Self::Numab2 | Self::Pghot => ("2", true),
        };
        let may_lack = self == Self::None;
        let demotion = if demotes { "true" } else { "false" };
        let mut settings = vec![
            Setting { may_lack, ..Setting::new(BALANCING, balancing) },
            Setting { may_lack: true, ..Setting::new(DEMOTION, demotion) },
        ];
        if balancing != "0" && is_hurried {
            settings.extend(HURRY.map(|(path, value)| Setting::new(path, value)));
        }
        if let (true, Some(there)) = (self.is_pghot(), generation(tree)) {
            let source = if self == Self::Pghot { "1" } else { "2" };
            settings.push(Setting::new(there.sources, source));
            // What the published numbers follow from: one access is enough.
            settings.push(Setting::new(there.threshold, "1"));
            let fast = near_node().unwrap_or(0).to_string();
            settings.push(Setting { value: fast.into(), ..Setting::new(there.target, "") });
            settings.extend(
                DAEMON.map(|(path, value)| Setting { may_lack: true, ..Setting::new(path, value) }),
            );
            settings.extend(window_ms.map(|window| Setting {
                value: window.to_string().into(),
                ..Setting::new(WINDOW, "")
            }));
        }
        if self == Self::Hwhints {
            settings.push(Setting::new(SAMPLER, "1"));
        }
        settings
    }

    /// What it needs of the host.
    pub(super) fn needs(self, tuned: Tuned) -> Vec<Needed> {
        let mut needs = Vec::new();
        if self != Self::None {
            needs.push(Node::Far.needed());
        }
        if !matches!(self, Self::None | Self::Numab1 | Self::Damon) {
            needs.push(TIERS.needed());
        }
        if self.is_pghot() {
            needs.push(PGHOT.needed());
        }
        if self == Self::Ours {
            needs.extend([ours::ROOT.needed(), ours::SOURCE.needed()]);
        }
        let settings = self.settings(&Tree::machine(), tuned).into_iter();
        needs.extend(settings.map(Need::needed));
        if self == Self::Damon {
            needs.push(damon::Monitor.needed());
        }
        needs
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// A machine that has these files.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path()).with(files.iter().copied());
        (root, tree)
    }

    fn values(mode: Mode, tree: &Tree) -> Vec<(&'static str, String)> {
        let settings = mode.settings(tree, Tuned::default()).into_iter();
        settings.map(|setting| (setting.path, setting.value.into_owned())).collect()
    }

    fn has(values: &[(&str, String)], path: &str, value: &str) -> bool {
        values.iter().any(|(file, set)| *file == path && set == value)
    }

    #[test]
    fn each_generation_of_pghot_is_set_by_its_own_names() {
        for (nth, generation) in GENERATIONS.iter().enumerate() {
            let (_root, tree) = tree(&[(generation.sources, "3\n"), (generation.threshold, "2\n")]);
            let hints = values(Mode::Pghot, &tree);
            let fast = near_node().unwrap_or(0).to_string();
            for (path, value) in [
                (BALANCING, "2"),
                (generation.sources, "1"),
                (generation.threshold, "1"),
                (generation.target, &*fast),
                ("/sys/kernel/debug/pghot/kmigrated_batch_nr", "512"),
            ] {
                assert!(has(&hints, path, value), "generation {nth}: {path} in {hints:?}");
            }
            let samples = values(Mode::Hwhints, &tree);
            assert!(has(&samples, BALANCING, "0") && has(&samples, SAMPLER, "1"));
            assert!(has(&samples, generation.sources, "2"), "generation {nth}");
            let plain = [(BALANCING, "2".to_owned()), (DEMOTION, "true".to_owned())];
            assert_eq!(values(Mode::Numab2, &tree), plain);
        }
        let (_root, without) = tree(&[(BALANCING, "0\n")]);
        assert_eq!(generation(&without), None);
    }

    #[test]
    fn the_window_is_that_of_the_kernel_unless_somebody_says() {
        let (_root, tree) = tree(&[(GENERATIONS[1].sources, "1\n"), (WINDOW, "5000\n")]);
        assert!(values(Mode::Pghot, &tree).iter().all(|(path, _)| *path != WINDOW));
        let asked = Tuned { window_ms: Some(1000), ..Tuned::default() };
        for mode in [Mode::Pghot, Mode::Hwhints] {
            let settings = mode.settings(&tree, asked);
            let window = settings.iter().find(|setting| setting.path == WINDOW).unwrap();
            assert!(window.value == "1000" && !window.may_lack, "{settings:?}");
        }
    }

    #[test]
    fn nothing_moves_where_nothing_is_asked_for() {
        let (_root, tree) = tree(&[]);
        let off = [(BALANCING, "0".to_owned()), (DEMOTION, "false".to_owned())];
        assert_eq!(values(Mode::None, &tree), off);
        let hurried = Tuned { is_hurried: true, ..Tuned::default() };
        assert!(Mode::None.settings(&tree, hurried).iter().all(|setting| setting.may_lack));
    }

    #[test]
    fn a_node_is_in_the_tier_that_lists_it() {
        let of = |tier: &str| format!("/sys/devices/virtual/memory_tiering/{tier}/nodelist");
        let (near, far) = (of("memory_tier4"), of("memory_tier22"));
        let (_root, tree) = tree(&[(near.as_str(), "0-1\n"), (far.as_str(), "2\n")]);
        let tiers: Vec<_> = (0..4).map(|node| tier_of(&tree, node)).collect();
        assert_eq!(tiers, [Some(4), Some(4), Some(22), None]);
    }
}
