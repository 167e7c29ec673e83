//! A scenario file of any text: no panic, and whatever is accepted can be simulated and adds up.
//!
//! The one idea: the fuzzer either writes the text, or replaces lines of a preset by others, so
//! that most of what it does is read. What is accepted is then made small, because a scenario may
//! ask for hours, and simulated.
#![no_main]

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary, Unstructured},
    fuzz_target,
};
use pagelab_fuzz::{sow, text, written};
use pagelab_tier::{Curve, Scenario, Source, Work, sim::check, simulate};
use pagelab_tiering::{
    preset::{self, PRESETS, Preset, Run},
    scenario::scenario,
};

/// Values that mean something to one key or another.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "0.5",
    "-1",
    "1e300",
    "nan",
    "inf",
    "9223372036854775807",
    "\"0\"",
    "\"1\"",
    "\"4k\"",
    "\"1m\"",
    "\"16e\"",
    "\"1ns\"",
    "\"28ms\"",
    "\"1000d\"",
    "\"\"",
    "true",
    "[]",
    "{}",
    "[[0, 1], [1, 2]]",
    "[[0.5, 0]]",
    "\"zipf\"",
    "\"gups:moves=1000\"",
    "\"phases\"",
    "\"stream\"",
    "\"none\"",
    "\"oracle\"",
    "\"pghot:threshold=255\"",
    "\"interleaved\"",
    "[\"hints\"]",
    "[\"sampling\", \"young\"]",
    "{ value = 1, fitted = \"X/time_s\" }",
];

/// A preset, some lines of which say something else.
fn edited(input: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let (_, base) = PRESETS[input.choose_index(PRESETS.len())?];
    let mut lines: Vec<String> = base.lines().map(ToOwned::to_owned).collect();
    for _ in 0..input.int_in_range(1..=8)? {
        let at = input.choose_index(lines.len())?;
        let key = lines[at].split_once(" = ").map(|(key, _)| key.to_owned());
        match (input.int_in_range(0..=4)?, key) {
            (0, _) => drop(lines.remove(at)),
            (1, _) => {
                let from = input.choose_index(lines.len())?;
                lines.insert(at, lines[from].clone());
            }
            (2, Some(key)) => {
                let value = VALUES[input.choose_index(VALUES.len())?];
                lines[at] = format!("{key} = {value}");
            }
            (3, Some(key)) => lines[at] = format!("{key} = {}", f64::arbitrary(input)?),
            _ => lines[at] = text(input)?,
        }
    }
    Ok(lines.join("\n"))
}

/// The same with as few pages, accesses and scans as a fuzzer has time for.
fn small(mut scenario: Scenario) -> Option<Scenario> {
    const PAGES: u64 = 256;
    const OFTEN_NS: u64 = 50_000_000;
    const LONG_NS: u64 = 1_000;
    let Work::Generated(_) = scenario.work else { return None };
    scenario.pages = scenario.pages.min(PAGES);
    for node in &mut scenario.tiers.nodes {
        node.pages = node.pages.min(PAGES);
    }
    scenario.accesses = scenario.accesses.min(100 * PAGES);
    scenario.rows = scenario.rows.min(20);
    scenario.costs.sample_ns = scenario.costs.sample_ns.min(LONG_NS);
    let mover = &mut scenario.mover;
    mover.sleep_ns = mover.sleep_ns.max(OFTEN_NS);
    mover.flush_ns = mover.flush_ns.min(LONG_NS);
    mover.move_ns = mover.move_ns.min(LONG_NS);
    for source in &mut scenario.sources {
        match source {
            Source::Sampling(sampling) => sampling.period = sampling.period.max(50),
            Source::Hints(scan) => {
                scan.delay_ns = scan.delay_ns.max(OFTEN_NS);
                scan.period_min_ns = scan.period_min_ns.max(OFTEN_NS);
                scan.period_ns = scan.period_ns.max(scan.period_min_ns);
                scan.period_max_ns = scan.period_max_ns.max(scan.period_ns);
                scan.fault_ns = scan.fault_ns.min(LONG_NS);
            }
            Source::Young(scan) | Source::Written(scan) => {
                scan.period_ns = scan.period_ns.max(OFTEN_NS);
                scan.stall_ps = scan.stall_ps.min(LONG_NS);
            }
        }
    }
    shorten(&mut scenario.curve);
    Some(scenario)
}

/// A curve by which so many accesses take a few seconds at most.
fn shorten(curve: &mut Curve) {
    const SECONDS: f64 = 10.0;
    let by = |longest: f64| if longest > SECONDS { SECONDS / longest } else { 1.0 };
    match curve {
        Curve::Power { fast, lower, remote } => {
            let levels = lower.iter().chain(remote.as_ref());
            let by = by(levels.map(|level| level.seconds).fold(*fast, f64::max));
            *fast *= by;
            lower.iter_mut().chain(remote).for_each(|level| level.seconds *= by);
        }
        Curve::Table(points) => {
            let by = by(points.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max));
            for (_, seconds) in points {
                *seconds *= by;
            }
        }
        Curve::Physical { tiers, remote_ns, in_flight, think_ns } => {
            for time in tiers.iter_mut().map(|tier| &mut tier.idle_ns).chain([remote_ns, think_ns])
            {
                *time = time.min(10_000.0);
            }
            for tier in tiers {
                tier.bytes_per_second = tier.bytes_per_second.max(1e6);
                tier.write_weight = tier.write_weight.min(10.0);
            }
            *in_flight = in_flight.max(0.1);
        }
    }
}

fn run(preset: &Preset, run: &Run) {
    let Ok(scenario) = scenario(run, preset.seed, None) else { return };
    if check(&scenario).is_err() {
        return;
    }
    let Some(scenario) = small(scenario) else { return };
    let Ok(outcome) = simulate(&scenario) else { return };
    assert_eq!(outcome.placed.iter().sum::<u64>(), scenario.pages);
    assert_eq!(outcome.accesses, scenario.accesses);
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Some(text) = written(input, edited) else { return };
    let Ok(preset) = preset::parse(&text) else { return };
    for one in preset.runs.iter().take(4) {
        for (_, constant) in one.constants() {
            assert!(constant.value.is_finite() && constant.value >= 0.0);
        }
        run(&preset, one);
    }
});

/// The presets, and changes of each.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        PRESETS.iter().map(|(_, text)| [b"\0", text.as_bytes()].concat()).collect();
    seeds.extend((1..40).map(|step| (0..60_u8).map(|byte| byte.wrapping_mul(step) | 1).collect()));
    seeds
}
