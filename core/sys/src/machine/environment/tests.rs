//! The table of facts, over this machine and over machines made of files.

use std::collections::BTreeSet;

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn machine(files: &[(&str, &str)]) -> (TempDir, Tree) {
    let root = tempfile::tempdir().unwrap();
    let tree = Tree::at(root.path()).with(files.iter().copied());
    (root, tree)
}

fn fact(tree: &Tree, key: &str) -> Value {
    let fact = facts_of(tree).into_iter().find(|fact| fact.key == key);
    fact.unwrap_or_else(|| panic!("no fact {key}")).value
}

fn made(key: &'static str, value: Value) -> Fact {
    Fact { class: Class::Setting, key, value, effect: "x" }
}

#[test]
fn there_are_forty_facts_and_each_has_a_key_of_its_own_and_an_effect() {
    let facts = facts();
    assert!(facts.len() >= 40, "{}", facts.len());
    let keys: BTreeSet<&str> = facts.iter().map(|fact| fact.key).collect();
    assert_eq!(keys.len(), facts.len());
    for fact in &facts {
        assert!(!fact.effect.is_empty() && !fact.effect.ends_with('.'), "{}", fact.key);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(fact.key.chars().all(plain), "{}", fact.key);
    }
    assert!(facts.is_sorted_by_key(|fact| fact.class), "a table holds one class");
}

#[test]
fn a_row_has_words_for_its_value_or_a_function_and_each_function_has_a_row() {
    let Table { identity, setting, volatile, .. } = &*TABLE;
    let classes = [(identity, identity::OWN), (setting, settings::OWN), (volatile, volatile::OWN)];
    for (rows, own) in classes {
        let functions: Vec<&str> = own.iter().map(|(key, _)| *key).collect();
        let wordless = rows.iter().filter(|row| row.source.is_none());
        let wordless: Vec<&str> = wordless.map(|row| row.key.as_str()).collect();
        assert_eq!(wordless, functions, "in the order of the file");
    }
}

#[test]
fn what_every_linux_has_is_found_here() {
    let tree = Tree::machine();
    for key in ["kernel_release", "memory_bytes", "cpu_count", "load_1m", "aslr", "capabilities"] {
        assert_ne!(fact(&tree, key), Value::Null, "{key}");
    }
    assert_eq!(boot_id().len(), 36);
    assert!(!hostname().is_empty());
}

#[test]
fn a_machine_without_files_has_only_nulls_and_no_warning() {
    let (_root, tree) = machine(&[]);
    let facts = facts_of(&tree);
    assert_eq!(facts.len(), super::facts().len());
    for key in ["cpu_model", "thp_enabled", "mthp_enabled", "mitigations", "steal_share"] {
        assert_eq!(fact(&tree, key), Value::Null, "{key}");
    }
    assert_eq!(warnings(&facts), Vec::<String>::new());
}

