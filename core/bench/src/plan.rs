//! From what was asked to the list of cases, and how each of them is measured.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pagelab_record::{Arm, Case, units::whole};
use pagelab_sys::time::ClockChoice;

pub use crate::grid::{CASES_MAX, check, complete, grid, state};
use crate::{
    arm::InForce,
    asked::{Forks, Repetitions, Seconds, Share},
    grid::{self, grid_beside, too_many},
    inputs::Supplied,
    measure::{self, Method},
    need::{Need, Needed},
    remedy::Remedy,
    suite::{Entry, Suite},
    workload::{Experiment, Row, Table, find},
};

/// A case and how it will be measured.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Its workload.
    pub workload: Row,
    /// The case, complete. Of a large grid there is one of each in memory.
    pub case: Arc<Case>,
    /// How.
    pub method: Method,
    /// The arm of a run of two that it is measured for, and with it what that changes.
    pub arm: Option<Arc<Arm>>,
    /// What its workload says of it, asked once.
    takes: Takes,
}

/// What a case takes.
#[derive(Debug, Clone)]
struct Takes {
    /// Seconds of one repetition.
    once_s: f64,
    /// Repetitions that it asks for.
    repetitions: Option<u32>,
    /// Bytes at its peak.
    bytes: u64,
    needs: Vec<Needed>,
    wishes: Vec<Needed>,
}

impl Takes {
    fn of(asked: &dyn Experiment) -> Self {
        let (once_s, repetitions) = (asked.seconds(), asked.repetitions());
        let (needs, wishes) = (asked.needs(), asked.wishes());
        Self { once_s, repetitions, bytes: asked.footprint(), needs, wishes }
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        (self.workload, &self.case, self.method, &self.arm)
            == (other.workload, &other.case, other.method, &other.arm)
    }
}

/// What a run will do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The cases, in order.
    pub cases: Vec<Planned>,
    /// Combinations that a grid contains and a workload refuses, as sentences.
    pub left_out: Vec<String>,
}

/// What the user may say about measuring, over what a suite says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overrides {
    /// Fresh processes for each case.
    pub forks: Option<Forks>,
    /// Time for the whole run.
    pub budget: Option<Seconds>,
    /// Time after which a process counts as hung.
    pub limit: Option<Seconds>,
    /// Width of the interval at which a case is done.
    pub precision: Option<Share>,
}

/// The plan of a suite.
///
/// # Errors
/// A sentence that names the suite, its entry and what is wrong with it.
pub fn of_suite(suite: &Suite, clock: ClockChoice, over: Overrides) -> Result<Plan, String> {
    let mut planner = Planner::new(clock, over);
    for (index, entry) in suite.entries.iter().enumerate() {
        planner.add(entry).map_err(|why| {
            format!("suite `{}`, case {} ({}): {why}", suite.name, index + 1, entry.workload.name())
        })?;
    }
    Ok(planner.finish())
}

/// The plan of a grid given on the command line, with the limits that results are shares of.
///
/// # Errors
/// A sentence that names the parameter or the combination.
pub fn of_grid(
    entry: &Entry,
    limits: &Suite,
    clock: ClockChoice,
    over: Overrides,
) -> Result<Plan, String> {
    let mut planner = Planner::new(clock, over);
    if !entry.workload.about().is_limit && !entry.workload.about().is_one_pass {
        for limit in &limits.entries {
            planner.add(limit)?;
        }
    }
    planner.add(entry)?;
    Ok(planner.finish())
}

/// The plan of a grid without anything beside it.
///
/// # Errors
/// A sentence that names the parameter or the combination.
pub fn of_cases(entry: &Entry, clock: ClockChoice, over: Overrides) -> Result<Plan, String> {
    let mut planner = Planner::new(clock, over);
    planner.add(entry)?;
    Ok(planner.finish())
}

