//! Which CPUs a case runs on: those that it names, or the free ones.

use std::sync::LazyLock;

use pagelab_record::Case;
use pagelab_sys::{SysError, machine::Topology, process::Pinned};

use crate::{
    Need, Needed, Read,
    needs::{Cpus, Node},
};

/// CPUs that this process was allowed to use when it first asked: the least busy one, then on from
/// there. Asked once: a plan of a hundred thousand cases has one answer, and the process of a case
/// asks before it binds itself.
pub fn free() -> &'static [usize] {
    static FREE: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let topology = Topology::machine();
        let mut cpus = topology.cpus().allowed;
        let first = topology.default_cpu();
        if let Some(index) = cpus.iter().position(|cpu| Some(*cpu) == first) {
            cpus.rotate_left(index);
        }
        cpus
    });
    &FREE
}

/// Binds the case's first thread to a CPU, if there is one: the process ends with the case, so that
/// the thread stays there.
///
/// # Errors
/// When the kernel refuses.
pub fn stay(cpu: Option<usize>) -> Result<(), SysError> {
    std::mem::forget(cpu.map(Pinned::to).transpose()?);
    Ok(())
}

/// What a case says of its CPUs.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Those that it names.
    pub listed: Option<Vec<usize>>,
    /// Whether workers are not to be pinned.
    pub is_none: bool,
    /// The node whose CPUs are meant where it names none.
    node: Option<usize>,
}

impl Chosen {
    /// What a parameter says.
    pub fn of(case: &Case, name: &str) -> Self {
        Self { listed: case.cpus(name), is_none: case.is(name, "none"), node: None }
    }

    /// The same, with the node that `node` says.
    #[must_use]
    pub fn with_node(self, case: &Case) -> Self {
        Self { node: case.number("node"), ..self }
    }

    /// Whether they are left to us.
    pub fn is_auto(&self) -> bool {
        self.listed.is_none() && !self.is_none
    }

    /// Those that may be used, the first one first.
    pub fn all(&self) -> Vec<usize> {
        if let Some(listed) = &self.listed {
            return listed.clone();
        }
        let mut cpus = if self.is_none { Vec::new() } else { free().to_vec() };
        let nodes = || Topology::machine().nodes().into_iter();
        if let Some(node) = self.node.and_then(|node| nodes().find(|one| one.id == node)) {
            cpus.retain(|cpu| node.cpus.contains(cpu));
        }
        cpus
    }

    /// The CPU of each worker; `None` for one that is not pinned.
    pub fn of_workers(&self, workers: usize) -> Vec<Option<usize>> {
        let all = self.all();
        (0..workers).map(|worker| all.get(worker % all.len().max(1)).copied()).collect()
    }

    /// That those named are there.
    pub fn needs(&self) -> impl Iterator<Item = Needed> {
        let listed = self.listed.clone().map(|cpus| Cpus::These(cpus).needed());
        listed.into_iter().chain(self.node.map(|node| Node::Number(node).needed()))
    }
}
