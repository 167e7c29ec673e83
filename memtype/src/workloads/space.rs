//! From a case to memory of its type, and to the proof that it is of that type.
//!
//! The one idea: the page table is asked, not the request. Module memory is proven by what QUERY
//! reads from the leaf entries before and after a repetition. Ordinary memory is proven to be
//! present; that it is WB has no proof in `/proc`, only a reason: WB is what anonymous memory is,
//! and nothing here changed it.

use pagelab_bench::{Error, Need, Needed, Read, Refusal, Witness, words};
use pagelab_record::{
    Case,
    units::format_bytes,
    vocabulary::{Check, counter::NODE_BYTES},
};
use pagelab_sys::{
    machine::Tree,
    memory::{Scanner, nodes_of},
    memtype::{self, Device, Leaf, LegacyNode, MemoryType, Plot, Request},
};

use super::params::TYPES;
use pagelab_bench::{cpus::Chosen, needs::Cpus};

/// Most pages that are looked up before and after each repetition; more are sampled evenly.
const QUERIES_MAX: usize = 4096;

words! {
    /// Where the frames of a case come from.
    pub enum Source {
        /// Anonymous memory of the process, which is WB.
        Ordinary = "ordinary",
        /// Single pages from the module.
        Scattered = "scattered",
        /// Contiguous pages from the module.
        Contiguous = "contiguous",
        /// The region that the module was given.
        Reserved = "reserved",
        /// The module's nodes for older programs, which have memory of their own.
        Nodes = "nodes",
    }
}

impl Source {
    /// What the module is asked for; nothing for ordinary memory, and for what the nodes have.
    pub fn frames(self) -> Option<memtype::Frames> {
        match self {
            Self::Ordinary | Self::Nodes => None,
            Self::Scattered => Some(memtype::Frames::Scattered),
            Self::Contiguous => Some(memtype::Frames::Contiguous),
            Self::Reserved => Some(memtype::Frames::Reserved),
        }
    }
}

/// The memory of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Space {
    /// Its type.
    pub memory_type: MemoryType,
    /// Where its frames come from.
    pub source: Source,
    /// Bytes of a page-table leaf.
    pub leaf: u64,
    /// The node that it lies on.
    pub node: Option<usize>,
    /// How much.
    pub bytes: u64,
}

/// What memory of a type turns away.
pub(super) const REFUSALS: &[Refusal<Space>] = &[
    Refusal::new(
        |space| space.is_ordinary() && space.memory_type != MemoryType::Wb,
        "type=uc|wc|wt with frames=ordinary",
        "anonymous memory is WB; use frames=scattered",
    ),
    Refusal::new(
        |space| space.memory_type == MemoryType::Wt && space.source != Source::Reserved,
        "type=wt without frames=reserved",
        "the kernel gives WT to memory that it does not manage only; use frames=reserved",
    ),
    Refusal::new(
        |space| matches!(space.source, Source::Scattered | Source::Nodes) && space.leaf > 4096,
        "leaf=2m|1g with frames=scattered|nodes",
        "single pages have leaves of 4k; use frames=contiguous",
    ),
    Refusal::new(
        |space| space.is_ordinary() && space.leaf > 2 << 20,
        "leaf=1g with frames=ordinary",
        "no anonymous memory has such leaves; use frames=reserved",
    ),
    Refusal::new(
        |space| space.source == Source::Reserved && space.node.is_some(),
        "node with frames=reserved",
        "the reserved region lies where it lies",
    ),
    Refusal::new(
        |space| space.source == Source::Nodes && space.node.is_some(),
        "node with frames=nodes",
        "what they have lies where the module was loaded to put it; load it with numa_node",
    ),
    Refusal::new(
        |space| space.bytes == 0 || !space.bytes.is_multiple_of(space.leaf),
        "size not divisible by the leaf",
        "only whole leaves are mapped",
    ),
];

impl Space {
    /// That of a case, with so many bytes.
    pub(super) fn of(case: &Case, bytes: u64) -> Self {
        Self {
            memory_type: case.one_of("type", &TYPES),
            source: case.said("frames").unwrap_or(Source::Ordinary),
            leaf: case.bytes("leaf").unwrap_or(4096),
            node: case.number("node"),
            bytes,
        }
    }

    /// The page of a fence word: UC memory of its own, by the module.
    pub fn of_fence_word(node: Option<usize>) -> Self {
        Self {
            memory_type: MemoryType::UcMinus,
            source: Source::Scattered,
            leaf: 4096,
            node,
            bytes: 4096,
        }
    }

