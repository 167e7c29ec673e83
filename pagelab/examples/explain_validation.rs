#![expect(clippy::print_stdout, reason = "its output is its purpose")]
//! Whether `pagelab explain` predicts what faults really cost.
//!
//! The one idea: a program that touches memory is run with its faults in the touching phase and
//! with the same memory populated before it, in turn; the difference of the phase's CPU time is
//! what the faults cost. `explain` sees only the first kind of run and predicts it. Half of the
//! pairs come before the prediction and half after it, so that drift hits both alike.
//!
//!     cargo build --release -p pagelab
//!     cargo run --release -p pagelab --example explain_validation -- target/release/pagelab
//!
//! Further words choose programs. It is no test: it asserts nothing about time.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

/// Program and pages.
const PROGRAMS: [(&str, usize); 9] = [
    ("write", 32_768),
    ("scattered", 32_768),
    ("fill", 32_768),
    ("thp", 16_384),
    ("read", 65_536),
    ("zero-write", 32_768),
    ("fork", 32_768),
    ("file", 65_536),
    ("threads", 32_768),
];
/// Pairs of runs on each side of the prediction.
const PAIRS: usize = 6;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let pagelab = words.next().context("which pagelab? target/release/pagelab")?;
    let chosen: Vec<String> = words.collect();
    let directory = std::env::temp_dir().join(format!("pagelab-validation-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let program = compile(&directory)?;
    println!(
        "{:12} {:>12} {:>12} {:>26} {:>8}",
        "program", "measured", "predicted", "interval", "off"
    );
    for (kind, pages) in PROGRAMS {
        if !chosen.is_empty() && !chosen.iter().any(|name| name == kind) {
            continue;
        }
        let mut pairs = differences(&program, kind, pages)?;
        let run = directory.join(kind);
        let predicted = predict(&pagelab, &run, &program, kind, pages)?;
        pairs.extend(differences(&program, kind, pages)?);
        let measured = median(pairs);
        match predicted {
            None => println!("{kind:12} {:>9.3} ms {:>12}", measured / 1e6, "no price"),
            Some([value, low, high]) => println!(
                "{kind:12} {:>9.3} ms {:>9.3} ms {:>10.3} – {:>10.3} ms {:>+7.1}%",
                measured / 1e6,
                value / 1e6,
                low / 1e6,
                high / 1e6,
                (value / measured - 1.0) * 100.0
            ),
        }
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn compile(directory: &Path) -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/touch.c");
    let program = directory.join("touch");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-pthread", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(source);
    ensure!(cc.status().context("cc")?.success(), "cc failed");
    Ok(program)
}

/// Nanoseconds that the faulting phase took more than the populated one, pair by pair.
fn differences(program: &Path, kind: &str, pages: usize) -> anyhow::Result<Vec<f64>> {
    let phase = |how: &str| -> anyhow::Result<f64> {
        let mut command = Command::new(program);
        command.args([kind, &pages.to_string(), how]);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    };
    let pair = |index: usize| {
        // A B, B A, A B …
        let first = if index.is_multiple_of(2) { "fault" } else { "populated" };
        let second = if index.is_multiple_of(2) { "populated" } else { "fault" };
        let (a, b) = (phase(first)?, phase(second)?);
        Ok(if index.is_multiple_of(2) { a - b } else { b - a })
    };
    (0..PAIRS).map(pair).collect()
}

/// What `explain` says of the site that the phase is: value and interval in nanoseconds.
fn predict(
    pagelab: &str,
    run: &Path,
    program: &Path,
    kind: &str,
    pages: usize,
) -> anyhow::Result<Option<[f64; 3]>> {
    let mut explain = Command::new(pagelab);
    explain.args(["explain", "-q", "-o"]).arg(run).arg("--").arg(program);
    explain.args([kind, &pages.to_string(), "fault"]).stdout(Stdio::null()).stderr(Stdio::null());
    explain.status().context("pagelab explain")?;
    let mut report = Command::new(pagelab);
    let output = report.arg("report").arg(run).args(["--format", "json"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(find(&report, "stall", "all"))
}

/// A number of the program in the report, wherever it stands.
fn find(value: &serde_json::Value, statistic: &str, series: &str) -> Option<[f64; 3]> {
    let is_it = |name: &str, text: &str| value.get(name).and_then(|v| v.as_str()) == Some(text);
    if is_it("statistic", statistic) && is_it("series", series) {
        let number = |name: &str| value.get(name)?.as_f64();
        return Some([number("value")?, number("low")?, number("high")?]);
    }
    let inside: Vec<&serde_json::Value> = match value {
        serde_json::Value::Array(all) => all.iter().collect(),
        serde_json::Value::Object(all) => all.values().collect(),
        _ => Vec::new(),
    };
    inside.into_iter().find_map(|inside| find(inside, statistic, series))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
