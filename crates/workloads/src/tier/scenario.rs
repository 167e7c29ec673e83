//! From the settings of a run to what the simulator takes.
//!
//! The one idea: units and defaults are resolved here and nowhere else. What belongs to a machine
//! must be said; what belongs to the kernel has the kernel's default; what makes no sense is
//! refused by the simulator, in its own words.

use std::sync::Arc;

use pagelab_tier::{
    Curve, Scenario, Source, Tiers, Work, WorkSpec,
    policy::{Needs, Node},
    sim::{BitScan, Costs, HintScan, Level, Loaded, Mover, Placement, Sampling, TraceWork},
};

use super::{
    constant::Constant,
    preset::{Run, Settings, SourceName, Start},
    section::{Bits, Hints, Samples},
};

/// Bytes of a page where nobody says otherwise.
const PAGE: f64 = 4096.0;
/// The number that has to be said without `l3miss-only`.
const OPERATIONS: &str = "[sampling] operations";
/// Rows of a time series: enough for a chart, little for a record.
const ROWS: usize = 200;
/// Bytes that one scan of the kernel changes: `scan_size`.
const SCAN_BYTES: f64 = 256.0 * 1_048_576.0;
/// Seconds to copy a page of 4 KiB where nobody says: 3.3 GB/s.
const COPY: f64 = 1.24e-6;

/// What the simulator takes for a run; the trace, where it has one, was read before.
///
/// # Errors
/// A sentence that names what is missing.
pub fn scenario(run: &Run, seed: u64, trace: Option<Arc<TraceWork>>) -> Result<Scenario, String> {
    let settings = &run.settings;
    let page = or(settings.memory.page.as_ref(), PAGE);
    if page < 1.0 {
        return Err("[memory] page is 0".to_owned());
    }
    let (work, pages) = if let Some(trace) = trace {
        let pages = u64::from(trace.pages());
        (Work::Trace(trace), pages)
    } else {
        let size = need(settings.memory.size.as_ref(), "[memory] size")?;
        let spec = match &settings.generator {
            Some(choice) => choice.spec.clone(),
            None => WorkSpec::parse("uniform")?,
        };
        (Work::Generated(spec), whole(size / page))
    };
    let is_trace = matches!(work, Work::Trace(_));
    let accesses =
        if is_trace { 0 } else { whole(need(settings.work.accesses.as_ref(), "[work] accesses")?) };
    let tiers = tiers(settings, pages, page)?;
    let curve = curve(settings, &tiers)?;
    Ok(Scenario {
        seed,
        work,
        pages: if is_trace { 0 } else { pages },
        accesses,
        threads: small(or(settings.work.threads.as_ref(), 1.0)),
        stores: or(settings.work.stores.as_ref(), 0.0),
        tiers,
        curve,
        sources: sources(run, pages, page)?,
        policy: run.policy.spec.clone(),
        mover: mover(settings, page)?,
        costs: Costs { sample_ns: ns(settings.sampling.cost.as_ref(), 0.0) },
        rows: ROWS,
    })
}

fn tiers(settings: &Settings, pages: u64, page: f64) -> Result<Tiers, String> {
    let memory = &settings.memory;
    let fast = whole(need(memory.fast.as_ref(), "[memory] fast")? / page);
    let nodes = whole(or(memory.fast_nodes.as_ref(), 1.0));
    if nodes == 0 || nodes > 8 {
        return Err(format!("[memory] fast-nodes is {nodes}: from 1 to 8 nodes have processors"));
    }
    if fast < nodes {
        return Err("[memory] fast is less than a page: a tier without memory is none".to_owned());
    }
    let top = |index: u64| {
        let share = fast / nodes + u64::from(index < fast % nodes);
        Node { tier: 0, pages: share, cpus: true }
    };
    let mut all: Vec<Node> = (0..nodes).map(top).collect();
    if let Some(middle) = &memory.middle {
        all.push(Node { tier: 1, pages: whole(middle.value / page), cpus: false });
    }
    let lowest = if memory.middle.is_some() { 2 } else { 1 };
    all.push(Node { tier: lowest, pages, cpus: false });
    let start = match settings.start.unwrap_or(Start::Slow) {
        Start::Slow => Placement::Node(u8::try_from(all.len() - 1).unwrap_or(u8::MAX)),
        Start::Fast => Placement::Fill,
        Start::Interleaved => Placement::Weighted(vec![1; all.len()]),
    };
    Ok(Tiers { nodes: all, start, locality: or(memory.locality.as_ref(), 1.0) })
}

