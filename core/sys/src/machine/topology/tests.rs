//! Machines made of files.

use proptest::{collection::btree_set, prelude::*};
use tempfile::TempDir;

use super::*;

/// A machine with these files.
fn machine(files: &[(&str, &str)]) -> (TempDir, Topology) {
    let root = tempfile::tempdir().unwrap();
    let topology = Topology::of(Tree::at(root.path()).with(files.iter().copied()));
    (root, topology)
}

const CPU: &str = "sys/devices/system/cpu";

#[test]
fn a_list_is_read_as_the_kernel_writes_it() {
    assert_eq!(parse_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
    assert_eq!(parse_list(""), Some(vec![]));
    assert_eq!(parse_list("\n"), Some(vec![]));
    for wrong in ["3-1", "a", "1,", "0-99999999999", "1--2", "-1"] {
        assert_eq!(parse_list(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_printed_list_reads_back(set in btree_set(0_usize..4096, 0..200)) {
        let list: Vec<usize> = set.into_iter().collect();
        prop_assert_eq!(parse_list(&format_list(&list)), Some(list));
    }

    #[test]
    fn no_text_makes_the_list_parser_panic(text in "[0-9,\\- ]{0,24}") {
        let _ = parse_list(&text);
    }
}

#[test]
fn the_last_level_cache_is_the_highest_level_and_instructions_do_not_count() {
    let index = |index: u32, name: &str| format!("{CPU}/cpu0/cache/index{index}/{name}");
    let mut files = Vec::new();
    for (i, (level, kind, size)) in
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
            .into_iter()
            .enumerate()
    {
        let i = u32::try_from(i).unwrap();
        files.push((index(i, "level"), level));
        files.push((index(i, "type"), kind));
        files.push((index(i, "size"), size));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let (_root, machine) = machine(&files);
    let caches = Caches { l1d: Some(48 << 10), l2: Some(2 << 20), llc: Some(2 << 20) };
    assert_eq!(machine.caches(0), caches);
    assert_eq!(machine.caches(7), Caches::default());
}

/// Four CPUs, of which CPU 2 was least busy; `isolated` and `mask` as given.
fn four_cpus(isolated: &str, mask: &str) -> Option<usize> {
    let stat = "cpu  0\ncpu0 50 0 0 9 0 0 0 0 50 0\ncpu1 30 0 0 9 9 0 0 0 0 0\n\
                cpu2 10 0 0 9 90 0 0 0 0 0\ncpu3 20 0 0 9 0 0 0 5 0 0\nintr 7\n";
    let status = format!("Name:\tx\nCpus_allowed_list:\t{mask}\n");
    let (_root, machine) = machine(&[
        (&format!("{CPU}/online"), "0-3"),
        (&format!("{CPU}/isolated"), isolated),
        ("proc/thread-self/status", &status),
        ("proc/stat", stat),
    ]);
    machine.default_cpu()
}

#[test]
fn the_default_cpu_is_the_least_busy_that_is_allowed() {
    assert_eq!(four_cpus("", "0-3"), Some(2));
    assert_eq!(four_cpus("", "0-1"), Some(1));
    assert_eq!(four_cpus("", "0,3"), Some(3));
}

#[test]
fn an_isolated_cpu_is_preferred_unless_the_user_chose_others() {
    assert_eq!(four_cpus("0,3", "0-3"), Some(3), "in the mask");
    assert_eq!(four_cpus("3", "0-2"), Some(3), "outside the mask that isolcpus makes");
    assert_eq!(four_cpus("3", "0-1"), Some(1), "the user narrowed the mask");
}

#[test]
fn a_machine_without_files_has_nothing_and_says_so() {
    let (_root, machine) = machine(&[]);
    assert_eq!(machine.cpus(), Cpus::default());
    assert_eq!(machine.default_cpu(), None);
    assert_eq!(machine.nodes(), vec![]);
    assert_eq!(machine.siblings(3), vec![3]);
    assert_eq!(machine.memory_budget().bytes, 0);
}

#[test]
fn a_node_without_cpus_and_one_without_memory_are_nodes() {
    let node = "sys/devices/system/node";
    let (_root, machine) = machine(&[
        (&format!("{node}/online"), "0-1"),
        (&format!("{node}/node0/cpulist"), "0-1"),
        (&format!("{node}/node0/distance"), "10 20"),
        (&format!("{node}/node1/cpulist"), "\n"),
        (&format!("{node}/node1/distance"), "20 10"),
        (&format!("{node}/node1/meminfo"), "Node 1 MemTotal:       2048 kB\n"),
    ]);
    let expected = [
        Node { id: 0, cpus: vec![0, 1], memory: 0, distances: vec![10, 20] },
        Node { id: 1, cpus: vec![], memory: 2 << 20, distances: vec![20, 10] },
    ];
    assert_eq!(machine.nodes(), expected);
}

const MEMINFO: (&str, &str) = ("proc/meminfo", "MemFree: 1024 kB\nMemAvailable: 4096 kB\n");

fn mount(kind: &str, root: &str, point: &str, options: &str) -> String {
    format!("35 31 0:32 {root} {point} rw,relatime - {kind} {kind} rw{options}\n")
}

#[test]
fn without_a_cgroup_the_kernels_estimate_is_the_budget() {
    let (_root, machine) = machine(&[MEMINFO]);
    let budget = MemoryBudget { bytes: 4 << 20, limited_by: "MemAvailable".to_owned() };
    assert_eq!(machine.memory_budget(), budget);
}

#[test]
fn a_parent_of_the_own_cgroup_limits_too_and_file_cache_is_room() {
    let (_root, machine) = machine(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/a/b\n"),
        ("proc/self/mountinfo", &mount("cgroup2", "/", "/sys/fs/cgroup", "")),
        ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("sys/fs/cgroup/a/memory.max", "3145728\n"),
        ("sys/fs/cgroup/a/memory.current", "2097152\n"),
        ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 524288\n"),
    ]);
    let budget = machine.memory_budget();
    assert_eq!(budget.limited_by, "/sys/fs/cgroup/a/memory.max");
    assert_eq!(budget.bytes, (3 << 20) - (2 << 20) + (512 << 10));
}

#[test]
fn version_1_beside_version_2_is_found_and_its_infinity_is_no_limit() {
    let mounts = mount("cgroup", "/", "/sys/fs/cgroup/memory", ",memory")
        + &mount("cgroup2", "/", "/sys/fs/cgroup/unified", "");
    let files = |limit: &'static str| {
        [
            MEMINFO,
            ("proc/self/cgroup", "4:memory:/x\n0::/\n"),
            ("proc/self/mountinfo", &*mounts.clone().leak()),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", limit),
            ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "4096\n"),
        ]
    };
    let (_root, limited) = machine(&files("1048576\n"));
    assert_eq!(limited.memory_budget().bytes, (1 << 20) - 4096);
    let (_root, unlimited) = machine(&files("9223372036854771712\n"));
    assert_eq!(unlimited.memory_budget().limited_by, "MemAvailable");
}

#[test]
fn a_container_whose_path_does_not_exist_is_limited_by_its_mount_point() {
    for (root, path) in [("/", "/docker/1"), ("/docker/1", "/docker/1"), ("/", "/../../other")] {
        let (_root, machine) = machine(&[
            MEMINFO,
            ("proc/self/cgroup", &format!("0::{path}\n")),
            ("proc/self/mountinfo", &mount("cgroup2", root, "/sys/fs/cgroup", "")),
            ("sys/fs/cgroup/memory.max", "8192\n"),
        ]);
        let budget = machine.memory_budget();
        assert_eq!(budget.limited_by, "/sys/fs/cgroup/memory.max", "{root} {path}");
        assert_eq!(budget.bytes, 8192);
    }
}

#[test]
fn this_machine_has_a_cpu_a_cache_line_of_sizes_and_memory() {
    let machine = Topology::machine();
    let cpus = machine.cpus();
    assert!(!cpus.allowed.is_empty());
    assert!(machine.default_cpu().is_some_and(|cpu| cpus.online.contains(&cpu)));
    assert!(machine.memory_budget().bytes > 0, "{:?}", machine.memory_budget());
}
