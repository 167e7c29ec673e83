//! `pagelab tier calibrate`: the curve C(u) of this machine, as a scenario that `tier simulate`
//! takes.
//!
//! The one idea: it is a run of `tier/curve` with another ending. What was measured goes into a
//! scenario file, each number with where it comes from; the exponent that the simulator would need
//! beside the two ends is fitted, and how far it is off is said. Beside it stands what a load of
//! each node takes that waits for the one before it, alone and with more threads that do the same,
//! and how many bytes that brings: latency and bandwidth of a node under load.

use pagelab_report::Forms;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command};
use pagelab_bench::{Read, Workload, plan::Plan, runner::Runner, suite::Entry};
use pagelab_record::{Case, Clock, Measured, Record, stats::Samples, units::display_bytes};
use pagelab_workloads::tier::curve::CURVE;
use serde_json::json;

use crate::{
    args::{self, Format, Short},
    exit::{Exit, Failure},
    output,
    plan::plan_of_cases,
    session::{self, Run},
    settings,
};

/// The flags, beside those of the workload's parameters.
#[derive(Debug, Args)]
struct Flags {
    /// Write a scenario for tier simulate to this file, which must not exist yet.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    short: Short,
}

/// Adds the flags of `tier calibrate`.
pub(super) fn describe(command: Command) -> Command {
    let command = Flags::augment_args(command)
        .about("Measure what a share of accesses to slow memory costs, for tier simulate")
        .long_about(
            "Measure what a share of accesses to slow memory costs, for tier simulate.\n\n\
             The same accesses over eleven placements, in which nothing moves; then latency and \
             bandwidth of each node under load, with 1, 2, 4 threads and so on. On a machine with \
             one node there is one point, everything fast. Not yet seen on hardware with two.",
        );
    Format::of(command, &["terminal", "json"]).args(args::flags(&CURVE, ""))
}

/// The parameter that tells the accesses of a node under load from those of the curve.
const WAITS: &str = "waits";
/// The placements that have everything on one node, and what those nodes are called.
const NODES: [(&str, &str); 2] = [("0", "fast"), ("100", "slow")];

/// The curve, and each node by itself under more and more threads.
fn planned(matches: &ArgMatches, short: &Short) -> Result<Plan, Failure> {
    let axes = args::axes(&CURVE, matches);
    if axes.iter().any(|(name, _)| name == WAITS) {
        return Err(usage!(
            "the curve is of accesses that do not wait, nodes under load of such as do: \
                    leave out --waits, both are measured"
        ));
    }
    let mut plan = plan_of_cases(&Entry::new(&CURVE, axes.clone()), short)?;
    let most = plan.cases.iter().filter_map(|planned| planned.case.count("threads")).max();
    let mut threads: Vec<u64> =
        (0..32).map(|doubled| 1 << doubled).take_while(|count| Some(*count) < most).collect();
    threads.extend(most);
    let varied = ["share", "threads"];
    let mut axes: Vec<(String, Vec<String>)> =
        axes.into_iter().filter(|(name, _)| !varied.contains(&name.as_str())).collect();
    axes.push(("share".to_owned(), NODES.map(|(share, _)| share.to_owned()).into()));
    axes.push(("threads".to_owned(), threads.iter().map(u64::to_string).collect()));
    axes.push((WAITS.to_owned(), vec!["yes".to_owned()]));
    plan.cases.extend(plan_of_cases(&Entry::new(&CURVE, axes), short)?.cases);
    Ok(plan)
}

/// Measures and prints.
///
/// # Errors
/// When a parameter is wrong, the host cannot, or the output cannot be written.
pub(super) fn calibrate(matches: &ArgMatches) -> Result<Exit, Failure> {
    let flags: Flags = args::of(matches)?;
    let scenario = output::Named::of(flags.write.as_ref())?;
    let plan = planned(matches, &flags.short)?;
    let place = flags.short.output.place();
    let quiet = flags.short.quiet.quiet;
    let runner: Runner = settings::runner(&place.run, &plan.cases, std::time::Duration::ZERO)?;
    let run = Run::start(&place, session::header(&place.run, "", &[], &plan))?;
    let done = session::carry_out(runner, run, &plan, quiet)?;
    let curve = done.records.iter().find_map(Curve::of);
    let loaded: Vec<Loaded> = done.records.iter().flat_map(Loaded::of).collect();
    output::drawn(&match (flags.short.format.format.as_str(), &curve) {
        ("json", curve) => {
            let mut told = json!(curve.as_ref().map(Curve::json));
            if let Some(told) = told.as_object_mut() {
                told.insert("nodes".to_owned(), loaded.iter().map(Loaded::json).collect());
            }
            format!("{told}\n")
        }
        (_, None) => done.report.terminal(output::style()),
        (_, Some(curve)) => curve.text() + &loaded.iter().map(Loaded::text).collect::<String>(),
    })?;
    if let Some(scenario) = scenario {
        let curve =
            curve.as_ref().ok_or_else(|| host!("there is no curve: no record of it is valid"))?;
        scenario.write(&curve.scenario(&loaded))?;
    }
    done.tell();
    Ok(done.exit)
}