/// A case that was planned by this version or another, on this machine or another: a scripted clock
/// is part of what was asked for, any other is that of this machine.
///
/// # Errors
/// A sentence that says what this version cannot measure.
pub fn again(
    table: Table,
    workload: &str,
    case: &Case,
    method: Method,
    clock: ClockChoice,
) -> Result<Planned, String> {
    let checked = find(table, workload).and_then(|row| check(row, case).map(|()| row));
    let row = checked.map_err(|why| {
        format!("this version cannot measure {why}; go on with the version that began it")
    })?;
    let clock = match method.clock {
        scripted @ ClockChoice::Scripted { .. } => scripted,
        _ => clock,
    };
    Ok(Planned::new(row, case.clone(), Method { clock, ..method }))
}

/// A plan that grows entry by entry.
struct Planner {
    plan: Plan,
    clock: ClockChoice,
    over: Overrides,
    known: HashMap<&'static str, HashSet<Arc<Case>>>,
}

impl Planner {
    fn new(clock: ClockChoice, over: Overrides) -> Self {
        Self { plan: Plan::default(), clock, over, known: HashMap::new() }
    }

    fn add(&mut self, entry: &Entry) -> Result<(), String> {
        let (plan, over) = (&mut self.plan, self.over);
        let workload = entry.workload;
        let forks = over.forks.unwrap_or(entry.forks).get();
        let forks = if workload.about().is_one_pass { 1 } else { forks };
        let method = Method {
            forks,
            turns: entry.turns.get(),
            repetitions_min: entry.repetitions_min.get(),
            repetitions_max: Repetitions::MAX.get(),
            budget_ns: entry.budget.ns() / u64::from(forks),
            precision: over.precision.unwrap_or(entry.precision).get(),
            limit_ns: over.limit.unwrap_or(entry.limit).ns(),
            attempts_max: measure::attempts_max(),
            clock: self.clock,
            planted: None,
        };
        // The first entry that names a case decides how it is measured.
        let known = self.known.entry(workload.name()).or_default();
        let left_out = grid_beside(workload, &entry.axes, known, |case, asked| {
            let (mut method, takes) = (method, Takes::of(&*asked));
            if over.limit.is_none() {
                // Even a host that backs memory at 100 MB/s finishes a case that was asked for.
                let rounds = u64::from(takes.repetitions.unwrap_or(4)) + 1;
                let backed = takes.bytes.saturating_mul(rounds).saturating_mul(10);
                let slow = whole(takes.once_s * rounds as f64 * 20.0 * 1e9);
                method.limit_ns = method.limit_ns.saturating_add(backed).saturating_add(slow);
            }
            plan.cases.push(Planned { workload, case, method, arm: None, takes });
        })?;
        plan.left_out.extend(left_out);
        match plan.cases.len() {
            all if all > CASES_MAX => Err(too_many(all as u128)),
            _ => Ok(()),
        }
    }

    /// The plan, its budgets scaled so that together they fit into the one that was asked for.
    fn finish(self) -> Plan {
        let Self { mut plan, over, .. } = self;
        let Some(budget) = over.budget else { return plan };
        let spent = |c: &Planned| c.method.budget_ns as f64 * f64::from(c.method.forks);
        let total: f64 = plan.cases.iter().map(spent).sum();
        for planned in &mut plan.cases {
            let share = planned.method.budget_ns as f64 / total.max(1.0);
            planned.method.budget_ns = whole(budget.get() * share * 1e9);
        }
        plan
    }
}

/// What a plan takes. Each case is asked once, however much is told of it.
#[derive(Debug, Default)]
pub struct Outlook {
    /// The cases, in order.
    pub cases: Vec<Expected>,
    /// What they need, each once, in the order in which it comes up.
    pub needs: Vec<Needed>,
}

/// What a case takes.
#[derive(Debug)]
pub struct Expected {
    /// Seconds, roughly: its budget, and a warm-up for each process.
    pub seconds: f64,
    /// Bytes at its peak.
    pub bytes: u64,
    /// What it needs, by its place in [`Outlook::needs`].
    pub needs: Vec<usize>,
    /// What only some of its arms need, by its place there.
    pub wishes: Vec<usize>,
}

