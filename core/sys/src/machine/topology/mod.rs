//! What the machine is made of: CPUs, caches, NUMA nodes, and how much memory may be used now.
//!
//! One idea: everything is a function of a [`Tree`] of kernel files, so that a test can build the
//! machine it needs. Nothing is cached: CPUs go offline and limits change.
//!
//! It is not a description for the record (that is [`crate::machine::environment`]) and sets
//! nothing: pinning is the caller's.

pub(crate) mod cgroup;
pub(crate) mod memory;
mod tree;

pub(crate) use memory::MemoryBudget;
pub use tree::Tree;

/// The topology as the kernel files below a root tell it.
#[derive(Debug, Clone)]
pub struct Topology {
    tree: Tree,
}

/// Sizes of the caches that one CPU sees, in bytes; `None` where the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caches {
    /// First level, data.
    pub l1d: Option<u64>,
    /// Second level.
    pub l2: Option<u64>,
    /// The last level, whichever it is.
    pub llc: Option<u64>,
}

/// The CPUs, by what may be done with them; all ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs that run.
    pub online: Vec<usize>,
    /// Of these, the ones in this thread's affinity mask.
    pub allowed: Vec<usize>,
    /// Of the online ones, those taken from the scheduler (`isolcpus=`).
    pub isolated: Vec<usize>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number of it.
    pub id: usize,
    /// Its CPUs; none for a memory-only node (CXL, HBM).
    pub cpus: Vec<usize>,
    /// Its memory in bytes; 0 for a node without. It may grow as the machine runs: by hotplug, or
    /// where the kernel initialises its pages lazily.
    pub memory: u64,
    /// Distance to each online node, in their order; 10 is itself.
    pub distances: Vec<u32>,
}

impl Topology {
    /// The topology of this machine.
    pub fn machine() -> Self {
        Self::of(Tree::machine())
    }

    /// The topology that a tree describes.
    pub fn of(tree: Tree) -> Self {
        Self { tree }
    }

    /// Online, allowed and isolated CPUs.
    ///
    /// The mask is read from `/proc/thread-self/status`: with the offline CPUs removed it is what
    /// `sched_getaffinity(0)` returns, without that call's limit on the number of CPUs.
    pub fn cpus(&self) -> Cpus {
        let mut online = self.tree.list("sys/devices/system/cpu/online");
        if online.is_empty() {
            online = self.tree.numbered("sys/devices/system/cpu", "cpu");
        }
        let mask = self.tree.field("proc/thread-self/status", "Cpus_allowed_list");
        let allowed = match mask.as_deref().and_then(parse_list) {
            Some(mask) => intersection(&online, &mask),
            None => online.clone(),
        };
        let isolated = intersection(&online, &self.tree.list("sys/devices/system/cpu/isolated"));
        Cpus { online, allowed, isolated }
    }

    /// The CPU to measure on when nobody chose one, or `None` when no CPU is known.
    ///
    /// An isolated CPU if there is one that may be used, else an allowed one; among several the
    /// one that has been least busy since boot according to `/proc/stat`, then the lowest number.
    /// Since boot is coarse, but it is a pure function of what was read, it costs no waiting, and
    /// it avoids the CPU that takes the interrupts.
    ///
    /// `isolcpus=` removes a CPU from every default mask, so an isolated CPU outside the mask is
    /// taken too, as long as the mask is that default (nobody narrowed it) and the cpuset has it.
    pub fn default_cpu(&self) -> Option<usize> {
        let cpus = self.cpus();
        let mut candidates = intersection(&cpus.isolated, &cpus.allowed);
        let housekeeping: Vec<usize> =
            cpus.online.iter().copied().filter(|cpu| !cpus.isolated.contains(cpu)).collect();
        if candidates.is_empty() && cpus.allowed == housekeeping {
            candidates = intersection(&cpus.isolated, &self.cpuset());
        }
        if candidates.is_empty() {
            candidates = cpus.allowed;
        }
        let busy = self.busy_ticks();
        let ticks_of = |cpu: &usize| busy.iter().find(|(id, _)| id == cpu).map_or(0, |pair| pair.1);
        candidates.into_iter().min_by_key(|cpu| (ticks_of(cpu), *cpu))
    }