/// A measured curve.
#[derive(Debug, Clone, PartialEq)]
struct Curve {
    run: String,
    size: u64,
    threads: u64,
    accesses: u64,
    /// Share of the slow node, from 0 to 1, and seconds.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Of a record that is valid.
    fn of(record: &Record) -> Option<Self> {
        let is_of_curve = record.workload == CURVE.name() && !record.case.is(WAITS, "yes");
        let measured = record.valid().filter(|_| is_of_curve)?;
        let (size, threads) = (record.case.bytes("size")?, record.case.count("threads")?);
        let accesses = record.case.count("accesses")?;
        let mut points: Vec<(f64, f64)> = (0..=10_u32)
            .filter_map(|tenth| {
                let seconds = seconds(measured, &(tenth * 10).to_string())?;
                Some((f64::from(tenth) / 10.0, seconds))
            })
            .collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        let run = record.run.clone();
        (!points.is_empty()).then_some(Self { run, size, threads, accesses, points })
    }

    fn end(&self, share: f64) -> Option<f64> {
        self.points.iter().find(|point| (point.0 - share).abs() < 1e-9).map(|point| point.1)
    }

    /// The exponent of C(u) = F + (S − F) u^g that fits best, and by how much it is off at most, as
    /// a share of the measured; `None` without two ends of which the slow one is slower.
    fn exponent(&self) -> Option<(f64, f64)> {
        let (fast, slow) = (self.end(0.0)?, self.end(1.0)?);
        if slow <= fast || self.points.len() < 3 {
            return None;
        }
        let model = |g: f64, u: f64| fast + (slow - fast) * u.powf(g);
        let off = |g: f64| -> f64 {
            self.points.iter().map(|&(u, c)| ((model(g, u) - c) / c).powi(2)).sum()
        };
        // One valley: the sum of squares falls to the best exponent and rises behind it.
        let (mut low, mut high) = (0.1_f64, 10.0_f64);
        for _ in 0..100 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if off(left) < off(right) { high = right } else { low = left }
        }
        let g = f64::midpoint(low, high);
        let worst = self.points.iter().map(|&(u, c)| ((model(g, u) - c) / c).abs());
        Some((g, worst.fold(0.0, f64::max)))
    }

    fn json(&self) -> serde_json::Value {
        let fit = self.exponent();
        json!({ "size": self.size, "threads": self.threads, "accesses": self.accesses,
            "points": self.points, "exponent": fit.map(|fit| fit.0), "off": fit.map(|fit| fit.1) })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} by {} threads, {} accesses each; not yet seen on hardware with two tiers\n",
            display_bytes(self.size as f64),
            self.threads,
            self.accesses
        );
        for (share, seconds) in &self.points {
            text.push_str(&format!("{:>4.0} %  {seconds:.4} s\n", share * 100.0));
        }
        text.push_str(&match self.exponent() {
            Some((g, off)) => format!("g = {g:.2}, off by {:.1} % at most\n", off * 100.0),
            None => "no curve: it takes two nodes, of which one is slower\n".to_owned(),
        });
        text
    }

    /// As a scenario, each number with where it comes from.
    fn scenario(&self, loaded: &[Loaded]) -> String {
        let from = format!("tier/curve, run {}", self.run);
        let measured = |value: &str| format!("{{ value = {value}, measured = \"{from}\" }}");
        let points: Vec<String> =
            self.points.iter().map(|(share, seconds)| format!("[{share}, {seconds:e}]")).collect();
        let points = match self.points.as_slice() {
            // A curve has two ends; with one node both are the same.
            [(_, seconds)] => format!("[0.0, {seconds:e}], [1.0, {seconds:e}]"),
            _ => points.join(", "),
        };
        let all = self.accesses * self.threads;
        let nodes = loaded.iter().fold(String::new(), |text, one| text + "# " + &one.text());
        format!(
            "# {from}: what a share of the accesses in slow memory costs.\n\
             {nodes}\
             name = \"calibrated\"\n\
             summary = \"a measured curve, uniform accesses, policies with their defaults\"\n\
             seed = 1\n\
             generator = \"uniform\"\n\
             start = \"slow\"\n\
             points = [{points}]\n\n\
             [memory]\nsize = {}\nfast = {}\n\n\
             [work]\naccesses = {}\nthreads = {}\nstores = 0.5\n\n\
             [[run]]\nsource = \"none\"\npolicy = \"none\"\n\n\
             [[run]]\nsource = \"numab2\"\npolicy = \"numab2\"\n\n\
             [[run]]\nsource = \"oracle\"\npolicy = \"oracle\"\n",
            measured(&format!("\"{}k\"", self.size >> 10)),
            measured(&format!("\"{}k\"", self.size >> 10)),
            measured(&all.to_string()),
            measured(&self.threads.to_string()),
        )
    }
}

