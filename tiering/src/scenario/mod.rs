//! From the settings of a run to what the simulator takes.
//!
//! The one idea: units and defaults are resolved here and nowhere else. What belongs to a machine
//! must be said; what belongs to the kernel has the kernel's default; what makes no sense is
//! refused by the simulator, in its own words.

use std::sync::Arc;

use pagelab_record::units;
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
    let page = settings.memory.page.value_or(PAGE);
    if page < 1.0 {
        return Err("[memory] page is 0".to_owned());
    }
    let (work, pages) = if let Some(trace) = trace {
        let pages = u64::from(trace.pages());
        (Work::Trace(trace), pages)
    } else {
        let size = settings.memory.size.needed("[memory] size")?;
        let spec = match &settings.generator {
            Some(choice) => choice.spec.clone(),
            None => WorkSpec::parse("uniform")?,
        };
        (Work::Generated(spec), whole(size / page))
    };
    let is_trace = matches!(work, Work::Trace(_));
    let accesses =
        if is_trace { 0 } else { whole(settings.work.accesses.needed("[work] accesses")?) };
    let tiers = tiers(settings, pages, page)?;
    let curve = curve(settings, &tiers)?;
    Ok(Scenario {
        seed,
        work,
        pages: if is_trace { 0 } else { pages },
        accesses,
        threads: small(settings.work.threads.value_or(1.0)),
        stores: settings.work.stores.value_or(0.0),
        tiers,
        curve,
        sources: sources(run, pages, page)?,
        policy: run.policy.spec.clone(),
        mover: mover(settings, page)?,
        costs: Costs { sample_ns: settings.sampling.cost.ns_or(0.0) },
        rows: ROWS,
    })
}

fn tiers(settings: &Settings, pages: u64, page: f64) -> Result<Tiers, String> {
    let memory = &settings.memory;
    let fast = whole(memory.fast.needed("[memory] fast")? / page);
    let nodes = whole(memory.fast_nodes.value_or(1.0));
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
    Ok(Tiers { nodes: all, start, locality: memory.locality.value_or(1.0) })
}

