//! Claims of any text: no panic, a refusal that names its line, and sentences that end.
//!
//! The one idea: most texts are no TOML, so half of the inputs replace values of our own files by
//! others: expressions of a template, mostly, which is where anybody's publication could do harm.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{
    arbitrary::{self, Unstructured},
    fuzz_target,
};
use pagelab_fuzz::{folder, short, sow, text};
use pagelab_record::{Record, RunHeader, journal};
use pagelab_report::{Forms, LATER, Publication, Report, Style, VIEWS, Views};

/// Publications of ours: their files are what is edited.
const OURS: [(&str, &str, &str, &str); 3] =
    [folder!("page-fault-latency"), folder!("fast-memory"), folder!("memory-types")];
/// What an expression may be, for a parser or for what it asks.
const EXPRESSIONS: &[&str] = &[
    "",
    "1",
    "[]",
    "{}",
    "of('write')",
    "of('write', page=['4k', '2m'])",
    "of('nosuch')",
    "published('read', arm=[])",
    "ratio(of('write'), 0)",
    "ratio(of('write'), of('read'))",
    "ratio([], of('read'))",
    "minus(of('write'), [of('read')])",
    "sum([])",
    "sum('rate', side='published')",
    "share(of('write'), 3)",
    "best([])",
    "best(of('write'), 'widest')",
    "count('write', 'more')",
    "pairs(1, 2)",
    "verdict()",
    "verdict(of('write'), 1, 2)",
    "told(of('write'), 'MiB/s')",
    "limit('llc size').value",
    "of('write').value / 0",
    "'a' + 'b'",
    "((((1))))",
    "x.y.z",
];

/// What the claims are about: a header, and a record of each workload.
static GOLDEN: LazyLock<(RunHeader, Vec<Record>)> = LazyLock::new(|| {
    let contents = include_str!("../../tests/data/golden.jsonl");
    let (header, records) = contents.split_once('\n').expect("a header and records");
    let about = ["\"fault/latency\"", "\"emu/replay\"", "\"memtype/bandwidth\""];
    let is = |line: &&str| about.iter().any(|workload| line.contains(workload));
    let shorter = |line| short(serde_json::from_str(line).expect("our own record")).to_string();
    let records: Vec<String> = records.lines().filter(is).take(3).map(shorter).collect();
    let records = journal::read_records(&records.join("\n")).expect("our own records");
    (serde_json::from_str(header).expect("our own header"), records)
});

/// A file of ours, some lines of which say something else.
fn edited(input: &mut Unstructured<'_>, base: &str) -> arbitrary::Result<String> {
    let mut lines: Vec<String> = base.lines().map(ToOwned::to_owned).collect();
    for _ in 0..input.int_in_range(1..=6)? {
        let at = input.choose_index(lines.len())?;
        let expression = EXPRESSIONS[input.choose_index(EXPRESSIONS.len())?];
        let key = lines[at].split_once(" = ").map(|(key, _)| key.to_owned());
        match (input.int_in_range(0..=4)?, key) {
            (0, _) if lines.len() > 1 => drop(lines.remove(at)),
            (1, Some(key)) => lines[at] = format!("{key} = \"{expression}\""),
            (2, Some(key)) => lines[at] = format!("{key} = \"{{{{ {expression} }}}}\""),
            (3, Some(key)) => {
                lines[at] = format!("{key} = \"{{% for a in {expression} %}}a{{% endfor %}}\"");
            }
            _ => lines[at] = text(input)?,
        }
    }
    Ok(lines.join("\n"))
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Some((&kind, rest)) = input.split_first() else { return };
    let mut rest = Unstructured::new(rest);
    let (name, records, ours, _) = OURS[usize::from(kind / 2) % OURS.len()];
    let claims = if kind & 1 == 0 {
        let Ok(text) = str::from_utf8(rest.take_rest()) else { return };
        text.to_owned()
    } else {
        let Ok(text) = edited(&mut rest, ours) else { return };
        text
    };
    match Publication::parse(name, records, &claims) {
        Err(why) => {
            let rest = why.strip_prefix(name);
            let line = rest.and_then(|rest| rest.strip_prefix("/claims.toml:"));
            let line = line.and_then(|rest| rest.split(':').next()).map(str::parse::<usize>);
            assert!(matches!(line, Some(Ok(1..))), "{why}");
        }
        Ok(publication) => {
            let (header, records) = &*GOLDEN;
            let [program, emulation, memtype] =
                [pagelab_program::PART, pagelab_emulation::PART, pagelab_memtype::PART];
            let parts = [program.views, VIEWS, emulation.views, memtype.views, LATER];
            let views = Views::new(parts.into_iter().flatten(), |_, _| None);
            let report = Report::of(header, records, None, &[publication], &views);
            assert!(!report.terminal(Style { color: false, width: 80 }).is_empty());
        }
    }
});

/// Our own files, and edits of them.
fn seeds() -> Vec<Vec<u8>> {
    let raw = OURS.iter().map(|(_, _, claims, _)| [b"\0", claims.as_bytes()].concat());
    let mut seeds: Vec<Vec<u8>> = raw.collect();
    seeds.extend((1..60).map(|step| (0..80_u8).map(|byte| byte.wrapping_mul(step) | 1).collect()));
    seeds
}
