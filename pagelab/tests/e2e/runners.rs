//! Other people's runners with pagelab as one of their benchmarks.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::{Lab, Machine, skip};

/// A suite of seconds.
const SUITE: &str = r#"
name = "small"
summary = "two faults and two ways to memory"
forks = 4
budget = 0.1
repetitions-min = 2
[[case]]
workload = "fault/latency"
kind = ["write", "read"]
page = "4k"
size = "4m"
[[case]]
workload = "fault/throughput"
page = "4k"
size = "4m"
populate = ["touch", "map-populate"]
"#;

/// That program by our definitions, in a copy of its own.
struct Mmtests {
    root: PathBuf,
}

impl Mmtests {
    fn copied(lab: &Lab, from: &Path) -> Self {
        let root = lab.path("mmtests");
        let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/mmtests");
        copy(&from.join("."), &root);
        fs::remove_dir_all(root.join("work")).ok();
        for part in ["configs", "drivers", "shellpack_src"] {
            copy(&contrib.join(part).join("."), &root.join(part));
        }
        let config = root.join("configs/config-workload-pagelab");
        let suite = lab.file("small.toml", SUITE);
        let said = fs::read_to_string(&config).unwrap();
        let said =
            said.replace("PAGELAB_SUITE=quick", &format!("PAGELAB_SUITE={}", suite.display()));
        fs::write(config, said.replace("ITERATIONS=5", "ITERATIONS=3")).unwrap();
        Self { root }
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.root.join(program));
        command.args(arguments).current_dir(&self.root);
        command
            .env("PAGELAB", env!("CARGO_BIN_EXE_pagelab"))
            .env("ASSUME_PACKAGE_INSTALLED", "yes");
        command.output().unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let came = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(came.success(), "{} to {}", from.display(), to.display());
}

#[test]
fn mmtests_runs_pagelab_and_compares_what_it_left() {
    let Some(mmtests) = env::var_os("PAGELAB_MMTESTS") else {
        let cure = "git clone https://github.com/gormanm/mmtests; apt-get install gawk numactl \
                    libfile-slurp-perl libfile-which-perl libyaml-pp-perl; \
                    PAGELAB_MMTESTS=…/mmtests";
        return skip("MMTests is not at hand", cure);
    };
    let _machine = Machine::alone();
    let lab = Lab::new();
    let mmtests = Mmtests::copied(&lab, Path::new(&mmtests));
    for name in ["before", "after"] {
        let config = "configs/config-workload-pagelab";
        let came = mmtests.run("run-mmtests.sh", &["--no-monitor", "--config", config, name]);
        assert!(came.status.success(), "{}", String::from_utf8_lossy(&came.stdout));
    }
    let of = |program, more: &[&str]| {
        let came = mmtests.run(program, &[&["-d", "work/log", "-b", "pagelab"], more].concat());
        String::from_utf8(came.stdout).unwrap()
    };
    let extracted = of("bin/extract-mmtests.pl", &["-n", "before"]);
    let rows = ["fault-write-touch", "fault-read-touch", "mib-first-write-touch"];
    for row in rows.into_iter().chain(["mib-first-write-map-populate"]) {
        let mine = extracted.lines().filter(|line| line.split_whitespace().next() == Some(row));
        assert_eq!(mine.count(), 3, "{row}: {extracted}");
    }
    let compared = of("bin/compare-mmtests.pl", &["-n", "before,after"]);
    assert!(compared.contains("Amean     fault-write-touch"), "{compared}");
}
