//! The loop: the next event, the time until then, and what happens at it.
//!
//! The one idea: the program's speed depends on the placement alone, so between two events its
//! progress is speed times time. What observing and moving take from it is a debt, in nanoseconds
//! of run time, that is paid before it goes on. Time is in whole nanoseconds, progress in accesses.
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^53")]

use std::ops::Range;

use super::{
    check::check,
    curve::Load,
    faults::Hints,
    machine::Machine,
    mover::{Daemon, Due, FOREVER},
    outcome::Outcome,
    places::Places,
    sampler::{Sampler, Stretch},
    scan::{Bits, Pass},
    scenario::{Scenario, Source, Work},
    tally::Tally,
    work::Pattern,
};
use crate::{
    PAGE_BYTES,
    policy::{Fault, Move, Moved, Needs, Policy, Prices, Scan, Setting},
    random::Random,
};

/// The longest stretch at one speed while faults move pages, or a sequence decides the speed.
const QUANTUM_NS: u64 = 1_000_000;

/// Everything that changes during a simulation.
#[derive(Debug)]
struct Engine<'s> {
    machine: Machine<'s>,
    policy: Box<dyn Policy>,
    sampler: Option<Sampler>,
    hints: Option<Hints>,
    passes: Vec<Pass>,
    young: Bits,
    written: Bits,
    daemon: Daemon,
    tally: Tally,
    /// Nanoseconds that the program still loses.
    debt: f64,
    next_tick: u64,
}

/// Runs a scenario to its end.
///
/// # Errors
/// A sentence that says what makes no sense in the scenario.
pub fn simulate(scenario: &Scenario) -> Result<Outcome, String> {
    check(scenario)?;
    let mut engine = Engine::new(scenario);
    engine.run();
    Ok(engine.finish())
}

impl<'s> Engine<'s> {
    fn new(scenario: &'s Scenario) -> Self {
        let seed = scenario.seed;
        let (pages, accesses) = match &scenario.work {
            Work::Trace(trace) => (trace.pages(), scenario.accesses.max(trace.ops())),
            Work::Generated(_) => (scenario.pages as u32, scenario.accesses),
        };
        let total = accesses as f64;
        let top = scenario.tiers.nodes.iter().filter(|node| node.tier == 0);
        let top: u64 = top.map(|node| node.pages).sum();
        let mut random = Random::stream(seed, 0);
        let pattern = Pattern::new(&scenario.work, pages, total, top, &mut random);
        let mut places = Places::new(&scenario.tiers, pages);
        places.recount(&pattern);
        let (mut sampler, mut hints, mut passes) = (None, None, Vec::new());
        let mut periods = (0, 0);
        for source in &scenario.sources {
            match source {
                Source::Sampling(sampling) => {
                    let fixed = (sampling.period, sampling.period);
                    let given = (sampling.period_min, sampling.period_max);
                    periods = if sampling.period_min == 0 { fixed } else { given };
                    let Scenario { threads, stores, .. } = *scenario;
                    let load = Load { accesses: total, threads: f64::from(threads), stores };
                    // One of the shares is that of a remote node of the top tier.
                    let tiers = places.shares().len() - 1;
                    let latencies = scenario.curve.idle_latencies(tiers, load);
                    sampler = Some(Sampler::new(sampling, &latencies, seed));
                }
                Source::Hints(scan) => hints = Some(Hints::new(scan, pages, seed)),
                Source::Young(scan) => passes.push(Pass::new(scan, false)),
                Source::Written(scan) => passes.push(Pass::new(scan, true)),
            }
        }
        let stores = match &scenario.work {
            Work::Trace(trace) => trace.stores(),
            Work::Generated(_) => scenario.stores,
        };
        let setting = Setting { pages, nodes: &scenario.tiers.nodes, periods };
        let period = sampler.as_ref().map_or(0, |sampler: &Sampler| sampler.period);
        let prices = Prices {
            saved_ns: 0.0,
            move_ns: 0.0,
            busy_ns: scenario.mover.move_ns as f64,
            sample_ns: scenario.costs.sample_ns as f64 / f64::from(scenario.threads),
            latency_ns: [0.0; 4],
        };
        let mut machine =
            Machine { scenario, pattern, places, now: 0, done: 0.0, total, prices, period };
        let batch = f64::from(scenario.mover.batch.max(1));
        machine.prices.move_ns = machine.toll(batch) / batch;
        machine.reprice();
        let tally = Tally::new(&machine, pages);
        Self {
            policy: scenario.policy.build(&setting),
            machine,
            sampler,
            hints,
            passes,
            young: Bits::new(pages, 1.0, seed, 4),
            written: Bits::new(pages, stores, seed, 5),
            daemon: Daemon::new(&scenario.mover, seed),
            tally,
            debt: 0.0,
            next_tick: 0,
        }
    }

