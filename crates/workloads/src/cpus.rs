//! Which CPUs a case runs on where it names none.

use std::sync::LazyLock;

use pagelab_sys::machine::topology::Topology;

/// CPUs that this process was allowed to use when it first asked: the least busy one, then on from
/// there. Asked once: a plan of a hundred thousand cases has one answer, and the process of a case
/// asks before it binds itself.
pub(crate) fn free() -> &'static [usize] {
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
