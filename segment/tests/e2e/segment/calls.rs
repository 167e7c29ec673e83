//! Calls that are drawn at random come to the same with a library in the program as without one.

use std::path::PathBuf;

use pagelab_interpose::heat::{HEAT, HEAT_BYTES, Head};
use pagelab_interpose::preload::{ORDERS, Order, Orders, SHEET, SHEET_BYTES};

use super::*;

const SEGMENTS: [&str; 7] = ["segment", "run", "-q", "--heap", "1g", "--mmap", "2g"];
/// The same of memory that is taken from the start.
const SMALL: [&str; 7] = ["segment", "run", "-q", "--heap", "64m", "--mmap", "512m"];
/// Flags of segments, none of which a program notices.
const FLAGS: [&[&str]; 4] = [&[], &["--zero", "release"], &["--leaf", "4k"], AHEAD];
const AHEAD: &[&str] = &["--zero", "ahead"];

/// A program of `tests/programs`, whose compiler makes nothing of what malloc is.
fn built(lab: &Lab, name: &str) -> Option<PathBuf> {
    compiled_with(lab, name, &["-O1", "-pthread", "-fno-builtin"])
}

/// How a program is started.
type Start<'s> = &'s dyn Fn() -> assert_cmd::Command;

fn with_segments(flags: &[&str], program: &Path) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(binary());
    let sizes = if flags == AHEAD { SMALL } else { SEGMENTS };
    command.args(sizes).args(flags).arg("--").arg(program);
    command
}

/// Calls of one kind: a seed, how many, and words for `calls.c`.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    seed: usize,
    count: usize,
    words: &'static str,
}

impl Drawn {
    /// What a program says of the calls from `first` to `last`, and in sums of all of them.
    fn said(self, lab: &Lab, start: Start<'_>, first: usize, last: usize) -> Ended {
        let mut command = start();
        let numbers = [self.seed, self.count, first, last].map(|n| n.to_string());
        lab.ended(command.args(numbers).arg(self.words))
    }

    /// The same, in sums only.
    fn sums(self, lab: &Lab, start: Start<'_>) -> Ended {
        self.said(lab, start, 1, 0)
    }