impl Plan {
    /// What it takes.
    pub fn outlook(&self) -> Outlook {
        let mut outlook = Outlook::default();
        let mut places: HashMap<Needed, usize> = HashMap::new();
        for planned in &self.cases {
            let place = |need: Needed| {
                let next = outlook.needs.len();
                *places.entry(need).or_insert_with_key(|need| {
                    outlook.needs.push(need.clone());
                    next
                })
            };
            let mut places = planned.all_needs().cloned().map(place);
            let needs = places.by_ref().take(planned.needs().len()).collect();
            let wishes = places.collect();
            let (seconds, bytes) = (planned.estimated_seconds(), planned.takes.bytes);
            outlook.cases.push(Expected { seconds, bytes, needs, wishes });
        }
        outlook
    }
}

impl Outlook {
    /// Seconds that the run will take.
    pub fn seconds(&self) -> f64 {
        self.cases.iter().map(|case| case.seconds).sum()
    }

    /// Bytes that its largest case takes.
    pub fn bytes(&self) -> u64 {
        self.cases.iter().map(|case| case.bytes).max().unwrap_or(0)
    }

    /// What the run would change and make: each remedy, and for how many cases.
    pub fn remedies(&self) -> Vec<(Remedy, usize)> {
        let mut counts = vec![0; self.needs.len()];
        for place in self.cases.iter().flat_map(|case| case.needs.iter().chain(&case.wishes)) {
            counts[*place] += 1;
        }
        let mut remedies: Vec<(Remedy, usize)> = Vec::new();
        for (need, count) in self.needs.iter().zip(counts) {
            let Some(remedy) = need.pending() else { continue };
            match remedies.iter_mut().find(|(known, _)| *known == remedy) {
                Some((_, cases)) => *cases += count,
                None => remedies.push((remedy, count)),
            }
        }
        remedies
    }
}

/// Some cases with the names of their workloads, each once.
pub fn told(cases: &[Planned]) -> Vec<(String, Case)> {
    let named = |planned: &Planned| (planned.workload.name().to_owned(), (*planned.case).clone());
    grid::unique(cases.iter().map(named))
}

/// The needs of some cases, each once, in the order in which they come up.
pub fn unique(cases: &[Planned]) -> Vec<Needed> {
    grid::unique(cases.iter().flat_map(Planned::all_needs).cloned())
}

impl Planned {
    /// A complete case of a workload.
    pub fn new(workload: Row, case: impl Into<Arc<Case>>, method: Method) -> Self {
        let case = case.into();
        let takes = Takes::of(&*workload.read(&case));
        Self { workload, case, method, arm: None, takes }
    }

    /// The same for an arm: what that changes of the machine is a need, before all others.
    #[must_use]
    pub fn for_arm(mut self, arm: Arc<Arm>) -> Self {
        self.takes.needs.splice(0..0, InForce::of(&arm).map(Need::needed));
        self.arm = Some(arm);
        self
    }

    /// Whether one pass in one process says it all.
    pub fn is_one_pass(&self) -> bool {
        self.workload.about().is_one_pass
    }

    /// Whether its numbers are those of a model.
    pub fn is_simulated(&self) -> bool {
        self.workload.about().is_simulated
    }

    /// What the parent makes for the case.
    pub fn supply(&self) -> Option<Supplied> {
        self.workload.read(&self.case).supply()
    }

    /// What the case needs of the host.
    pub fn needs(&self) -> &[Needed] {
        &self.takes.needs
    }

    /// What only some of its arms need.
    pub fn wishes(&self) -> &[Needed] {
        &self.takes.wishes
    }

    /// What all of it and what only some of its arms need.
    pub fn all_needs(&self) -> impl Iterator<Item = &Needed> {
        self.needs().iter().chain(self.wishes())
    }

    /// Seconds that it will take, roughly.
    pub fn estimated_seconds(&self) -> f64 {
        let once_s = self.takes.once_s;
        if self.is_one_pass() {
            return once_s;
        }
        // A fixed number of rounds takes what it takes.
        let forks = f64::from(self.method.forks);
        let measured = self.takes.repetitions.map_or_else(
            || {
                let fewest = f64::from(self.method.repetitions_min) * once_s;
                fewest.max(self.method.budget_ns as f64 / 1e9)
            },
            |rounds| f64::from(rounds) * once_s,
        );
        forks * (measured + once_s + 0.01)
    }
}
