//! `tier/simulation`: what a policy would do with the pages of a machine that is described.
//!
//! Each run of a scenario is an arm, simulated once: the result is a function of the scenario, so a
//! repetition would say nothing. All arms are simulated together, on all processors. The times are
//! the model's; what simulating all of them took is filed under the first as `simulate`, so that a
//! record says what asking costs.
//!
//! The proof is conservation: pages, accesses, and what was promoted and demoted, add up.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Meter, Need, Needed, Read, Trial, Witness, needs::Memory,
};
use pagelab_emulation::trace::{
    Source,
    stream::{EMPTY, Stream},
};
use pagelab_record::{Case, schema, units::whole, vocabulary::Check};
use pagelab_sys::process::Pulse;
use pagelab_tier::{
    Outcome, Scenario, Work,
    sim::{TraceWork, check},
    simulate,
};
use pagelab_trace::Visit;

use super::{
    compare, params,
    params::Planned,
    preset::{Preset, Run},
    scenario::scenario,
    tables,
};

/// Bytes that a simulated page takes at most, in all tables of the simulator.
const PAGE_BYTES: u64 = 128;
/// Bytes of everything else.
const BASE_BYTES: u64 = 32 << 20;
/// Bytes of a fetch in a raw trace.
const FETCH_BYTES: usize = 2;
/// Operations of a generated trace when nobody says how many.
const TRACE_OPS: u64 = 1_000_000;

/// See the module's documentation.
pub const SIMULATION: Described<Asked> = Described {
    refuse: Asked::refuse,
    refuses: &[
        ("a scenario that lacks a number of its machine", "it has no default: say it"),
        ("tiers without memory, or too small for the pages", "the last tier takes the rest"),
        ("a rate limit below one page a second", "leave it out for no limit"),
    ],
    ..Described::new(
        "tier/simulation",
        "which pages a tiering policy would move, and what that would be worth: a model",
        params::PARAMS,
        &[("size", "16m"), ("fast", "50%"), ("accesses", "100m")],
        Asked::of,
    )
    .model()
};

impl Asked {
    fn of(case: &Case) -> Self {
        let plan = params::plan(case).map(|(preset, runs)| (Rc::new(preset), runs));
        let scenarios = plan.as_ref().map_or_else(
            |_| Vec::new(),
            |(preset, runs)| {
                let generated = runs.iter().filter(|planned| planned.run.settings.trace.is_none());
                generated.filter_map(|planned| build(preset, planned, None).ok()).collect()
            },
        );
        Self { plan, scenarios, ops: case.number("trace-ops") }
    }

    fn refuse(&self) -> Result<(), String> {
        let (preset, runs) = self.plan.as_ref().map_err(Clone::clone)?;
        for planned in runs {
            // A trace is read by the case's own process.
            if planned.run.settings.trace.is_none() {
                let source = &planned.run.source;
                let named = |why: String| format!("{}, {source}: {why}", preset.name);
                let scenario = build(preset, planned, None).map_err(named)?;
                check(&scenario).map_err(named)?;
            }
        }
        Ok(())
    }
}

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    plan: Result<(Rc<Preset>, Vec<Planned>), String>,
    /// What is simulated without a trace; those that make sense.
    scenarios: Vec<Scenario>,
    /// Operations of the trace.
    ops: Option<u64>,
}

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        vec![Memory(self.footprint()).needed()]
    }

    fn footprint(&self) -> u64 {
        let pages = self.scenarios.iter().map(|scenario| scenario.pages).max().unwrap_or(0);
        let at_once = self.scenarios.len().min(processors()) as u64;
        BASE_BYTES + pages.saturating_mul(PAGE_BYTES).saturating_mul(at_once)
    }

    fn seconds(&self) -> f64 {
        // 30 ns for a sample, 100 ns for a page, in each run.
        let of = |scenario: &Scenario| {
            let samples = scenario.sources.iter().map(|source| match source {
                pagelab_tier::Source::Sampling(sampling) => {
                    scenario.accesses as f64 / sampling.period.max(1) as f64
                }
                _ => 0.0,
            });
            samples.sum::<f64>() * 30e-9 + scenario.pages as f64 * 100e-9
        };
        self.scenarios.iter().map(of).sum::<f64>() + 0.01
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let (preset, runs) = self.plan.clone().map_err(Error::Case)?;
        let mut trace: Option<(String, Arc<TraceWork>)> = None;
        let mut together = Vec::new();
        for planned in &runs {
            let work = match &planned.run.settings.trace {
                None => None,
                Some(name) => match &trace {
                    Some((known, work)) if known == name => Some(Arc::clone(work)),
                    _ => {
                        let work = Arc::new(read(name, self.ops, preset.seed, &inputs.pulse)?);
                        trace = Some((name.clone(), Arc::clone(&work)));
                        Some(work)
                    }
                },
            };
            let failed = |why| Error::Case(format!("{}: {why}", planned.run.source));
            together.push(build(&preset, planned, work).map_err(failed)?);
        }
        let batch = Rc::new(Batch { scenarios: together, outcomes: RefCell::default() });
        let trial = |(index, planned)| -> Box<dyn Trial> {
            let (preset, batch) = (Rc::clone(&preset), Rc::clone(&batch));
            Box::new(Simulated { preset, planned, batch, index })
        };
        Ok(runs.into_iter().enumerate().map(trial).collect())
    }
}

