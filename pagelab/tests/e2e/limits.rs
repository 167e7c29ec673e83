//! Small limits, a narrow terminal and closed streams: every command answers, and a program that is
//! watched ends as it does alone.

use pagelab_interpose::{heat, segment};

use crate::support::{Ended, Lab, binary, build_library};

/// What a shell sets before it becomes the command.
const LIMITS: [&str; 7] = [
    "export COLUMNS=20",
    "ulimit -s 64",
    "ulimit -d 20000",
    "ulimit -s 64; ulimit -d 20000",
    "exec <&-",
    "exec >&-",
    "exec <&- >&- 2>&-",
];

/// Runs a command under a limit.
fn limited(lab: &Lab, limit: &str, words: &[&str]) -> Ended {
    let script = format!("{limit}; exec \"$@\"");
    let mut shell = assert_cmd::Command::new("sh");
    lab.ended(shell.args(["-c", &script, "sh"]).args(words))
}

#[test]
fn no_command_panics_under_a_limit_or_without_a_stream() {
    let lab = Lab::new();
    let binary = binary();
    let binary = binary.to_str().unwrap();
    // A suite measures no limits of the machine beside it, each of which takes seconds.
    let suite = lab.file(
        "one.toml",
        "name = \"one\"\nsummary = \"a case\"\nforks = 1\n[[case]]\n\
         workload = \"fault/latency\"\npage = \"4k\"\nsize = \"1m\"\nrounds = 2\n",
    );
    let case = ["--suite", suite.to_str().unwrap(), "-q"];
    lab.pagelab(&[&["run"], &case[..], &["-o", "known"]].concat()).exits(0);
    for (nth, limit) in LIMITS.into_iter().enumerate() {
        let [run, explain, tried, trace] =
            ["run", "explain", "try", "trace"].map(|name| format!("{name}{nth}"));
        let words: [&[&str]; 11] = [
            &["doctor"],
            &["list"],
            &["run", "--help"],
            &[&["run"], &case[..], &["-o", &run]].concat(),
            &["explain", "--costs", "none", "-o", &explain, "--", "true"],
            &[
                "try",
                "--no-prediction",
                "-o",
                &tried,
                "--rounds",
                "1",
                "--rung",
                "malloc-thp",
                "true",
            ],
            &["compare", "known", "known"],
            &["report", "known"],
            &["advise", "--size", "64m", "--budget", "1", "-q"],
            &["tier", "status"],
            &["trace", "synth", "fib", "--ops", "1000", "-o", &trace],
        ];
        for words in words {
            let ended = limited(&lab, limit, &[&[binary], words].concat());
            let is_answer = matches!(ended.code, Some(0..=6));
            let is_told = ["panicked", "overflowed"].iter().any(|text| ended.stderr.contains(text));
            assert!(is_answer && !is_told, "{limit}: {words:?}: {ended:?}");
        }
    }
}

#[test]
fn a_program_ends_under_a_limit_or_without_a_stream_as_it_does_alone() {
    let lab = Lab::new();
    let binary = binary();
    let binary = binary.to_str().unwrap();
    for package in [heat::PACKAGE, segment::PACKAGE] {
        build_library(package);
    }
    let watchers: [&[&str]; 2] = [
        &[binary, "segment", "run", "-q", "--"],
        &[binary, "tier", "promote", "--source", "prot-none", "--"],
    ];
    for limit in LIMITS {
        // The second reads, writes and complains; each fails without its stream.
        for program in [&["sh", "-c", "exit 7"][..], &["sh", "-c", "cat && echo said && ls /no"]] {
            let alone = limited(&lab, limit, program);
            // What segments do under a limit of data is for their own tests.
            let is_measured = |watcher: &&&[&str]| watcher[1] != "segment" || !limit.contains("-d");
            for watcher in watchers.iter().filter(is_measured) {
                let ended = limited(&lab, limit, &[*watcher, program].concat());
                assert_eq!(ended.code, alone.code, "{limit}: {watcher:?} {program:?}: {ended:?}");
                assert_eq!(ended.stdout, alone.stdout, "{limit}: {watcher:?} {program:?}");
            }
        }
    }
}