fn curve(settings: &Settings, tiers: &Tiers) -> Result<Curve, String> {
    let (ends, physical) = (&settings.curve, &settings.physical);
    if let Some(points) = &settings.points {
        return Ok(Curve::Table(points.clone()));
    }
    if physical.fast_latency.is_some() {
        let write_weight = physical.write_weight.value_or(1.0);
        let tier = |latency, bandwidth| Loaded {
            idle_ns: latency * 1e9,
            bytes_per_second: bandwidth,
            write_weight,
        };
        let name = |name: &str| format!("[physical] {name}");
        return Ok(Curve::Physical {
            tiers: vec![
                tier(
                    physical.fast_latency.needed(&name("fast-latency"))?,
                    physical.fast_bandwidth.needed(&name("fast-bandwidth"))?,
                ),
                tier(
                    physical.slow_latency.needed(&name("slow-latency"))?,
                    physical.slow_bandwidth.needed(&name("slow-bandwidth"))?,
                ),
            ],
            remote_ns: physical.remote_latency.value_or(0.0) * 1e9,
            in_flight: physical.in_flight.value_or(1.0),
            think_ns: physical.think.value_or(0.0) * 1e9,
        });
    }
    let exponent = ends.exponent.value_or(1.0);
    let fast = ends.fast.needed("[curve] fast")?;
    let level = |seconds, exponent| Level { seconds, exponent };
    let mut lower = vec![level(ends.slow.needed("[curve] slow")?, exponent)];
    if tiers.nodes.iter().any(|node| node.tier == 2) {
        lower.insert(0, level(ends.middle.needed("[curve] middle")?, exponent));
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
    let is_miss_only = samples.l3miss_only.value_or(1.0) > 0.0;
    let operations = if is_miss_only { 1.0 } else { samples.operations.needed(OPERATIONS)? };
    if operations < 1.0 {
        return Err(format!("{OPERATIONS} is {operations}: an access that misses is one itself"));
    }
    let accesses = |constant: &Option<Constant>| constant.value_or(0.0) / operations;
    let period = samples.period.needed("[sampling] period")? / operations;
    Ok(Sampling {
        // More operations than a period has make every access a sample, not more.
        period: if operations > 1.0 { whole(period).max(1) } else { whole(period) },
        period_min: whole(accesses(&samples.period_min)),
        period_max: whole(accesses(&samples.period_max)),
        jitter: whole(accesses(&samples.jitter)),
        loss: samples.loss.value_or(0.0),
        ring: whole(samples.ring.value_or(0.0)),
        drain_ns: samples.drain.ns_or(0.0),
        bias: samples.bias.value_or(1.0),
        loads_only: samples.loads_only.value_or(0.0) > 0.0,
        hits: 1.0 - 1.0 / operations,
        latency_min_ns: latency_min_ns(samples)?,
    })
}

/// The load-latency filter of the IBS memory profiler: steps of 128 cycles.
fn latency_min_ns(samples: &Samples) -> Result<f64, String> {
    if samples.lat_filter.value_or(0.0) <= 0.0 {
        return Ok(0.0);
    }
    let threshold = samples.lat_thresh.value_or(0.0);
    if threshold > 15.0 {
        return Err(format!("[sampling] lat-thresh is {threshold}: 0 to 15 steps of 128 cycles"));
    }
    let ghz = samples.ghz.needed("[sampling] ghz")?;
    if ghz <= 0.0 {
        return Err("[sampling] ghz is 0: no load would ever be long enough".to_owned());
    }
    Ok((threshold + 1.0) * 128.0 / ghz)
}

fn hints(hints: &Hints, pages: u64, page: f64) -> HintScan {
    // The kernel counts what a scan changes in base pages, whatever their mapping.
    let updates = whole(hints.updates.value_or(SCAN_BYTES / page)).max(1);
    let kernel = HintScan::kernel(pages);
    let floor = HintScan::floor_ns(pages, 1_000_000_000, updates).max(100_000_000);
    HintScan {
        delay_ns: hints.delay.ns_or(1.0),
        period_ns: hints.period.ns_or(1.0),
        period_min_ns: hints.period_min.as_ref().map_or(floor, |min| nanoseconds(min.value)),
        period_max_ns: hints.period_max.ns_or(60.0),
        adapts: hints.adapts.as_ref().map_or(kernel.adapts, |adapts| adapts.value > 0.0),
        private: hints.private.value_or(kernel.private),
        updates,
        virtual_pages: whole(hints.virtual_pages.value_or(updates as f64 * 8.0)),
        chunk: whole(hints.chunk.value_or((kernel.chunk as f64 * PAGE / page).max(1.0))),
        failure: hints.failure.value_or(0.0),
        duplicate_ns: hints.duplicate.ns_or(0.0),
        fault_ns: hints.fault.ns_or(0.0),
    }
}

fn bits(bits: &Bits, table: &str) -> Result<BitScan, String> {
    let picoseconds = |constant: &Option<Constant>| whole(constant.value_or(0.0) * 1e12);
    Ok(BitScan {
        period_ns: nanoseconds(bits.period.needed(&format!("{table} period"))?),
        page_ps: picoseconds(&bits.page),
        stall_ps: picoseconds(&bits.stall),
    })
}

fn mover(settings: &Settings, page: f64) -> Result<Mover, String> {
    let daemon = &settings.mover;
    let kernel = Mover::kernel(daemon.copy.ns_or(COPY * (page / PAGE)));
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
        sleep_ns: daemon.sleep.ns_or(0.1),
        walk_ps: whole(daemon.walk.value_or(0.0) * 1e12),
        batch: small(daemon.batch.value_or(f64::from(kernel.batch))),
        failure: daemon.failure.value_or(0.0),
        limit,
        flush_ns: daemon.flush.ns_or(0.0),
        copy_accesses: daemon.copy_accesses.value_or(0.0),
        ping_pong_ns: daemon.ping_pong.ns_or(kernel.ping_pong_ns as f64 * 1e-9),
        ..kernel
    })
}

/// A number that a file may leave out.
trait Said {
    fn value_or(&self, default: f64) -> f64;

    /// Seconds, as nanoseconds.
    fn ns_or(&self, default_s: f64) -> u64 {
        nanoseconds(self.value_or(default_s))
    }

    /// The number, where the file must have it.
    fn needed(&self, name: &str) -> Result<f64, String>;
}

impl Said for Option<Constant> {
    fn value_or(&self, default: f64) -> f64 {
        self.as_ref().map_or(default, |constant| constant.value)
    }

    fn needed(&self, name: &str) -> Result<f64, String> {
        self.as_ref().map(|constant| constant.value).ok_or_else(|| {
            format!("{name} is missing: it belongs to the machine, and has no default")
        })
    }
}

/// Seconds as nanoseconds, to the nearest.
pub fn nanoseconds(seconds: f64) -> u64 {
    whole(seconds * 1e9)
}

/// To the nearest; constants are 0 or more.
pub(super) fn whole(number: f64) -> u64 {
    units::whole(number.round())
}

fn small(number: f64) -> u32 {
    u32::try_from(whole(number)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
