//! Whether a scenario makes sense, before anything runs.
//!
//! The one idea: every refusal is a sentence that names the field and says what would be accepted.

use super::{
    curve::{Curve, Level},
    scenario::{BitScan, HintScan, Mover, Placement, Sampling, Scenario, Source, Tiers, Work},
};
use crate::{MILLISECOND, policy::Needs};

/// The most pages: their numbers and a bit are kept in 32 bits.
const PAGES_MAX: u64 = 1 << 31;
/// Accesses are counted in floats, which are exact up to here.
const ACCESSES_MAX: u64 = 1 << 53;
/// The longest time of any setting: one day.
const LONG: u64 = 86_400_000 * MILLISECOND;

/// Refuses what cannot be simulated.
///
/// # Errors
/// A sentence that names the field and what would be accepted.
pub fn check(scenario: &Scenario) -> Result<(), String> {
    let pages = work(scenario)?;
    tiers(&scenario.tiers, pages)?;
    curve(&scenario.curve, &scenario.tiers)?;
    mover(&scenario.mover)?;
    limit("sample_ns", scenario.costs.sample_ns, 0, LONG)?;
    let mut kinds = Vec::new();
    for source in &scenario.sources {
        let kind = std::mem::discriminant(source);
        if kinds.contains(&kind) {
            return Err("a source is given twice: one of each kind at most".into());
        }
        kinds.push(kind);
        match source {
            Source::Sampling(sampling) => self::sampling(sampling)?,
            Source::Hints(scan) => hints(scan)?,
            Source::Young(scan) | Source::Written(scan) => bits(scan)?,
        }
    }
    let policy = &scenario.policy;
    let has = |wanted: fn(&Source) -> bool| scenario.sources.iter().any(wanted);
    let (missing, cure) = match policy.row().needs {
        Needs::Samples => (scenario.sources.is_empty(), "sampling, hint faults or a scan"),
        Needs::Faults => (!has(|source| matches!(source, Source::Hints(_))), "hint faults"),
        Needs::Nothing | Needs::Young | Needs::Future => (false, ""),
    };
    if missing {
        return Err(format!(
            "policy `{}` sees nothing: it needs {cure} as a source",
            policy.name()
        ));
    }
    Ok(())
}

fn limit(name: &str, value: u64, min: u64, max: u64) -> Result<(), String> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(format!("`{name}` is {value}: it must be {min} to {max}"))
}

fn share(name: &str, value: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(format!("`{name}` is {value}: a share is from 0 to 1"))
}

/// The program; returns its pages.
fn work(scenario: &Scenario) -> Result<u64, String> {
    limit("threads", u64::from(scenario.threads), 1, 1 << 20)?;
    share("stores", scenario.stores)?;
    limit("rows", scenario.rows as u64, 0, 1 << 20)?;
    match &scenario.work {
        Work::Trace(trace) => {
            if !trace.is_finished() {
                return Err("the trace was not finished: call `finish` on it".into());
            }
            limit("pages", scenario.pages, 0, 0)?;
            limit("accesses", scenario.accesses, 0, ACCESSES_MAX)?;
            Ok(u64::from(trace.pages()))
        }
        Work::Generated(_) => {
            limit("pages", scenario.pages, 1, PAGES_MAX)?;
            limit("accesses", scenario.accesses, 1, ACCESSES_MAX)?;
            Ok(scenario.pages)
        }
    }
}

fn tiers(tiers: &Tiers, pages: u64) -> Result<(), String> {
    let Tiers { nodes, start, locality } = tiers;
    share("locality", *locality)?;
    limit("nodes", nodes.len() as u64, 2, 64)?;
    let lowest = nodes.iter().map(|node| node.tier).max().unwrap_or(0);
    for tier in 0..=lowest {
        if !nodes.iter().any(|node| node.tier == tier) {
            return Err(format!("no node is in tier {tier}, but one is in tier {lowest}"));
        }
    }
    if lowest == 0 {
        return Err("all nodes are in tier 0: nothing can be promoted".into());
    }
    limit("tiers", u64::from(lowest) + 1, 2, 4)?;
    if let Some(at) = nodes.iter().position(|node| node.cpus && node.tier > 0) {
        return Err(format!("node {at} has processors but is not in tier 0"));
    }
    for node in nodes {
        limit("pages of a node", node.pages, 0, ACCESSES_MAX)?;
    }
    let room: u64 = nodes.iter().map(|node| node.pages).sum();
    if room < pages {
        return Err(format!("the nodes have room for {room} pages, the program needs {pages}"));
    }
    match start {
        Placement::Node(node) if usize::from(*node) >= nodes.len() => {
            Err(format!("pages start on node {node}, but the last one is {}", nodes.len() - 1))
        }
        Placement::Weighted(weights) if weights.len() != nodes.len() => {
            Err(format!("{} weights for {} nodes", weights.len(), nodes.len()))
        }
        Placement::Weighted(weights) if weights.iter().all(|&weight| weight == 0) => {
            Err("every weight is 0: pages start nowhere".into())
        }
        Placement::Weighted(weights) => {
            weights.iter().try_for_each(|&weight| limit("weight", u64::from(weight), 0, 255))
        }
        _ => Ok(()),
    }
}

fn positive(name: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(format!("`{name}` is {value}: it must be more than 0"))
}