#[test]
fn selections_and_sizes_are_read_as_the_kernel_writes_them() {
    let thp = "sys/kernel/mm/transparent_hugepage";
    let (_root, tree) = machine(&[
        (&format!("{thp}/enabled"), "always [madvise] never\n"),
        (&format!("{thp}/hugepages-8kB/shmem_enabled"), "always [never]\n"),
        (&format!("{thp}/hugepages-64kB/enabled"), "[always] inherit madvise never\n"),
        ("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n"),
        (
            "proc/cpuinfo",
            "model\t\t: 17\nmodel name\t: A B\nflags\t\t: la57 fsrm pti zz\n\
                          address sizes\t: 46 bits physical, 57 bits virtual\ncpu MHz\t: 9.5\n",
        ),
        ("proc/self/limits", "Limit Soft Hard\nMax locked memory  8388608  unlimited  bytes\n"),
        ("proc/self/status", "Uid:\t1\t1000\t2\t3\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
        (
            "proc/buddyinfo",
            "Node 0, zone DMA 1 1 1 1 1 1 1 1 1 2 3\n\
                            Node 0, zone Normal 1 1 1 1 1 1 1 1 1 20 30\n",
        ),
    ]);
    for (key, value) in [
        ("thp_enabled", json!("madvise")),
        ("mthp_enabled", json!({"64kB": "always"})),
        ("mthp_shmem_enabled", json!({"8kB": "never"})),
        ("preemption_now", json!("full")),
        ("cpu_model", json!("A B")),
        ("cpu_model_number", json!(17)),
        ("cpu_features", json!(["fsrm", "la57"])),
        ("kpti", json!(true)),
        ("virtual_address_bits", json!(57)),
        ("cpu_mhz", json!({"min": 9.5, "max": 9.5})),
        ("memlock_bytes", json!(8_388_608)),
        ("user_id", json!(1000)),
        ("seccomp", json!(2)),
        ("free_huge_blocks", json!({"9": 22, "10": 33})),
    ] {
        assert_eq!(fact(&tree, key), value, "{key}");
    }
}

#[test]
fn the_last_boot_parameter_counts_and_those_of_init_do_not() {
    let line = "quiet init_on_alloc=0 init_on_alloc=1 slub_debug -- init_on_free=1\n";
    let (_root, tree) = machine(&[("proc/cmdline", line)]);
    assert_eq!(fact(&tree, "init_on_alloc"), json!(true));
    assert_eq!(fact(&tree, "init_on_free"), Value::Null);
    assert_eq!(fact(&tree, "debug_parameters"), json!({"slub_debug": ""}));
    assert_eq!(warnings(&facts_of(&tree)).len(), 2);
}

#[test]
fn the_cpu_limit_is_the_tightest_on_the_way_up() {
    let (_root, tree) = machine(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
    ]);
    assert_eq!(fact(&tree, "cgroup_cpu_limit"), json!(1.5));
}

#[test]
fn each_warning_has_its_cause() {
    let causes = [
        made("governor", json!("powersave")),
        made("turbo", json!(true)),
        made("thp_enabled", json!("always")),
        made("ksm_run", json!(1)),
        made("swap_devices", json!([{"path": "/dev/zram0"}])),
        made("steal_share", json!(0.02)),
        made("init_on_alloc", json!(true)),
        made("init_on_free", json!(true)),
        made("debug_parameters", json!({"page_poison": "1"})),
        made("kpti", json!(true)),
        made("page_reporting_kib", json!(4)),
        made("cgroup_cpu_limit", json!(0.5)),
    ];
    for cause in &causes {
        let said = warnings(std::slice::from_ref(cause));
        assert_eq!(said.len(), 1, "{}: {said:?}", cause.key);
    }
    assert_eq!(warnings(&causes).len(), causes.len());
}

#[test]
fn a_quiet_machine_warns_of_nothing() {
    let quiet = [
        made("governor", json!("performance")),
        made("turbo", json!(false)),
        made("thp_enabled", json!("madvise")),
        made("ksm_run", json!(2)),
        made("swap_devices", json!([])),
        made("steal_share", json!(0.001)),
        made("numa_balancing", json!(1)),
        made("numa_nodes", json!([{"id": 0}])),
        made("load_1m", json!(0.5)),
        made("cpu_count", json!(2)),
        made("debug_parameters", json!({"page_poison": "off"})),
        made("page_reporting_kib", json!(0)),
        made("architecture", json!("x86_64")),
        made("clocksource", json!("tsc")),
    ];
    assert_eq!(warnings(&quiet), Vec::<String>::new());
}

#[test]
fn balancing_needs_two_nodes_and_load_needs_no_free_cpu_to_be_worth_a_warning() {
    let two = json!([{"id": 0}, {"id": 1}]);
    let facts = [made("numa_balancing", json!(2)), made("numa_nodes", two)];
    assert!(warnings(&facts)[0].contains("kernel.numa_balancing=0"));
    let facts = [made("load_1m", json!(2.0)), made("cpu_count", json!(2))];
    assert!(warnings(&facts)[0].contains("load is 2"));
}