fn curve(settings: &Settings, tiers: &Tiers) -> Result<Curve, String> {
    let (ends, physical) = (&settings.curve, &settings.physical);
    if let Some(points) = &settings.points {
        return Ok(Curve::Table(points.clone()));
    }
    if physical.fast_latency.is_some() {
        let write_weight = or(physical.write_weight.as_ref(), 1.0);
        let tier = |latency, bandwidth| Loaded {
            idle_ns: latency * 1e9,
            bytes_per_second: bandwidth,
            write_weight,
        };
        let name = |name: &str| format!("[physical] {name}");
        return Ok(Curve::Physical {
            tiers: vec![
                tier(
                    need(physical.fast_latency.as_ref(), &name("fast-latency"))?,
                    need(physical.fast_bandwidth.as_ref(), &name("fast-bandwidth"))?,
                ),
                tier(
                    need(physical.slow_latency.as_ref(), &name("slow-latency"))?,
                    need(physical.slow_bandwidth.as_ref(), &name("slow-bandwidth"))?,
                ),
            ],
            remote_ns: or(physical.remote_latency.as_ref(), 0.0) * 1e9,
            in_flight: or(physical.in_flight.as_ref(), 1.0),
            think_ns: or(physical.think.as_ref(), 0.0) * 1e9,
        });
    }
    let exponent = or(ends.exponent.as_ref(), 1.0);
    let fast = need(ends.fast.as_ref(), "[curve] fast")?;
    let level = |seconds, exponent| Level { seconds, exponent };
    let mut lower = vec![level(need(ends.slow.as_ref(), "[curve] slow")?, exponent)];
    if tiers.nodes.iter().any(|node| node.tier == 2) {
        lower.insert(0, level(need(ends.middle.as_ref(), "[curve] middle")?, exponent));
    }
    // One's own nodes wait for each other less than one link does.
    let remote = ends.remote.as_ref().map(|remote| level(remote.value, 1.0));
    Ok(Curve::Power { fast, lower, remote })
}

fn sources(run: &Run, pages: u64, page: f64) -> Result<Vec<Source>, String> {
    let settings = &run.settings;
    let by_need = match run.policy.spec.row().needs {
        Needs::Samples => vec![SourceName::Sampling],
        Needs::Faults => vec![SourceName::Hints],
        Needs::Nothing | Needs::Young | Needs::Future => Vec::new(),
    };
    let wanted = settings.sources.clone().unwrap_or(by_need);
    let source = |name: &SourceName| {
        Ok(match name {
            SourceName::Sampling => Source::Sampling(sampling(&settings.sampling)?),
            SourceName::Hints => Source::Hints(hints(&settings.hints, pages, page)),
            SourceName::Young => Source::Young(bits(&settings.young, "[young]")?),
            SourceName::Written => Source::Written(bits(&settings.written, "[written]")?),
        })
    };
    wanted.iter().map(source).collect()
}

fn sampling(samples: &Samples) -> Result<Sampling, String> {
    // The hardware counts operations, the simulator accesses that miss.
    let is_miss_only = or(samples.l3miss_only.as_ref(), 1.0) > 0.0;
    let operations =
        if is_miss_only { 1.0 } else { need(samples.operations.as_ref(), OPERATIONS)? };
    if operations < 1.0 {
        return Err(format!("{OPERATIONS} is {operations}: an access that misses is one itself"));
    }
    let accesses = |constant: &Option<Constant>| or(constant.as_ref(), 0.0) / operations;
    let period = need(samples.period.as_ref(), "[sampling] period")? / operations;
    Ok(Sampling {
        // More operations than a period has make every access a sample, not more.
        period: if operations > 1.0 { whole(period).max(1) } else { whole(period) },
        period_min: whole(accesses(&samples.period_min)),
        period_max: whole(accesses(&samples.period_max)),
        jitter: whole(accesses(&samples.jitter)),
        loss: or(samples.loss.as_ref(), 0.0),
        ring: whole(or(samples.ring.as_ref(), 0.0)),
        drain_ns: ns(samples.drain.as_ref(), 0.0),
        bias: or(samples.bias.as_ref(), 1.0),
        loads_only: or(samples.loads_only.as_ref(), 0.0) > 0.0,
        hits: 1.0 - 1.0 / operations,
        latency_min_ns: latency_min_ns(samples)?,
    })
}

