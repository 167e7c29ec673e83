//! Machines made of files, and what is said of their tiers.

use super::*;

fn tree(more: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let node = "sys/devices/system/node";
    let tier = "sys/devices/virtual/memory_tiering/memory_tier";
    let files = [
        (format!("{node}/online"), "0-1\n"),
        (format!("{node}/node0/meminfo"), "Node 0 MemTotal: 4000 kB\n"),
        (format!("{node}/node1/meminfo"), "Node 1 MemTotal: 8000 kB\n"),
        (format!("{node}/node0/cpulist"), "0-1\n"),
        (format!("{node}/node1/cpulist"), "\n"),
        (format!("{tier}4/nodelist"), "0\n"),
        (format!("{tier}22/nodelist"), "1\n"),
        ("proc/zoneinfo".into(), "Node 0, zone Normal\n  pages free 70\n    high 20\n"),
        ("proc/sys/kernel/numa_balancing".into(), "2\n"),
        ("proc/vmstat".into(), "nr_free_pages 7\npgpromote_success 5\npgdemote_kswapd 3\n"),
    ];
    let more = more.iter().map(|&(path, text)| (path.to_owned(), text));
    let tree = Tree::at(folder.path()).with(files.into_iter().chain(more));
    (folder, tree)
}

#[test]
fn processes_and_groups_have_bytes_in_tiers_and_the_kernels_counts_are_its_own() {
    let (_folder, tree) = tree(&[
        ("proc/7/numa_maps", "7f00 default anon=3 N0=1 N1=2 kernelpagesize_kB=4\n"),
        ("proc/7/comm", "hot\n"),
        ("proc/7/cgroup", "1:memory:/x\n0::/service\n"),
        ("proc/9/numa_maps", "7f00 default huge anon=1 N1=1 kernelpagesize_kB=2048\nbad\n"),
        ("proc/9/cgroup", "0::/service\n"),
        ("proc/10/comm", "kernel\n"),
    ]);
    let status = Status::read(&tree);
    let pids: Vec<u32> = status.processes.iter().map(|one| one.pid).collect();
    assert_eq!(pids, [9, 7]);
    assert_eq!(status.processes[1].tiers, Tiers::from([(0, 4096), (1, 8192)]));
    assert_eq!(status.groups["/service"], Tiers::from([(0, 4096), (1, (2 << 20) + 8192)]));
    let counts: Vec<_> = status.moved.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(counts, [("pgdemote_kswapd", 3), ("pgpromote_success", 5)]);
    assert_eq!(status.nodes[0].free, 50 * 4096);
    assert_eq!(status.reasons, [Why::from(Reason::Hugetlb { bytes: 2 << 20 })]);
}

#[test]
fn the_hottest_regions_are_those_of_monitors_that_run() {
    let context = "sys/kernel/mm/damon/admin/kdamonds/0/contexts/0";
    let region = |nth: usize, name: &str| format!("{context}/schemes/0/tried_regions/{nth}/{name}");
    let mut files = vec![
        ("sys/kernel/mm/damon/admin/kdamonds/0/state".to_owned(), "on\n".to_owned()),
        (format!("{context}/operations"), "vaddr\n".into()),
        (format!("{context}/targets/0/pid_target"), "7\n".into()),
    ];
    for (nth, accesses) in [3, 0, 9].into_iter().enumerate() {
        files.push((region(nth, "start"), format!("{}\n", nth << 21)));
        files.push((region(nth, "end"), format!("{}\n", (nth + 1) << 21)));
        files.push((region(nth, "nr_accesses"), format!("{accesses}\n")));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let (_folder, tree) = tree(&files);
    let found = Status::read(&tree).hottest;
    let told: Vec<_> = found.iter().map(|one| (one.pid, one.start, one.accesses)).collect();
    assert_eq!(told, [(Some(7), 2 << 21, 9), (Some(7), 0, 3)]);
}

#[test]
fn each_reason_of_the_machine_is_found() {
    let tier = "sys/devices/virtual/memory_tiering/memory_tier22/nodelist";
    let top = "sys/devices/virtual/memory_tiering/memory_tier4/nodelist";
    let kdamonds = "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";
    for (more, expected) in [
        (&[("sys/devices/system/node/online", "0\n")][..], vec![Reason::OneNode]),
        (&[(tier, "\n"), (top, "0-1\n")], vec![Reason::SameTier { nodes: 2 }]),
        (&[("proc/sys/kernel/numa_balancing", "1\n")], vec![Reason::ModeOff]),
        (
            &[("proc/zoneinfo", "Node 0, zone Normal\n  pages free 7\n    high 9\n")],
            vec![Reason::NoFreeMemory],
        ),
        (&[(kdamonds, "2\n")], vec![Reason::AnotherMonitor { kdamonds: 2 }]),
    ] {
        let (_folder, tree) = tree(more);
        assert_eq!(reasons(&tree), expected);
    }
    let (_folder, tree) = tree(&[(kdamonds, "1\n")]);
    assert_eq!(others(&tree).len(), 2);
}

#[test]
fn what_keeps_memory_of_processes_low_is_said_once_for_all_of_them() {
    let maps = "7f00 bind:1 anon=2 N1=2 kernelpagesize_kB=4\n\
                    7f10 default huge anon=1 N1=1 kernelpagesize_kB=2048\n\
                    7f20 interleave:0-1 anon=4 N0=2 N1=2 kernelpagesize_kB=4\n";
    let top = "7f00 bind:0 anon=2 N0=2 kernelpagesize_kB=4\n";
    let (_folder, tree) = tree(&[
        ("proc/7/numa_maps", maps),
        ("proc/7/status", "Mems_allowed_list:\t1\n"),
        ("proc/8/numa_maps", maps),
        ("proc/8/status", "Mems_allowed_list:\t1\n"),
        ("proc/9/numa_maps", top),
        ("proc/9/status", "Mems_allowed_list:\t0\n"),
    ]);
    let expected = [
        Reason::Bound { bytes: 2 * 4 * 4096 },
        Reason::Hugetlb { bytes: 2 * (2 << 20) },
        Reason::Cpuset { allowed: "1".into() },
    ];
    assert_eq!(reasons(&tree), expected);
    let status = Status::read(&tree);
    assert_eq!(status.reasons, expected.map(Why::from));
    let kept: Vec<_> = status.processes.iter().map(|one| one.kept_off.as_deref()).collect();
    assert_eq!(kept, [Some("1"), Some("1"), None]);
}