    /// Holds one way to start against another, of which the sums are known, and shows the first
    /// call that comes to something else.
    fn is_same(self, lab: &Lab, plain: (Start<'_>, &Ended), other: Start<'_>, which: &str) {
        let came = self.sums(lab, other);
        if (came.code, &came.stdout) == (plain.1.code, &plain.1.stdout) {
            return;
        }
        let lines = || plain.1.stdout.lines().zip(came.stdout.lines());
        let same = lines().take_while(|(one, other)| one == other).count();
        let said = |start| self.said(lab, start, same * 1000, same * 1000 + 999).stdout;
        let (one, other) = (said(plain.0), said(other));
        let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        panic!("{which} {self:?} after {same}000 calls: {differs:#?}\n{}", came.stderr);
    }
}

/// Calls come to the same with segments of each kind.
fn are_same_with_segments(drawn: &[Drawn]) {
    let lab = Lab::new();
    let Some(program) = built(&lab, "calls") else { return };
    build_library(PACKAGE);
    let plain = || assert_cmd::Command::new(&program);
    for drawn in drawn {
        let sums = drawn.sums(&lab, &plain);
        sums.exits(0);
        for flags in FLAGS {
            let with = || with_segments(flags, &program);
            drawn.is_same(&lab, (&plain, &sums), &with, &format!("{flags:?}"));
        }
    }
}

#[test]
fn calls_drawn_at_random_come_to_the_same_with_segments() {
    are_same_with_segments(&[Drawn { seed: 5, count: 10_000, words: "large" }]);
}

#[test]
fn the_break_drawn_at_random_comes_to_the_same_with_segments() {
    are_same_with_segments(&[Drawn { seed: 4, count: 2000, words: "brk" }]);
}

/// The other libraries, each with the variables by which it has much to do.
fn others(lab: &Lab) -> [Vec<(&'static str, String)>; 2] {
    let [preload, heat] = [pagelab_interpose::preload::PACKAGE, pagelab_interpose::heat::PACKAGE]
        .map(|package| build_library(package).display().to_string());
    let file = |name, bytes: Vec<u8>| lab.file(name, bytes).display().to_string();
    let sheet = file("sheet", vec![0; SHEET_BYTES]);
    let mut words = vec![0; HEAT_BYTES];
    // Memory from 64 KiB on is looked at.
    words[8 * Head::Sampled as usize + 2] = 1;
    let yard = file("yard", words);
    let orders = [Order::Huge, Order::Populate, Order::Watch]
        .into_iter()
        .zip([2 << 20, 2 << 20, 4096])
        .fold(Orders::default(), |orders, (order, from)| orders.with(order, from));
    [
        vec![("LD_PRELOAD", preload), (ORDERS, orders.to_string()), (SHEET, sheet)],
        vec![("LD_PRELOAD", heat), (HEAT, yard)],
    ]
}

fn with_other(other: &[(&str, String)], program: &Path) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(program);
    command.envs(other.iter().map(|(name, value)| (*name, value)));
    command
}

#[test]
fn calls_drawn_at_random_come_to_the_same_with_the_other_libraries() {
    let lab = Lab::new();
    let Some(program) = built(&lab, "calls") else { return };
    let others = others(&lab);
    let plain = || assert_cmd::Command::new(&program);
    let drawn = Drawn { seed: 6, count: 3000, words: "small" };
    let sums = drawn.sums(&lab, &plain);
    sums.exits(0);
    for other in &others {
        let with = || with_other(other, &program);
        drawn.is_same(&lab, (&plain, &sums), &with, &format!("{other:?}"));
    }
}

#[test]
fn a_program_that_forbids_itself_calls_ends_as_it_does_without_preload() {
    let lab = Lab::new();
    let Some(program) = built(&lab, "filters") else { return };
    for words in FILTERED {
        let plain = lab.ended(assert_cmd::Command::new(&program).args(words));
        // Of heat not yet: with its thread libc itself asks for more than it does without.
        for other in &others(&lab)[..1] {
            let ended = lab.ended(with_other(other, &program).args(words));
            let came = (ended.code, &ended.stdout);
            assert_eq!(came, (plain.code, &plain.stdout), "{words:?} {other:?}: {}", ended.stderr);
        }
    }
}

#[test]
#[ignore = "soak: a million calls take minutes"]
fn a_million_calls_drawn_at_random_come_to_the_same_with_segments() {
    // Others each time: what differs names its seed.
    let seeds = std::process::id() as usize * 10..;
    let words = ["small", "large", "large", "brk"];
    let drawn = |(seed, words)| Drawn { seed, count: 83_334, words };
    are_same_with_segments(&seeds.zip(words).map(drawn).collect::<Vec<_>>());
}

/// Words for `filters.c`.
const FILTERED: [&[&str]; 8] = [
    &["prctl", "0"],
    &["prctl", "2", "100"],
    &["syscall", "40"],
    &["syscall", "40", "600"],
    &["all", "40"],
    &["strict", "0"],
    &["strict", "3"],
    &["strict", "40"],
];

#[test]
fn a_program_that_forbids_itself_calls_ends_as_it_does_without_segments() {
    let lab = Lab::new();
    let Some(program) = built(&lab, "filters") else { return };
    build_library(PACKAGE);
    // What is more than 512 MiB makes mimalloc map a table of its own.
    for words in FILTERED {
        let plain = lab.ended(assert_cmd::Command::new(&program).args(words));
        for flags in FLAGS {
            let ended = lab.ended(with_segments(flags, &program).args(words));
            assert_eq!(
                (ended.code, &ended.stdout),
                (plain.code, &plain.stdout),
                "{words:?} {flags:?}: {}",
                ended.stderr
            );
        }
    }
}

/// A program comes to the same with segments of each kind.
fn is_same_with(name: &str) {
    let lab = Lab::new();
    let Some(program) = built(&lab, name) else { return };
    build_library(PACKAGE);
    let plain = lab.ended(&mut assert_cmd::Command::new(&program));
    plain.exits(0);
    for flags in FLAGS {
        let ended = lab.ended(&mut with_segments(flags, &program));
        assert_eq!(
            (ended.code, &ended.stdout),
            (Some(0), &plain.stdout),
            "{flags:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn rights_by_keys_come_to_the_same_with_segments() {
    is_same_with("keys");
}

#[test]
fn a_map_at_any_address_and_of_any_length_comes_to_the_same_with_segments() {
    is_same_with("places");
}

#[test]
fn what_is_given_back_among_the_most_mappings_comes_to_the_same_with_segments() {
    is_same_with("most_maps");
}

#[test]
fn a_fork_in_the_midst_of_malloc_comes_to_an_end() {
    let lab = Lab::new();
    let Some(program) = built(&lab, "forks") else { return };
    build_library(PACKAGE);
    for what in ["streams", "handler", "signals"] {
        let plain = lab.ended(assert_cmd::Command::new(&program).arg(what));
        plain.exits(0);
        for flags in FLAGS {
            let ended = lab.ended(with_segments(flags, &program).arg(what));
            ended.exits(0);
            assert_eq!(ended.stdout, plain.stdout, "{what} {flags:?}");
        }
    }
}

/// What `limits.c` had, in MiB or threads, and the number of the error that ended it.
fn had(ended: &Ended) -> (f64, i32) {
    ended.exits(0);
    let mut words = ended.stdout.split_whitespace();
    let mut next = || words.next().unwrap();
    (next().parse().unwrap(), next().parse().unwrap())
}

#[test]
fn a_limit_is_met_where_it_is_met_without_segments() {
    let lab = Lab::new();
    let Some(program) = built(&lab, "limits") else { return };
    build_library(PACKAGE);
    let cases: [(_, _, &[_]); 3] = [
        ("d", 200, &["malloc", "realloc", "mmap", "brk"]),
        ("v", 400, &["mmap", "none", "threads"]),
        ("l", 2, &["mlock"]),
    ];
    let cases = cases.iter().flat_map(|case| case.2.iter().map(|kind| (case.0, case.1, *kind)));
    for (limit, mib, kind) in cases {
        let words = [limit, &mib.to_string(), kind];
        let plain = had(&lab.ended(assert_cmd::Command::new(&program).args(words).arg("inside")));
        let inside = had(&lab.ended(with_segments(&[], &program).args(words).arg("inside")));
        let script = format!("ulimit -{limit} {}; exec \"$@\"", mib << 10_u32);
        let mut outside = assert_cmd::Command::new(binary());
        outside.args(SEGMENTS).args(["--", "bash", "-c", &script, "bash"]);
        let outside = had(&lab.ended(outside.arg(&program).args(words)));
        for came in [inside, outside] {
            assert!(
                (came.0 - plain.0).abs() <= plain.0 / 10.0 && came.1 == plain.1,
                "{words:?}: {came:?} in place of {plain:?}"
            );
        }
    }
    // What is kept until it is taken again counts for no limit.
    for (limit, mib) in [("d", "200"), ("v", "400")] {
        let words = [limit, mib, "again", "inside"];
        let plain = had(&lab.ended(assert_cmd::Command::new(&program).args(words)));
        for flags in FLAGS {
            let came = had(&lab.ended(with_segments(flags, &program).args(words)));
            let is_near = (came.0 - plain.0).abs() <= plain.0 / 10.0;
            assert!(is_near && came.1 == plain.1, "{flags:?} {words:?}: {came:?}, not {plain:?}");
        }
    }
}