    /// The hardware threads of the core that `cpu` belongs to, itself included.
    pub fn siblings(&self, cpu: usize) -> Vec<usize> {
        let siblings = self
            .tree
            .list(format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        if siblings.is_empty() { vec![cpu] } else { siblings }
    }

    /// The caches of a CPU.
    pub fn caches(&self, cpu: usize) -> Caches {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let mut caches = Caches::default();
        let mut last_level = 0;
        for index in self.tree.numbered(&directory, "index") {
            let read = |name: &str| self.tree.text(format!("{directory}/index{index}/{name}"));
            let Some(level) = read("level").and_then(|text| text.parse::<u32>().ok()) else {
                continue;
            };
            let size = read("size").and_then(|text| size_bytes(&text));
            if read("type").as_deref() == Some("Instruction") {
                continue;
            }
            match level {
                1 => caches.l1d = size,
                2 => caches.l2 = size,
                _ => {}
            }
            if level > last_level {
                (last_level, caches.llc) = (level, size);
            }
        }
        caches
    }

    /// The online NUMA nodes; empty where the kernel knows none.
    pub fn nodes(&self) -> Vec<Node> {
        let directory = "sys/devices/system/node";
        let node = |id| {
            let own = format!("{directory}/node{id}");
            let meminfo = self.tree.text(format!("{own}/meminfo")).unwrap_or_default();
            let memory = meminfo.lines().find_map(|line| line.split_once("MemTotal:"));
            let kilobytes = memory.and_then(|(_, rest)| rest.split_whitespace().next());
            let distances = self.tree.text(format!("{own}/distance")).unwrap_or_default();
            Node {
                id,
                cpus: self.tree.list(format!("{own}/cpulist")),
                memory: kilobytes.and_then(|kb| kb.parse::<u64>().ok()).map_or(0, |kb| kb << 10),
                distances: distances.split_whitespace().flat_map(str::parse).collect(),
            }
        };
        self.tree.list(format!("{directory}/online")).into_iter().map(node).collect()
    }

    /// Sockets that hold an online CPU; at least one.
    pub fn sockets(&self) -> usize {
        let package = |cpu: usize| {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
            self.tree.number::<i64>(path)
        };
        let mut packages: Vec<i64> = self.cpus().online.into_iter().filter_map(package).collect();
        packages.sort_unstable();
        packages.dedup();
        packages.len().max(1)
    }

    /// How much memory can be taken now without swapping or being killed, and what limits it.
    pub fn memory_budget(&self) -> MemoryBudget {
        memory::budget(&self.tree)
    }

    /// The CPUs that the cpuset of this process permits; all where there is no cpuset.
    fn cpuset(&self) -> Vec<usize> {
        let online = || self.cpus().online;
        let Some(group) = cgroup::find(&self.tree, "cpuset") else { return online() };
        let file = if group.unified { "cpuset.cpus.effective" } else { "cpuset.effective_cpus" };
        let permitted = group.path.iter().find_map(|directory| {
            self.tree.text(directory.join(file)).and_then(|text| parse_list(&text))
        });
        permitted.unwrap_or_else(online)
    }

    /// CPU and the ticks it was not idle since boot, from `/proc/stat`.
    fn busy_ticks(&self) -> Vec<(usize, u64)> {
        let text = self.tree.text("proc/stat").unwrap_or_default();
        let busy = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let cpu: usize = words.next()?.parse().ok()?;
            // user nice system idle iowait irq softirq steal; guest time is already in user.
            let ticks: Vec<u64> = words.take(8).flat_map(str::parse).collect();
            let idle = ticks.get(3).copied()? + ticks.get(4).copied().unwrap_or(0);
            Some((cpu, ticks.iter().sum::<u64>() - idle))
        };
        text.lines().filter_map(busy).collect()
    }
}

/// Parses the kernel's list format: `0-3,8` is 0, 1, 2, 3, 8; empty text is the empty list.
///
/// `None` for anything else, ranges that run backwards and ranges beyond 2^20 members included.
/// The result is ascending and without repetition.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    const MEMBERS_MAX: usize = 1 << 20;
    let text = text.trim();
    let mut members = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last - first >= MEMBERS_MAX {
            return None;
        }
        members.extend(first..=last);
    }
    members.sort_unstable();
    members.dedup();
    Some(members)
}

/// Prints a list as the kernel does; the list must be ascending.
pub fn format_list(ascending: &[usize]) -> String {
    let runs = ascending.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

/// The members of `a` that are also in `b`, in the order of `a`.
fn intersection(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().copied().filter(|member| b.contains(member)).collect()
}

/// `32K`, `1024K`, `32M` in bytes, as cache sizes are written.
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok().map(|number| number << shift)
}

#[cfg(test)]
mod tests;