fn level(name: &str, level: Level, fast: f64) -> Result<(), String> {
    positive(name, level.seconds)?;
    if level.seconds < fast {
        return Err(format!("`{name}` takes {} s, the top tier {fast}: no slower", level.seconds));
    }
    if !(1.0..=100.0).contains(&level.exponent) {
        return Err(format!("`exponent` of `{name}` is {}: it is 1 to 100", level.exponent));
    }
    Ok(())
}

fn curve(curve: &Curve, tiers: &Tiers) -> Result<(), String> {
    let lowest = usize::from(tiers.nodes.iter().map(|node| node.tier).max().unwrap_or(0));
    match curve {
        Curve::Power { fast, lower, remote } => {
            positive("fast", *fast)?;
            if lower.len() != lowest {
                return Err(format!("the curve has {} lower tiers, not {lowest}", lower.len()));
            }
            lower.iter().try_for_each(|&lower| level("lower", lower, *fast))?;
            remote.iter().try_for_each(|&remote| level("remote", remote, *fast))
        }
        Curve::Table(points) => {
            limit("points of the curve", points.len() as u64, 2, 10_000)?;
            if lowest != 1 {
                return Err("a table of points is for two tiers".into());
            }
            for &(at, seconds) in points {
                share("share of a point", at)?;
                positive("seconds of a point", seconds)?;
            }
            let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let monotone = points.windows(2).all(|pair| pair[0].1 <= pair[1].1);
            if !rises || !monotone {
                return Err("points must rise in share, and not fall in seconds".into());
            }
            Ok(())
        }
        Curve::Physical { tiers, remote_ns, in_flight, think_ns } => {
            if tiers.len() != lowest + 1 {
                return Err(format!("the curve has {} tiers, not {}", tiers.len(), lowest + 1));
            }
            positive("in_flight", *in_flight)?;
            for (name, value) in [("remote_ns", *remote_ns), ("think_ns", *think_ns)] {
                if !(0.0..1e9).contains(&value) {
                    return Err(format!("`{name}` is {value}: it must be 0 or more"));
                }
            }
            for tier in tiers {
                positive("idle_ns", tier.idle_ns)?;
                positive("bytes_per_second", tier.bytes_per_second)?;
                if !(0.0..=100.0).contains(&tier.write_weight) {
                    return Err(format!("`write_weight` is {}: 0 to 100", tier.write_weight));
                }
            }
            Ok(())
        }
    }
}

fn sampling(sampling: &Sampling) -> Result<(), String> {
    limit("period", sampling.period, 1, ACCESSES_MAX)?;
    share("loss", sampling.loss)?;
    share("bias", sampling.bias)?;
    share("hits", sampling.hits)?;
    if !(0.0..=1e9).contains(&sampling.latency_min_ns) {
        return Err(format!("`latency_min_ns` is {}: 0 to a second", sampling.latency_min_ns));
    }
    if sampling.period_min > sampling.period_max {
        let Sampling { period_min, period_max, .. } = sampling;
        return Err(format!("`period_min` is {period_min}, above `period_max`, {period_max}"));
    }
    let shortest = if sampling.period_min == 0 { sampling.period } else { sampling.period_min };
    limit("jitter", sampling.jitter, 0, shortest - 1)?;
    if sampling.ring > 0 {
        limit("drain_ns", sampling.drain_ns, 1, LONG)?;
    }
    Ok(())
}

fn hints(scan: &HintScan) -> Result<(), String> {
    limit("delay_ns", scan.delay_ns, 0, LONG)?;
    limit("period_ns", scan.period_ns, MILLISECOND, LONG)?;
    limit("period_min_ns", scan.period_min_ns, MILLISECOND, LONG)?;
    limit("period_max_ns", scan.period_max_ns, scan.period_min_ns, LONG)?;
    limit("updates", scan.updates, 1, PAGES_MAX)?;
    limit("virtual_pages", scan.virtual_pages, 1, PAGES_MAX)?;
    limit("chunk", scan.chunk, 1, PAGES_MAX)?;
    limit("fault_ns", scan.fault_ns, 0, LONG)?;
    limit("duplicate_ns", scan.duplicate_ns, 0, LONG)?;
    share("private", scan.private)?;
    share("failure of a fault", scan.failure)
}

fn bits(scan: &BitScan) -> Result<(), String> {
    limit("period_ns of a scan", scan.period_ns, MILLISECOND, LONG)?;
    limit("page_ps", scan.page_ps, 0, LONG)?;
    limit("stall_ps", scan.stall_ps, 0, LONG)
}

fn mover(mover: &Mover) -> Result<(), String> {
    limit("sleep_ns", mover.sleep_ns, MILLISECOND, LONG)?;
    limit("move_ns", mover.move_ns, 0, LONG)?;
    limit("walk_ps", mover.walk_ps, 0, LONG)?;
    limit("flush_ns", mover.flush_ns, 0, LONG)?;
    limit("batch", u64::from(mover.batch), 1, PAGES_MAX)?;
    share("failure of a move", mover.failure)?;
    if !(0.0..=1e9).contains(&mover.copy_accesses) {
        return Err(format!("`copy_accesses` is {}: 0 or more", mover.copy_accesses));
    }
    match mover.limit {
        Some(0) => {
            Err("the rate limit is 0 bytes a second: nothing would ever move; leave it out \
                        for no limit, or take the policy `none`"
                .into())
        }
        _ => Ok(()),
    }
}