    fn run(&mut self) {
        if self.machine.scenario.policy.row().needs == Needs::Future {
            self.born_in_place();
        }
        let mut speed = self.machine.speed(self.machine.places.shares());
        while self.machine.done < self.machine.total {
            let until = self.next_event();
            let ahead = (until - self.machine.now) as f64 * speed;
            speed = self.machine.speed(&self.machine.shares(self.machine.done + ahead));
            self.advance(until, speed);
            self.fire(speed);
        }
    }

    /// What knows the future places pages before the first access, at no cost.
    fn born_in_place(&mut self) {
        let mut moves = Vec::new();
        self.policy.decide(&self.machine.world(), &mut |_| false, &mut moves);
        for Move { page, to } in moves {
            if self.machine.places.free[usize::from(to)] > 0 {
                let weight = self.machine.pattern.weight(page);
                self.machine.places.move_page(page, to, weight);
            }
        }
    }

    fn next_event(&self) -> u64 {
        let now = self.machine.now;
        let mut next = now + FOREVER;
        next = next.min(self.daemon.next_ns).min(self.tally.next_ns);
        if self.policy.interval() > 0 {
            next = next.min(self.next_tick);
        }
        let faulting = self.hints.as_ref().is_some_and(|hints| !hints.is_idle());
        if faulting || self.machine.is_sequence() {
            next = next.min(now + QUANTUM_NS);
        }
        if let Some(hints) = &self.hints {
            next = next.min(hints.next_ns);
        }
        for pass in &self.passes {
            next = next.min(pass.next_ns);
        }
        next.max(now + 1)
    }

    /// Lets the program run until then, or until its pattern changes or it is done.
    fn advance(&mut self, until: u64, speed: f64) {
        let machine = &mut self.machine;
        let span = (until - machine.now) as f64;
        let paid = self.debt.min(span);
        self.debt -= paid;
        let mut to = machine.done + (span - paid) * speed;
        let limit = machine.total.min(machine.pattern.change());
        let mut end = until;
        if to >= limit {
            to = limit;
            let spent = paid + (to - machine.done) / speed;
            end = machine.now + (spent.ceil() as u64).clamp(1, until - machine.now);
        }
        let start_ns = machine.now as f64 + paid;
        let stretch = Stretch { from: machine.done, to, start_ns, speed };
        self.tally.ran(machine.places.shares()[0], machine, stretch);
        if let Some(sampler) = &mut self.sampler {
            let (policy, world) = (&mut self.policy, self.machine.world());
            let machine = &self.machine;
            let is_blind = machine.scenario.policy.row().needs != Needs::Samples;
            let counted = if is_blind { sampler.count(stretch) } else { None };
            let taken = counted.unwrap_or_else(|| {
                sampler.run(machine, stretch, policy.wants_top(), |batch, passed| {
                    policy.observe(batch, &world);
                    policy.passed_over(passed);
                })
            });
            self.charge(taken as f64 * self.machine.prices.sample_ns);
        }
        self.take_faults(stretch);
        let machine = &mut self.machine;
        (machine.done, machine.now) = (to, end);
        if machine.pattern.enter(to) {
            machine.places.recount(&machine.pattern);
        }
    }

    /// The program loses so much run time.
    fn charge(&mut self, nanoseconds: f64) {
        self.debt += nanoseconds;
        self.tally.stall_ns += nanoseconds;
    }

    fn take_faults(&mut self, stretch: Stretch) {
        while let Some(hints) = &mut self.hints
            && let Some(due) = hints.pop(stretch.to)
        {
            let page = due.page;
            let fault_ns = hints.scan.fault_ns as f64 / f64::from(self.machine.scenario.threads);
            // Another thread may fault on the page before the first one is done with it.
            let weight = self.machine.pattern.weight(page);
            let others = stretch.speed * weight * hints.scan.duplicate_ns as f64;
            let again = others > 0.0 && hints.random.any_of(others);
            let fails = hints.random.chance(hints.scan.failure);
            hints.count(self.machine.places.is_top(page));
            let faults = 1 + u64::from(again);
            self.tally.outcome.hint_faults += faults;
            self.tally.outcome.duplicate_faults += u64::from(again);
            let node = self.machine.places.accessor(page, &mut hints.random);
            self.charge(faults as f64 * fault_ns);
            let at = stretch.at(due.access);
            let fault = Fault { at, marked: due.marked, page, node };
            let Some(to) = self.policy.fault(fault, &self.machine.world()) else { continue };
            let how = if fails || !self.daemon.allows(at) {
                Moved::Failed
            } else {
                self.place(Move { page, to })
            };
            self.settle(page, how);
        }
    }

