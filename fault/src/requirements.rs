//! Every need of faults that depends on no case, in the order in which `doctor` asks.

use pagelab_bench::{
    Need, Needed, PageSize,
    needs::{Cpus, Lockable, Memory, Node, POPULATE_WRITE, Pool, SCHED_FIFO, Transparent},
};
use pagelab_sys::{files::scratch::default_directory, machine::thp::Policy, uffd::Ability};

use crate::{
    limit::bulk::STRING_STORE,
    path::{EMULATOR, MKE2FS, PLUGIN},
    stages::TRACEPOINTS,
};
use pagelab_mappings::{
    frequency::{Governed, Turbo},
    needs::{Disk, FAULT_AROUND, Mappings, OnDisk, Own, Room, TSC, Uffd},
};

/// A row is a need, or one for each of several things.
pub(crate) const REQUIREMENTS: &[fn() -> Vec<Needed>] = &[
    || vec![TSC.needed()],
    || vec![STRING_STORE.needed()],
    || vec![SCHED_FIFO.needed()],
    || vec![Lockable(256 << 20).needed()],
    || vec![TRACEPOINTS.needed()],
    || vec![EMULATOR.needed(), PLUGIN.needed(), MKE2FS.needed()],
    || vec![Governed("performance".to_owned()).needed(), Turbo(false).needed()],
    || vec![Memory(2 << 30).needed()],
    || vec![Cpus::Count(2).needed()],
    || vec![Node::Far.needed()],
    || vec![POPULATE_WRITE.needed()],
    || vec![Room { directory: default_directory(), bytes: 128 << 20 }.needed()],
    || vec![Disk(OnDisk::NotesWrites, default_directory()).needed()],
    || vec![Disk(OnDisk::Evicts, default_directory()).needed()],
    || vec![FAULT_AROUND.needed()],
    || vec![Mappings(40_000).needed()],
    || Ability::ALL.map(|ability| Uffd(ability).needed()).to_vec(),
    || vec![Own::Zram { bytes: 64 << 20, algorithm: None }.needed()],
    || vec![Own::SwapFile(64 << 20).needed()],
    || vec![Own::Group(64 << 20).needed()],
    || PageSize::offered().into_iter().filter_map(of_page).collect(),
];

/// What memory in pages of a size needs.
fn of_page(page: PageSize) -> Option<Needed> {
    match page {
        PageSize::Base => None,
        PageSize::Hugetlb(shift) => {
            Some(Pool { shift, pages: (256 << 20 >> shift).max(1) }.needed())
        }
        PageSize::Folio(_) | PageSize::Thp => {
            Some(Transparent { page, to: Policy::Madvise }.needed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::needs::Setting;
    use pagelab_mappings::needs::{
        COLLAPSE, NO_READAHEAD, PAGE_REPORTING, Reclaimable, SmallNode, ZSWAP_OFF,
    };

    #[test]
    fn every_need_has_a_name_and_a_cure() {
        let mut all: Vec<Needed> = REQUIREMENTS.iter().flat_map(|row| row()).collect();
        all.extend([
            Cpus::These(vec![0, 1]).needed(),
            Node::Number(7).needed(),
            Transparent { page: PageSize::Thp, to: Policy::Never }.needed(),
            Transparent { page: PageSize::Folio(8192), to: Policy::Always }.needed(),
            ZSWAP_OFF.needed(),
            Reclaimable(1 << 20).needed(),
            SmallNode { node: 0, bytes: 0 }.needed(),
            NO_READAHEAD.needed(),
            Own::Zram { bytes: 1 << 20, algorithm: Some("no-such".to_owned()) }.needed(),
            PAGE_REPORTING.needed(),
            COLLAPSE.needed(),
            Setting::new("/proc/sys/kernel/none", "1").needed(),
        ]);
        for need in all {
            assert!(!need.name().is_empty() && need.cure().len() > 10, "{need:?}");
        }
    }
}