/// What the simulator takes for a run.
fn build(
    preset: &Preset,
    planned: &Planned,
    trace: Option<Arc<TraceWork>>,
) -> Result<Scenario, String> {
    scenario(&planned.run, preset.seed, trace)
}

/// Reads a trace for the simulator.
fn read(name: &str, ops: Option<u64>, seed: u64, pulse: &Pulse) -> Result<TraceWork, Error> {
    let source = Source::parse(name).map_err(Error::Case)?;
    let ops = ops.or_else(|| source.is_generated().then_some(TRACE_OPS));
    let mut data = Data(TraceWork::default());
    let stream = Stream { source, ops, seed };
    let streamed = stream.visit(&mut data, pulse).map_err(Error::Case)?;
    if streamed.ops == 0 {
        return Err(Error::Case(format!("{name}: {EMPTY}")));
    }
    data.0.finish().map_err(|why| Error::Case(format!("{name}: {why}")))
}

/// Hands on what accesses data: a load of two bytes fetches an instruction.
struct Data(TraceWork);

impl Visit for Data {
    type Stop = <TraceWork as Visit>::Stop;

    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Self::Stop> {
        if N == FETCH_BYTES { Ok(()) } else { self.0.load::<N>(addr) }
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Self::Stop> {
        self.0.store(addr, value)
    }
}

/// Processors to simulate on.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What comes of a scenario.
type Came = Result<Outcome, String>;

/// The scenarios of a case, simulated together when the first outcome is asked for.
struct Batch {
    scenarios: Vec<Scenario>,
    outcomes: RefCell<Vec<Came>>,
}

impl Batch {
    fn simulate(&self) {
        let slots: Vec<OnceLock<Came>> = self.scenarios.iter().map(|_| OnceLock::new()).collect();
        let (scenarios, next) = (&self.scenarios, AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..scenarios.len().min(processors()) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(scenario) = scenarios.get(index) else { return };
                        slots[index].get_or_init(|| simulate(scenario));
                    }
                });
            }
        });
        let lost = || Err("its thread ended without an answer".to_owned());
        let taken = slots.into_iter().map(OnceLock::into_inner);
        *self.outcomes.borrow_mut() = taken.map(|outcome| outcome.unwrap_or_else(lost)).collect();
    }
}

struct Simulated {
    preset: Rc<Preset>,
    planned: Planned,
    batch: Rc<Batch>,
    index: usize,
}

impl Trial for Simulated {
    fn arm(&self) -> &str {
        &self.planned.run.source
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        if self.batch.outcomes.borrow().is_empty() {
            let span = meter.clock().span(|| self.batch.simulate());
            let elapsed_ns = meter.clock().elapsed_ns(span);
            meter.observe("simulate", meter.elapsed(), 1, 0, elapsed_ns);
        }
        let source = &self.planned.run.source;
        match &self.batch.outcomes.borrow()[self.index] {
            Ok(outcome) => meter.observe("run", schema::Clock::Scripted, 1, 0, outcome.time_ns),
            Err(why) => return Err(Error::Case(format!("{source}: {why}"))),
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let outcomes = self.batch.outcomes.borrow();
        let Some(Ok(outcome)) = outcomes.get(self.index) else { return Ok(()) };
        let (scenario, run) = (&self.batch.scenarios[self.index], &self.planned.run);
        let pages = match &scenario.work {
            Work::Generated(_) => scenario.pages,
            Work::Trace(trace) => u64::from(trace.pages()),
        };
        witness.expect(Check::PagesOnNodes, pages, outcome.placed.iter().sum());
        let accesses = match &scenario.work {
            Work::Generated(_) => scenario.accesses,
            Work::Trace(trace) => trace.ops(),
        };
        witness.expect(Check::AccessesDone, accesses, outcome.accesses);
        let top = |placed: &[u64]| -> u64 {
            let nodes = placed.iter().zip(&scenario.tiers.nodes);
            nodes.filter(|(_, node)| node.tier == 0).map(|(pages, _)| pages).sum()
        };
        if let (Some(first), true) = (outcome.series.first(), scenario.tiers.nodes.len() == 2) {
            let expected = top(&first.placed) + outcome.promoted - outcome.demoted;
            witness.expect(Check::TopTierPages, expected, top(&outcome.placed));
        }
        for (name, value) in tables::counters(outcome, page_bytes(run)) {
            witness.set(&format!("{name}/{}", run.source), value);
        }
        witness.table(tables::shares(outcome, &run.source));
        let rows = compare::rows(&self.preset, run, outcome, self.planned.changed);
        witness.table(tables::compared(&rows, &run.source));
        if self.index == 0 {
            witness.table(tables::constants(&self.preset));
        }
        Ok(())
    }
}

/// Bytes of a simulated page.
fn page_bytes(run: &Run) -> u64 {
    let page = run.settings.memory.page.as_ref().map_or(4096.0, |page| page.value);
    whole(page)
}