/// The load-latency filter of the IBS memory profiler: steps of 128 cycles.
fn latency_min_ns(samples: &Samples) -> Result<f64, String> {
    if or(samples.lat_filter.as_ref(), 0.0) <= 0.0 {
        return Ok(0.0);
    }
    let threshold = or(samples.lat_thresh.as_ref(), 0.0);
    if threshold > 15.0 {
        return Err(format!("[sampling] lat-thresh is {threshold}: 0 to 15 steps of 128 cycles"));
    }
    let ghz = need(samples.ghz.as_ref(), "[sampling] ghz")?;
    if ghz <= 0.0 {
        return Err("[sampling] ghz is 0: no load would ever be long enough".to_owned());
    }
    Ok((threshold + 1.0) * 128.0 / ghz)
}

fn hints(hints: &Hints, pages: u64, page: f64) -> HintScan {
    // The kernel counts what a scan changes in base pages, whatever their mapping.
    let updates = whole(or(hints.updates.as_ref(), SCAN_BYTES / page)).max(1);
    let kernel = HintScan::kernel(pages);
    let floor = HintScan::floor_ns(pages, 1_000_000_000, updates).max(100_000_000);
    HintScan {
        delay_ns: ns(hints.delay.as_ref(), 1.0),
        period_ns: ns(hints.period.as_ref(), 1.0),
        period_min_ns: hints.period_min.as_ref().map_or(floor, |min| nanoseconds(min.value)),
        period_max_ns: ns(hints.period_max.as_ref(), 60.0),
        adapts: hints.adapts.as_ref().map_or(kernel.adapts, |adapts| adapts.value > 0.0),
        private: or(hints.private.as_ref(), kernel.private),
        updates,
        virtual_pages: whole(or(hints.virtual_pages.as_ref(), updates as f64 * 8.0)),
        chunk: whole(or(hints.chunk.as_ref(), (kernel.chunk as f64 * PAGE / page).max(1.0))),
        failure: or(hints.failure.as_ref(), 0.0),
        duplicate_ns: ns(hints.duplicate.as_ref(), 0.0),
        fault_ns: ns(hints.fault.as_ref(), 0.0),
    }
}

fn bits(bits: &Bits, table: &str) -> Result<BitScan, String> {
    let picoseconds = |constant: &Option<Constant>| whole(or(constant.as_ref(), 0.0) * 1e12);
    Ok(BitScan {
        period_ns: nanoseconds(need(bits.period.as_ref(), &format!("{table} period"))?),
        page_ps: picoseconds(&bits.page),
        stall_ps: picoseconds(&bits.stall),
    })
}

fn mover(settings: &Settings, page: f64) -> Result<Mover, String> {
    let daemon = &settings.mover;
    let kernel = Mover::kernel(ns(daemon.copy.as_ref(), COPY * (page / PAGE)));
    let limit = match &daemon.rate_limit {
        Some(limit) if limit.value < page => {
            return Err(format!(
                "[mover] rate-limit is {} bytes a second: nothing could ever move; leave it out \
                 for no limit",
                limit.value
            ));
        }
        limit => limit.as_ref().map(|limit| whole(limit.value * PAGE / page)),
    };
    Ok(Mover {
        sleep_ns: ns(daemon.sleep.as_ref(), 0.1),
        walk_ps: whole(or(daemon.walk.as_ref(), 0.0) * 1e12),
        batch: small(or(daemon.batch.as_ref(), f64::from(kernel.batch))),
        failure: or(daemon.failure.as_ref(), 0.0),
        limit,
        flush_ns: ns(daemon.flush.as_ref(), 0.0),
        copy_accesses: or(daemon.copy_accesses.as_ref(), 0.0),
        ping_pong_ns: ns(daemon.ping_pong.as_ref(), kernel.ping_pong_ns as f64 * 1e-9),
        ..kernel
    })
}

/// The number of a constant, where the file must have it.
fn need(constant: Option<&Constant>, name: &str) -> Result<f64, String> {
    constant
        .map(|constant| constant.value)
        .ok_or_else(|| format!("{name} is missing: it belongs to the machine, and has no default"))
}

fn or(constant: Option<&Constant>, default: f64) -> f64 {
    constant.map_or(default, |constant| constant.value)
}

fn ns(constant: Option<&Constant>, default_s: f64) -> u64 {
    nanoseconds(or(constant, default_s))
}

/// Seconds as nanoseconds, to the nearest.
pub fn nanoseconds(seconds: f64) -> u64 {
    whole(seconds * 1e9)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "constants are 0 or more; a larger one than fits is the largest"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn small(number: f64) -> u32 {
    u32::try_from(whole(number)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
