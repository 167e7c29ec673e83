//! A suite of any text: no panic, and a plan whose every case is complete and can be planned again.
//!
//! The one idea: most texts are no TOML, and most TOML is no suite. So half of the inputs choose
//! workloads, parameters and values from the tables that the program itself has, and the fuzzer's
//! bytes stand for what a person would write wrong.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary, Unstructured},
    fuzz_target,
};
use pagelab_bench::{
    Kind, Param,
    plan::{self, Overrides, Plan},
    suite,
};
use pagelab_cli::part;
use pagelab_fuzz::{name_parts, sow, text, written};
use pagelab_sys::time::ClockChoice;
use toml::{Table, Value};

/// Values that mean something to one kind of parameter or another.
const VALUES: &[&str] = &[
    "auto",
    "all",
    "large",
    "none",
    "any",
    "max",
    "0",
    "1",
    "2",
    "3",
    "8",
    "64",
    "4k",
    "64k",
    "2m",
    "hugetlb-2m",
    "hugetlb-1g",
    "1g",
    "16e",
    "8@4k",
    "8@page",
    "4k@4k",
    "0-3",
    "0-4294967295",
    "50%",
    "0.5%",
    "1e300",
    "inf",
    "nan",
    "-1",
    "1ms",
    "18446744073709551615",
    "zipf",
    "fib",
    "generator",
    "x@0xffffffffffffffff",
    "a,b",
    ",",
];

/// What stands beside the parameters of a case, and of a suite.
const METHOD: &[&str] = &["forks", "budget", "limit", "repetitions-min", "precision"];

fn pick<'t, T>(input: &mut Unstructured<'_>, table: &'t [T]) -> arbitrary::Result<&'t T> {
    input.choose_index(table.len()).map(|index| &table[index])
}

fn word(input: &mut Unstructured<'_>, param: &Param) -> arbitrary::Result<String> {
    Ok(match input.int_in_range(0..=4)? {
        0 => param.default.to_owned(),
        1 | 2 => match param.choices() {
            choices if choices.is_empty() => (*pick(input, VALUES)?).to_owned(),
            choices => pick(input, &choices)?.clone(),
        },
        3 => (*pick(input, VALUES)?).to_owned(),
        _ => text(input)?,
    })
}

fn value(input: &mut Unstructured<'_>, param: &Param) -> arbitrary::Result<Value> {
    Ok(match input.int_in_range(0..=9)? {
        0 => Value::Integer(i64::arbitrary(input)?),
        1 => Value::Float(f64::arbitrary(input)?),
        2..=4 => {
            let words = input.int_in_range(0..=3)?;
            Value::Array((0..words).map(|_| value(input, param)).collect::<Result<_, _>>()?)
        }
        _ => Value::String(word(input, param)?),
    })
}

fn method(input: &mut Unstructured<'_>, table: &mut Table) -> arbitrary::Result<()> {
    for _ in 0..input.int_in_range(0..=2)? {
        let number = match input.int_in_range(0..=2)? {
            0 => Value::Integer(i64::from(i8::arbitrary(input)?)),
            1 => Value::Integer(i64::arbitrary(input)?),
            _ => Value::Float(f64::arbitrary(input)?),
        };
        table.insert((*pick(input, METHOD)?).to_owned(), number);
    }
    Ok(())
}

/// A suite that a person might have meant.
fn meant(input: &mut Unstructured<'_>) -> arbitrary::Result<Table> {
    let mut suite = Table::new();
    suite.insert("name".to_owned(), Value::String("fuzzed".to_owned()));
    method(input, &mut suite)?;
    let mut cases = Vec::new();
    for _ in 0..input.int_in_range(1..=4)? {
        let workload = pick(input, part::workloads())?;
        let mut case = Table::new();
        case.insert("workload".to_owned(), Value::String(workload.name().to_owned()));
        method(input, &mut case)?;
        for _ in 0..input.int_in_range(0..=5)? {
            let Ok(param) = pick(input, workload.params()) else { break };
            // A path names a file of the machine that the fuzzer runs on.
            if !matches!(param.kind, Kind::Dir) && !matches!(param.name, "trace" | "image") {
                case.insert(param.name.to_owned(), value(input, param)?);
            }
        }
        cases.push(Value::Table(case));
    }
    suite.insert("case".to_owned(), Value::Array(cases));
    Ok(suite)
}

/// What a run would do before it measures.
fn planned(text: &str) -> Option<Plan> {
    let suite = suite::parse(text, part::known()).ok()?;
    plan::of_suite(&suite, ClockChoice::Raw, Overrides::default()).ok()
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    name_parts();
    let Some(text) = written(input, meant) else { return };
    let Some(plan) = planned(&text) else { return };
    let outlook = plan.outlook();
    let _ = (outlook.bytes(), outlook.seconds());
    for planned in plan.cases.iter().take(16) {
        // What `list`, `run --dry-run` and the runner ask.
        let _ = (planned.supply(), planned.needs(), planned.is_one_pass());
        assert!(planned.method.forks > 0 && planned.method.limit_ns > 0, "{planned:?}");
        let _ = Duration::from_nanos(planned.method.limit_ns);
        let workload = planned.workload;
        let pairs: Vec<(&str, &str)> =
            planned.case.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let again = plan::complete(workload, &pairs);
        assert_eq!(again.as_ref(), Ok(&*planned.case), "a complete case stays as it is");
    }
});

/// The built-in suites, whole and case by case, and choices from the tables.
fn seeds() -> Vec<Vec<u8>> {
    let raw = |text: &str| [b"\0", text.as_bytes()].concat();
    name_parts();
    let mut seeds: Vec<Vec<u8>> = part::suites().map(|(_, text)| raw(text)).collect();
    for (_, text) in part::suites() {
        let cases = text.split("[[case]]\n").skip(1);
        seeds.extend(cases.map(|case| raw(&format!("name = \"a\"\n[[case]]\n{case}"))));
    }
    seeds.truncate(60);
    seeds.extend((1..40).map(|step| (0..120_u8).map(|byte| byte.wrapping_mul(step) | 1).collect()));
    seeds
}
