//! From what `pagelab trace replay --format json` prints in each build to one table.
//!
//! The one idea: a ratio is taken inside a build, between backends that ran beside each other; the
//! median is taken over builds. Loads that differ between builds are an error, because then it was
//! not the same program.

use std::{collections::BTreeMap, fmt::Write};

use anyhow::{Context, Result, ensure};
use serde_json::{Deserializer, Value};

/// What the ratios are to, by the names of backends.
const REFERENCES: [&str; 2] = ["noop", "base"];
/// The parameter that always names a case.
const TRACE: &str = "trace";
/// Width of a number.
const COLUMN: usize = 7;
const MEDIAN_AND_SPREAD: &str = "median  spread";

/// One case of one build.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    /// Its parameters but the backends.
    parameters: BTreeMap<String, String>,
    backends: Vec<Backend>,
}

#[derive(Debug, Clone, PartialEq)]
struct Backend {
    name: String,
    ns_per_op: f64,
    digest: Value,
}

/// Reads the cases of one build: an object, an array of them, or several documents.
pub(super) fn read(text: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        gather(
            &value.context("it is not JSON: end the arguments with --format json")?,
            &mut cases,
        )?;
    }
    ensure!(!cases.is_empty(), "it holds no case with `backends`");
    Ok(cases)
}

fn gather(value: &Value, cases: &mut Vec<Case>) -> Result<()> {
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| gather(value, cases)),
        Value::Object(_) if is_case(value) => {
            cases.push(case(value)?);
            Ok(())
        }
        Value::Object(object) => object.values().try_for_each(|value| gather(value, cases)),
        _ => Ok(()),
    }
}

fn is_case(value: &Value) -> bool {
    ["backends", "failed", "skipped"].iter().any(|key| value.get(key).is_some())
}

fn case(value: &Value) -> Result<Case> {
    for trouble in ["failed", "skipped"] {
        ensure!(value.get(trouble).is_none(), "a case {trouble}: {}", value[trouble]);
    }
    ensure!(value["valid"] != false, "a case is not valid: {}", value["broken_claims"]);
    let parameters = value["case"].as_object().into_iter().flatten();
    let parameters = parameters.filter(|(name, _)| *name != "backend").map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), text)
    });
    let backends = value["backends"].as_array().context("`backends` is no array")?;
    let backends = backends.iter().map(|backend| {
        let name = backend["backend"].as_str().context("a backend has no name")?;
        let ns_per_op = backend["ns_per_op"].as_f64().filter(|ns| *ns > 0.0);
        let ns_per_op = ns_per_op.with_context(|| format!("`{name}` has no `ns_per_op`"))?;
        Ok(Backend { name: name.to_owned(), ns_per_op, digest: backend["digest"].clone() })
    });
    Ok(Case { parameters: parameters.collect(), backends: backends.collect::<Result<_>>()? })
}

/// The table of all builds, which have the same cases.
pub(super) fn table(builds: &[Vec<Case>], cpu: &str) -> Result<String> {
    let first = builds.first().context("there is at least one build")?;
    let alike = builds.iter().all(|build| build.len() == first.len());
    ensure!(alike, "the builds do not have the same cases");
    let mut text = String::new();
    for (number, name) in names(first).iter().enumerate() {
        let cases: Vec<&Case> = builds.iter().map(|build| &build[number]).collect();
        let _ = writeln!(text, "\n{name}, target-cpu {cpu}, {} layouts", cases.len());
        of_case(&mut text, &cases)?;
    }
    Ok(text)
}

/// What tells the cases apart.
fn names(cases: &[Case]) -> Vec<String> {
    let differs = |name: &str| {
        cases.iter().any(|case| case.parameters.get(name) != cases[0].parameters.get(name))
    };
    let name = |(number, case): (usize, &Case)| {
        let telling = case.parameters.iter().filter(|(name, _)| *name == TRACE || differs(name));
        let telling: Vec<_> = telling.map(|(name, value)| format!("{name}={value}")).collect();
        if telling.is_empty() { format!("case {}", number + 1) } else { telling.join(" ") }
    };
    cases.iter().enumerate().map(name).collect()
}

fn of_case(text: &mut String, cases: &[&Case]) -> Result<()> {
    let names = cases[0].backends.iter().map(|backend| backend.name.len());
    let (name, each) = (names.max().unwrap_or(0).max("backend".len()), COLUMN * cases.len());
    let _ = write!(text, "{:name$}{:>each$}", "backend", "ns/op");
    for reference in REFERENCES {
        let _ = write!(text, " |{:>each$} {MEDIAN_AND_SPREAD}", format!("to {reference}"));
    }
    text.push('\n');
    for backend in &cases[0].backends {
        let found = of_backend(cases, &backend.name);
        let found = found.with_context(|| format!("not every build has `{}`", backend.name))?;
        let same = found.iter().all(|other| other.digest == backend.digest);
        ensure!(same, "the loads of `{}` differ between the builds", backend.name);
        let ns: Vec<f64> = found.iter().map(|backend| backend.ns_per_op).collect();
        let _ = write!(text, "{:name$}{}", backend.name, columns(&ns));
        for reference in REFERENCES {
            let Some(reference) = of_backend(cases, reference) else {
                let all = each + 1 + MEDIAN_AND_SPREAD.len();
                let _ = write!(text, " |{:>all$}", "-");
                continue;
            };
            let ratios = ns.iter().zip(reference).map(|(ns, to)| ns / to.ns_per_op);
            let ratios: Vec<f64> = ratios.collect();
            let (median, spread) = (median(&ratios), spread(&ratios));
            let _ = write!(text, " |{} {median:6.3} {spread:5.1} %", columns(&ratios));
        }
        text.push('\n');
    }
    Ok(())
}