/// A node with so many threads on it.
#[derive(Debug, Clone, PartialEq)]
struct Loaded {
    node: &'static str,
    threads: u64,
    /// What a load takes that waits for the one before it.
    load_ns: f64,
    /// Of lines that were loaded or stored to, by all threads.
    bytes_per_second: f64,
}

impl Loaded {
    const LINE: f64 = 64.0;

    /// Of a record that is valid.
    fn of(record: &Record) -> Vec<Self> {
        let is_mine = record.workload == CURVE.name() && record.case.is(WAITS, "yes");
        let measured = record.valid().filter(|_| is_mine);
        measured.map_or_else(Vec::new, |measured| {
            Self::of_case(&record.case, |share| seconds(measured, share))
        })
    }

    /// Of a case, whose placements took so many seconds.
    fn of_case(case: &Case, seconds: impl Fn(&str) -> Option<f64>) -> Vec<Self> {
        let (Some(threads), Some(accesses)) = (case.count("threads"), case.count("accesses"))
        else {
            return Vec::new();
        };
        let of_node = |(share, node)| {
            let seconds = seconds(share).filter(|seconds| *seconds > 0.0)?;
            // Every second access is a load.
            let load_ns = seconds * 1e9 / (accesses as f64 / 2.0);
            let bytes_per_second = (threads * accesses) as f64 * Self::LINE / seconds;
            Some(Self { node, threads, load_ns, bytes_per_second })
        };
        NODES.into_iter().filter_map(of_node).collect()
    }

    fn text(&self) -> String {
        let Self { node, threads, load_ns, bytes_per_second } = self;
        let rate = bytes_per_second / 1e9;
        format!("{node} node, {threads} threads: {load_ns:.1} ns a load, {rate:.3} GB/s\n")
    }

    fn json(&self) -> serde_json::Value {
        json!({ "node": self.node, "threads": self.threads, "load_ns": self.load_ns,
            "bytes_per_second": self.bytes_per_second })
    }
}

/// The median of an arm, in seconds.
fn seconds(measured: &Measured, arm: &str) -> Option<f64> {
    [Clock::Tsc, Clock::Wall, Clock::Scripted]
        .into_iter()
        .map(|clock| Samples::of(&measured.series, "score", arm, clock))
        .find_map(|samples| samples.estimate(0.5))
        .map(|estimate| estimate.value / 1e9)
}

#[cfg(test)]
mod tests {
    use pagelab_workloads::tier::preset;

    use super::*;

    fn curve(of: impl Fn(f64) -> f64) -> Curve {
        let points = (0..=10).map(|tenth| f64::from(tenth) / 10.0).map(|u| (u, of(u))).collect();
        Curve { run: "run".into(), size: 64 << 20, threads: 2, accesses: 1_000_000, points }
    }

    #[test]
    fn the_exponent_of_a_curve_that_has_one_is_found() {
        for g in [1.0, 1.5, 2.57] {
            let (found, off) = curve(|u| 2.0 + 5.0 * u.powf(g)).exponent().unwrap();
            assert!((found - g).abs() < 1e-3 && off < 1e-3, "{g}: {found}, {off}");
        }
        let (_, off) = curve(|u| if u < 0.5 { 2.0 } else { 7.0 }).exponent().unwrap();
        assert!(off > 0.2, "a step is no power: {off}");
        assert_eq!(curve(|_| 3.0).exponent(), None);
    }

    #[test]
    fn a_load_waits_for_half_of_the_accesses_and_all_of_them_are_lines() {
        let case = Case::default().with("threads", "4").with("accesses", "1000");
        let seconds = |share: &str| (share == "100").then_some(400e-6);
        let [found] = &Loaded::of_case(&case, seconds)[..] else { panic!("two nodes") };
        assert_eq!((found.node, found.threads), ("slow", 4));
        assert!((found.load_ns - 800.0).abs() < 1e-6, "{found:?}");
        assert!((found.bytes_per_second - 0.64e9).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_scenario_is_one_that_the_simulator_reads() {
        let folder = tempfile::tempdir().unwrap();
        let one = Curve { points: vec![(0.0, 0.25)], ..curve(|_| 1.0) };
        let loaded = [Loaded { node: "fast", threads: 2, load_ns: 80.0, bytes_per_second: 3.2e9 }];
        for (name, curve) in [("two", curve(|u| 1.0 + u * u)), ("one", one)] {
            let path = folder.path().join(format!("{name}.toml"));
            std::fs::write(&path, curve.scenario(&loaded)).unwrap();
            let path = path.to_str().unwrap();
            preset::load(path).unwrap_or_else(|why| panic!("{why}:\n{}", curve.scenario(&loaded)));
        }
    }
}