    /// Replaces `auto` in `frames` and `leaf`, by what the module of this machine offers for so
    /// much memory.
    pub(super) fn resolve(case: Case, bytes: u64) -> Case {
        if !case.is("frames", "auto") && !case.is("leaf", "auto") {
            return case;
        }
        let device = Device::open().ok();
        let frames = case.said("frames").unwrap_or_else(|| match case.one_of("type", &TYPES) {
            MemoryType::Wt => Source::Reserved,
            MemoryType::Wb if device.is_none() => Source::Ordinary,
            _ => Source::Scattered,
        });
        let case = case.with("frames", &frames.to_string());
        if !case.is("leaf", "auto") {
            return case;
        }
        let space = Self::of(&case, bytes);
        let offered = match (device, space.source) {
            (Some(device), Source::Contiguous | Source::Reserved) => {
                let frames = space.source.frames().expect("both are the module's");
                device.info().leaves(space.memory_type, frames)
            }
            _ => Vec::new(),
        };
        let fits = offered.into_iter().filter(|leaf| bytes.is_multiple_of(*leaf));
        case.with("leaf", &format_bytes(fits.max().unwrap_or(4096)))
    }

    fn is_ordinary(&self) -> bool {
        self.source == Source::Ordinary
    }

    /// Takes it.
    ///
    /// # Errors
    /// When the machine or the module refuses.
    pub(super) fn plot(&self) -> Result<Plot, Error> {
        let bytes = usize::try_from(self.bytes).expect("addresses have 64 bits");
        if self.source == Source::Nodes {
            return Ok(Plot::of_node(LegacyNode::open(self.memory_type)?, bytes)?);
        }
        let Some(frames) = self.source.frames() else {
            return Ok(Plot::ordinary(bytes, self.leaf > 4096, self.node)?);
        };
        let request = Request {
            bytes: self.bytes,
            memory_type: self.memory_type,
            frames,
            leaf: self.leaf,
            node: self.node,
            eager: true,
            offset: 0,
            segment: false,
        };
        Ok(Device::open()?.allocate(&request)?)
    }
}

/// The CPU of each worker: two of them never share one.
pub(super) fn cpus_of(chosen: &Chosen, workers: usize) -> Vec<usize> {
    chosen.all().into_iter().take(workers).collect()
}

/// What workers need: the CPUs that are named, or so many.
pub(super) fn cpu_needs(chosen: &Chosen, workers: usize) -> Needed {
    chosen.needs().next().unwrap_or_else(|| Cpus::Count(workers).needed())
}

/// What was found about the memory of a case, to be compared with what the case says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// Addresses whose leaf has another type than the case says.
    pub(super) other_type: u64,
    /// Addresses whose leaf has another size.
    pub(super) other_leaf: u64,
    /// Addresses that are on another node, or on none.
    pub(super) elsewhere: u64,
    /// Addresses looked up.
    pub(super) asked: u64,
}

/// Looks the memory of a case up.
///
/// # Errors
/// When the module does not answer.
pub(super) fn look_up(space: &Space, plot: &Plot) -> Result<Found, Error> {
    let mut found = Found::default();
    for offset in samples(plot.bytes(), usize::try_from(space.leaf).unwrap_or(4096)) {
        if let Some(leaf) = plot.query(offset)? {
            found.add(space, &leaf, |phys| node_of(&Tree::machine(), phys));
        }
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, space: &Space, leaf: &Leaf, node: impl Fn(u64) -> Option<usize>) {
        self.asked += 1;
        self.other_type += u64::from(leaf.memory_type != Some(space.memory_type));
        self.other_leaf += u64::from(leaf.bytes != space.leaf);
        if let Some(asked) = space.node {
            self.elsewhere += u64::from(leaf.phys.and_then(node) != Some(asked));
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            other_type: self.other_type + other.other_type,
            other_leaf: self.other_leaf + other.other_leaf,
            elsewhere: self.elsewhere + other.elsewhere,
            asked: self.asked + other.asked,
        }
    }
}

/// Offsets of the pages to ask about: all where they are few, evenly spread otherwise.
fn samples(bytes: usize, leaf: usize) -> impl Iterator<Item = usize> {
    let leaves = (bytes / leaf).max(1);
    let asked = leaves.min(QUERIES_MAX);
    (0..asked).map(move |index| index * leaves / asked * leaf)
}