    /// Moves one page now.
    fn place(&mut self, Move { page, to }: Move) -> Moved {
        let machine = &mut self.machine;
        if machine.places.place[page as usize] == to {
            return Moved::Done;
        }
        if machine.places.free[usize::from(to)] == 0 {
            return Moved::Full;
        }
        self.tally.moves(page, to, machine);
        let weight = machine.pattern.weight(page);
        machine.places.move_page(page, to, weight);
        if let Some(hints) = &mut self.hints {
            hints.unmark(page);
        }
        Moved::Done
    }

    fn settle(&mut self, page: u32, how: Moved) {
        match how {
            Moved::Done => {}
            Moved::Full => self.tally.outcome.full += 1,
            Moved::Failed => self.tally.outcome.failed += 1,
        }
        self.policy.moved(page, how, self.machine.places.is_top(page));
    }

    /// Everything that is due by now.
    fn fire(&mut self, speed: f64) {
        let now = self.machine.now;
        if let Some(hints) = self.hints.as_mut().filter(|hints| hints.next_ns <= now) {
            hints.tick(&self.machine);
        }
        self.run_passes();
        if self.policy.interval() > 0 && self.next_tick <= now {
            let (machine, young) = (&self.machine, &mut self.young);
            let mut is_young = |page| young.test_and_clear(page, machine);
            self.policy.tick(&machine.world(), &mut is_young);
            self.next_tick = now + self.policy.interval();
        }
        if self.daemon.next_ns <= now {
            match self.daemon.due() {
                Due::Decide => self.decide(),
                Due::Batch(batch) => self.apply(batch, speed),
            }
        }
        if self.tally.next_ns <= now {
            self.tally.row(&self.machine, &*self.policy);
        }
    }

    fn run_passes(&mut self) {
        let mut passes = std::mem::take(&mut self.passes);
        let now = self.machine.now;
        for pass in passes.iter_mut().filter(|pass| pass.next_ns <= now) {
            let bits = if pass.writes { &mut self.written } else { &mut self.young };
            let (busy_ns, stall_ns) = pass.run(bits, &self.machine);
            self.daemon.busy_ns += busy_ns;
            self.charge(stall_ns);
            let (writes, window) = (pass.writes, pass.scan.period_ns);
            let scan = Scan { pages: &pass.found, writes, window };
            self.policy.scanned(scan, &self.machine.world());
        }
        self.passes = passes;
    }

    fn decide(&mut self) {
        self.machine.reprice();
        let (machine, young) = (&self.machine, &mut self.young);
        let mut is_young = |page| young.test_and_clear(page, machine);
        self.daemon.moves.clear();
        self.policy.decide(&machine.world(), &mut is_young, &mut self.daemon.moves);
        self.daemon.decided(machine.now, self.policy.counts().walked);
        if let (Some(sampler), Some(period)) = (&mut self.sampler, self.policy.period()) {
            sampler.adjust(period, self.machine.done);
            self.machine.period = sampler.period;
        }
    }

    /// A batch is done: its pages are where they should be, and the program has paid for it.
    fn apply(&mut self, batch: Range<usize>, speed: f64) {
        let threads = f64::from(self.machine.scenario.threads);
        let (mut moved, mut waits) = (0.0, 0.0);
        let wanted = std::mem::take(&mut self.daemon.moves);
        self.tally.warm(&wanted[batch.clone()], &self.machine.places.place);
        for &order in &wanted[batch] {
            let before = self.machine.places.place[order.page as usize];
            let how = if self.daemon.fails() { Moved::Failed } else { self.place(order) };
            if how == Moved::Done && before != order.to {
                moved += 1.0;
                // Who comes to a page while it is being copied waits for half of that on average.
                let copy_ns = self.daemon.mover.move_ns as f64;
                let come = speed * self.machine.pattern.weight(order.page) * copy_ns;
                waits += come.min(threads) * 0.5 * copy_ns / threads;
            }
            self.settle(order.page, how);
        }
        self.daemon.moves = wanted;
        if moved > 0.0 {
            self.charge(self.machine.toll(moved) + waits);
        }
        self.daemon.start(self.machine.now);
    }

    fn finish(mut self) -> Outcome {
        self.tally.close(&self.machine, &*self.policy);
        let Tally { mut outcome, stall_ns, .. } = self.tally;
        // What is still owed when the last access is done is paid by then.
        outcome.time_ns = self.machine.now + self.debt as u64;
        outcome.stall_ns = stall_ns as u64;
        outcome.daemon_ns = self.daemon.busy_ns;
        outcome.move_bytes = (outcome.promoted + outcome.demoted + outcome.exchanged) * PAGE_BYTES;
        outcome.pte_updates = self.hints.map_or(0, |hints| hints.updates);
        if let Some(sampler) = self.sampler {
            outcome.hw_events = sampler.events;
            outcome.hw_dropped = sampler.dropped;
            outcome.period = sampler.period;
        }
        outcome
    }
}