/// The backend of that name in each build.
fn of_backend<'c>(cases: &[&'c Case], name: &str) -> Option<Vec<&'c Backend>> {
    let find = |case: &&'c Case| case.backends.iter().find(|backend| backend.name == name);
    cases.iter().map(find).collect()
}

fn columns(values: &[f64]) -> String {
    values.iter().fold(String::new(), |text, value| text + &format!("{value:COLUMN$.3}"))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

/// From the smallest to the largest, in percent of the median.
fn spread(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (high - low) / median(values) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `pagelab trace replay --format json` prints, shortened.
    fn replay(noop: f64, base: f64, tlb: f64) -> String {
        let backend = |name: &str, ns: f64| {
            format!(r#"{{"backend":"{name}","ns_per_op":{ns},"digest":"00ff","decoder":"fast"}}"#)
        };
        format!(
            r#"{{"case":{{"trace":"a.bin","backend":"noop,base,tlb","rounds":"5"}},
                "nature":"measured","valid":true,"broken_claims":[],"backends":[{},{},{}]}}"#,
            backend("noop", noop),
            backend("base", base),
            backend("tlb", tlb)
        )
    }

    fn builds(texts: &[String]) -> Vec<Vec<Case>> {
        texts.iter().map(|text| read(text).unwrap()).collect()
    }

    #[test]
    fn ratios_are_taken_inside_a_build_and_their_median_over_builds() {
        let texts = [replay(1.0, 4.0, 2.0), replay(2.0, 4.0, 3.0), replay(1.0, 2.0, 1.6)];
        let table = table(&builds(&texts), "generic").unwrap();
        assert!(table.contains("\ntrace=a.bin, target-cpu generic, 3 layouts\n"), "{table}");
        let row = table.lines().find(|line| line.starts_with("tlb")).unwrap();
        let words: Vec<_> = row.split_whitespace().collect();
        let expected = "tlb 2.000 3.000 1.600 | 2.000 1.500 1.600 1.600 31.2 % \
                        | 0.500 0.750 0.800 0.750 40.0 %";
        assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_reference_that_did_not_run_leaves_its_columns_empty() {
        let without = |text: String| text.replace("\"base\",\"ns", "\"tlb/safe\",\"ns");
        let texts = [without(replay(1.0, 4.0, 2.0)), without(replay(1.0, 4.0, 2.0))];
        let table = table(&builds(&texts), "native").unwrap();
        let row = table.lines().find(|line| line.starts_with("tlb ")).unwrap();
        assert!(row.ends_with(" -") && row.contains(" 2.000   0.0 %"), "{row}");
    }

    #[test]
    fn several_cases_are_told_apart_by_what_differs() {
        let one = replay(1.0, 4.0, 2.0);
        let other = one.replace("\"5\"", "\"9\"");
        for text in [format!("[{one},{other}]"), format!("{one}\n{other}")] {
            let table = table(&builds(&[text.clone(), text]), "generic").unwrap();
            assert!(table.contains("\nrounds=5 trace=a.bin, target-cpu"), "{table}");
            assert!(table.contains("\nrounds=9 trace=a.bin, target-cpu"), "{table}");
        }
    }

    #[test]
    fn what_has_no_numbers_says_why() {
        let message = |text: &str| format!("{:#}", read(text).unwrap_err());
        assert!(message("tlb  1.2 ns").contains("--format json"));
        assert!(message("{}").contains("no case with `backends`"));
        assert!(message(r#"[{"case":{},"failed":"it died"}]"#).contains("it died"));
        assert!(message(r#"{"backends":[{"backend":"tlb"}]}"#).contains("`tlb` has no"));
        let invalid = replay(1.0, 2.0, 3.0).replace("\"valid\":true", "\"valid\":false");
        assert!(message(&invalid).contains("not valid"));
    }

    #[test]
    fn builds_that_load_something_else_are_an_error() {
        let one = replay(1.0, 4.0, 2.0);
        let builds = builds(&[one.clone(), one.replace("00ff", "00fe")]);
        let error = table(&builds, "generic").unwrap_err().to_string();
        assert_eq!(error, "the loads of `noop` differ between the builds");
    }

    #[test]
    fn the_median_of_two_is_between_them() {
        assert!((median(&[3.0, 1.0]) - 2.0).abs() < 1e-9);
        assert!((spread(&[3.0, 1.0]) - 100.0).abs() < 1e-9);
    }
}