/// The node that a physical address lies on, by the memory blocks that sysfs lists for each.
fn node_of(tree: &Tree, phys: u64) -> Option<usize> {
    let memory = "/sys/devices/system/memory";
    let block_bytes = tree.text(format!("{memory}/block_size_bytes"))?;
    let block_bytes = u64::from_str_radix(&block_bytes, 16).ok()?;
    let block = phys / block_bytes;
    let nodes = tree.numbered("/sys/devices/system/node", "node");
    nodes.into_iter().find(|node| {
        tree.path(format!("/sys/devices/system/node/node{node}/memory{block}")).exists()
    })
}

/// The proof about the memory of a case, for one repetition.
///
/// # Errors
/// When it cannot be taken.
pub(super) fn testify(
    space: &Space,
    plot: &Plot,
    before: Found,
    witness: &mut Witness,
) -> Result<(), Error> {
    if let Some(area) = plot.area() {
        let found = Scanner::open()?.scan(area)?;
        let pages = space.bytes / 4096;
        witness.expect(Check::PresentWb, pages, found.present);
        let huge = if space.leaf > 4096 { pages } else { 0 };
        witness.expect(Check::Huge, huge, found.huge);
        if let Some(node) = space.node {
            let asked: Vec<usize> =
                samples(plot.bytes(), 4096).map(|offset| plot.base() + offset).collect();
            let mut nodes = vec![-1; asked.len()];
            nodes_of(&asked, &mut nodes)?;
            let elsewhere = nodes.iter().filter(|found| usize::try_from(**found) != Ok(node));
            let claim = format!("pages asked about that are not on node {node}");
            witness.expect((Check::OnOtherNode, &claim), 0, elsewhere.count() as u64);
        }
        return Ok(());
    }
    let found = look_up(space, plot)?.and(before);
    let name = space.memory_type.name();
    let claim = format!("leaves that are not {name}, by the page table, before and after");
    witness.expect((Check::OtherLeaves, &claim), 0, found.other_type);
    let claim = format!("leaves that are not {}, before and after", format_bytes(space.leaf));
    witness.expect((Check::OtherLeaves, &claim), 0, found.other_leaf);
    if let Some(node) = space.node {
        let claim = format!("pages asked about that are not on node {node}");
        witness.expect((Check::OnOtherNode, &claim), 0, found.elsewhere);
    }
    witness.set("leaves_asked", found.asked);
    if space.source == Source::Nodes {
        witness.set(NODE_BYTES, LegacyNode::open(space.memory_type)?.bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(pairs: &[(&str, &str)]) -> (Space, Case) {
        let case = pairs.iter().fold(Case::default(), |case, (name, value)| case.with(name, value));
        (Space::of(&case, case.bytes("size").unwrap_or(0)), case)
    }

    #[test]
    fn few_leaves_are_all_asked_and_many_are_sampled_from_one_end_to_the_other() {
        assert_eq!(samples(16384, 4096).collect::<Vec<_>>(), [0, 4096, 8192, 12288]);
        assert_eq!(samples(4 << 20, 2 << 20).collect::<Vec<_>>(), [0, 2 << 20]);
        let many: Vec<usize> = samples(1 << 30, 4096).collect();
        assert_eq!((many.len(), many[0]), (QUERIES_MAX, 0));
        assert!(many.is_sorted() && many[4095] >= (1 << 30) - (1 << 30) / 4096 * 2);
    }

    #[test]
    fn each_leaf_that_differs_is_counted_by_what_differs() {
        let (mut space, _) = space(&[("type", "uc"), ("frames", "scattered"), ("size", "4k")]);
        space.node = Some(1);
        let mut found = Found::default();
        let leaf = |memory_type, bytes| Leaf {
            memory_type: Some(memory_type),
            bytes,
            entry: 0,
            phys: Some(4096),
        };
        found.add(&space, &leaf(MemoryType::UcMinus, 4096), |_| Some(1));
        assert_eq!(found, Found { asked: 1, ..Found::default() });
        found.add(&space, &leaf(MemoryType::Wb, 2 << 20), |_| Some(0));
        assert_eq!(found, Found { asked: 2, other_type: 1, other_leaf: 1, elsewhere: 1 });
    }

    #[test]
    fn an_address_lies_on_the_node_that_lists_its_block() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join("sys/devices/system").join(path);
        for directory in ["memory", "node/node0/memory0", "node/node1/memory32"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::fs::write(at("memory/block_size_bytes"), "8000000\n").unwrap();
        let tree = Tree::at(root.path());
        assert_eq!(node_of(&tree, 0x10_0000), Some(0));
        assert_eq!(node_of(&tree, 0x1_0000_0000), Some(1));
        assert_eq!(node_of(&tree, 0x2_0000_0000), None);
    }
}
