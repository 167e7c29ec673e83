//! From what was asked to the list of cases: completion, grids, and how each case is measured.

use pagelab_record::{Case, units::display_bytes};
use pagelab_sys::clock::ClockChoice;

use crate::{
    Kind, Need, Role,
    inputs::Supply,
    measure::{self, Method},
    params::PageSize,
    remedy::Remedy,
    suite::{Entry, Suite},
    workload::Workload,
};

/// A case and how it will be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Name of its workload.
    pub workload: String,
    /// The case, complete.
    pub case: Case,
    /// How.
    pub method: Method,
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
    pub forks: Option<u32>,
    /// Seconds for the whole run.
    pub budget_s: Option<f64>,
    /// Seconds after which a process counts as hung.
    pub limit_s: Option<f64>,
    /// Width of the interval at which a case is done.
    pub precision: Option<f64>,
}

/// A complete case from some parameters: canonical, defaults filled in, nothing left to decide.
///
/// # Errors
/// A sentence that names the parameter or the combination and what to do instead.
pub fn complete(workload: &dyn Workload, pairs: &[(&str, &str)]) -> Result<Case, String> {
    let mut case = Case::default();
    for param in workload.params() {
        case = case.with(param.name, param.default);
    }
    for (name, value) in pairs {
        let Some(param) = workload.params().iter().find(|param| param.name == *name) else {
            return Err(unknown_parameter(workload, name));
        };
        let canonical: Result<Vec<String>, String> = match param.role {
            Role::Axis => param.canonical(value).map(|value| vec![value]),
            Role::Arms | Role::List => value.split(',').map(|word| param.canonical(word)).collect(),
        };
        case = case.with(name, &canonical?.join(","));
    }
    let case = workload.resolve(case);
    workload.refuse(&case)?;
    Ok(case)
}

fn unknown_parameter(workload: &dyn Workload, name: &str) -> String {
    let names: Vec<&str> = workload.params().iter().map(|param| param.name).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("{} has no parameter `{name}`; it has {known}", workload.name())
}

/// Every case of a grid: one for each combination of the values of its axes.
///
/// Combinations that the workload refuses are left out with their reason, unless all are.
///
/// # Errors
/// When a parameter or value is unknown, or nothing is left.
pub fn grid(
    workload: &dyn Workload,
    axes: &[(String, Vec<String>)],
) -> Result<(Vec<Case>, Vec<String>), String> {
    let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (name, values) in axes {
        let Some(param) = workload.params().iter().find(|param| param.name == *name) else {
            return Err(unknown_parameter(workload, name));
        };
        let values = match (param.role, param.kind) {
            (Role::Arms | Role::List, _) => vec![values.join(",")],
            (Role::Axis, Kind::Page) => every_page(values),
            (Role::Axis, _) => values.clone(),
        };
        combinations = combinations
            .iter()
            .flat_map(|start| {
                values.iter().map(|value| {
                    let mut longer = start.clone();
                    longer.push((name.clone(), value.clone()));
                    longer
                })
            })
            .collect();
    }
    let is_grid = combinations.len() > 1;
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for combination in &combinations {
        let pairs: Vec<(&str, &str)> =
            combination.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        match complete(workload, &pairs) {
            Ok(case) if !cases.contains(&case) => cases.push(case),
            Ok(_) => (),
            // A value that is not understood is a mistake; a combination may be part of a grid.
            Err(why) if why.starts_with("--") || !is_grid => return Err(why),
            Err(why) => left_out.push(why),
        }
    }
    left_out.dedup();
    if cases.is_empty() { Err(left_out.join("; ")) } else { Ok((cases, left_out)) }
}

/// `all` stands for every page size that this kernel offers, `large` for all but the base page.
fn every_page(values: &[String]) -> Vec<String> {
    let offered = |least: PageSize| {
        let wanted = PageSize::offered().into_iter().filter(move |page| *page >= least);
        wanted.map(|page| page.to_string()).collect()
    };
    values
        .iter()
        .flat_map(|value| match value.as_str() {
            "all" => offered(PageSize::Base),
            "large" => offered(PageSize::Folio(0)),
            _ => vec![value.clone()],
        })
        .collect()
}

/// The plan of a suite.
///
/// # Errors
/// A sentence that names the suite, its entry and what is wrong with it.
pub fn of_suite(suite: &Suite, clock: ClockChoice, over: Overrides) -> Result<Plan, String> {
    let mut plan = Plan::default();
    for (index, entry) in suite.entries.iter().enumerate() {
        add(&mut plan, entry, clock, over).map_err(|why| {
            format!("suite `{}`, case {} ({}): {why}", suite.name, index + 1, entry.workload)
        })?;
    }
    fit(&mut plan, over.budget_s);
    Ok(plan)
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
    let mut plan = Plan::default();
    let is_one_pass = crate::workload(&entry.workload)?.is_one_pass();
    if !entry.workload.starts_with("limit/") && !is_one_pass {
        for limit in &limits.entries {
            add(&mut plan, limit, clock, over)?;
        }
    }
    add(&mut plan, entry, clock, over)?;
    fit(&mut plan, over.budget_s);
    Ok(plan)
}

/// The plan of a grid without anything beside it.
///
/// # Errors
/// A sentence that names the parameter or the combination.
pub fn of_cases(entry: &Entry, clock: ClockChoice, over: Overrides) -> Result<Plan, String> {
    let mut plan = Plan::default();
    add(&mut plan, entry, clock, over)?;
    fit(&mut plan, over.budget_s);
    Ok(plan)
}

fn add(plan: &mut Plan, entry: &Entry, clock: ClockChoice, over: Overrides) -> Result<(), String> {
    let workload = crate::workload(&entry.workload)?;
    let (cases, left_out) = grid(workload, &entry.axes)?;
    plan.left_out.extend(left_out);
    let forks = over.forks.unwrap_or(entry.forks).max(1);
    let forks = if workload.is_one_pass() { 1 } else { forks };
    let method = Method {
        forks,
        repetitions_min: entry.repetitions_min,
        repetitions_max: 100_000,
        budget_ns: nanoseconds(entry.budget_s) / u64::from(forks),
        precision: over.precision.unwrap_or(entry.precision),
        limit_ns: nanoseconds(over.limit_s.unwrap_or(entry.limit_s)),
        attempts_max: measure::attempts_max(),
        clock,
    };
    for case in cases {
        // The first entry that names a case decides how it is measured.
        if plan.cases.iter().any(|c| c.workload == entry.workload && c.case == case) {
            continue;
        }
        let mut method = method;
        if over.limit_s.is_none() {
            // Even a host that backs memory at 100 MB/s finishes a case that was asked for.
            let rounds = u64::from(workload.repetitions(&case).unwrap_or(4)) + 1;
            method.limit_ns += workload.footprint(&case).saturating_mul(rounds).saturating_mul(10);
            method.limit_ns += nanoseconds(workload.seconds(&case) * rounds as f64 * 20.0);
        }
        plan.cases.push(Planned { workload: entry.workload.clone(), case, method });
    }
    Ok(())
}

/// Scales the cases' budgets so that together they fit into so many seconds.
fn fit(plan: &mut Plan, budget_s: Option<f64>) {
    let Some(budget_s) = budget_s else { return };
    let total: u64 =
        plan.cases.iter().map(|c| c.method.budget_ns * u64::from(c.method.forks)).sum();
    for planned in &mut plan.cases {
        let share = planned.method.budget_ns as f64 / total.max(1) as f64;
        planned.method.budget_ns = nanoseconds(budget_s * share);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to u64")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}

impl Plan {
    /// Seconds that the run will take, roughly: the budgets, and a warm-up for each process.
    pub fn estimated_seconds(&self) -> f64 {
        self.cases.iter().map(Planned::estimated_seconds).sum()
    }

    /// Bytes that its largest case takes.
    pub fn peak_bytes(&self) -> u64 {
        self.cases.iter().map(Planned::footprint).max().unwrap_or(0)
    }

    /// What the run would change and make: each remedy, and for how many cases.
    pub fn remedies(&self) -> Vec<(Remedy, usize)> {
        let mut remedies: Vec<(Remedy, usize)> = Vec::new();
        for planned in &self.cases {
            for remedy in planned.needs().iter().filter_map(Need::pending) {
                match remedies.iter_mut().find(|(known, _)| *known == remedy) {
                    Some((_, cases)) => *cases += 1,
                    None => remedies.push((remedy, 1)),
                }
            }
        }
        remedies
    }
}

impl Planned {
    fn row(&self) -> &'static dyn Workload {
        crate::workload(&self.workload).expect("a planned workload exists")
    }

    /// Whether one pass in one process says it all.
    pub fn is_one_pass(&self) -> bool {
        self.row().is_one_pass()
    }

    /// Whether its numbers are those of a model.
    pub fn is_simulated(&self) -> bool {
        self.row().is_simulated()
    }

    /// The trace that the case needs.
    ///
    /// # Errors
    /// When the parameters that name it make no sense.
    pub fn supply(&self) -> Result<Option<Supply>, String> {
        self.row().supply(&self.case)
    }

    /// What the case needs of the host.
    pub fn needs(&self) -> Vec<Need> {
        self.row().needs(&self.case)
    }

    /// Bytes that it takes at its peak.
    pub fn footprint(&self) -> u64 {
        self.row().footprint(&self.case)
    }

    /// Seconds that it will take, roughly.
    pub fn estimated_seconds(&self) -> f64 {
        let once_s = self.row().seconds(&self.case);
        if self.is_one_pass() {
            return once_s;
        }
        // A fixed number of rounds takes what it takes.
        let forks = f64::from(self.method.forks);
        let measured = self.row().repetitions(&self.case).map_or_else(
            || {
                let fewest = f64::from(self.method.repetitions_min) * once_s;
                fewest.max(self.method.budget_ns as f64 / 1e9)
            },
            |rounds| f64::from(rounds) * once_s,
        );
        forks * (measured + once_s + 0.01)
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        let memory = display_bytes(self.footprint() as f64);
        format!("{} {} ({memory}, {} processes)", self.workload, self.case, self.method.forks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fault::throughput::Throughput, suite};

    fn axes(pairs: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        pairs
            .iter()
            .map(|(name, values)| {
                ((*name).to_owned(), values.iter().map(ToString::to_string).collect())
            })
            .collect()
    }

    #[test]
    fn a_comma_makes_cases_and_two_axes_make_their_product() {
        let axes = axes(&[("page", &["4k", "64k", "2m"]), ("threads", &["1", "2"])]);
        let (cases, left_out) = grid(&Throughput, &axes).unwrap();
        assert_eq!((cases.len(), left_out.len()), (6, 0));
    }

    #[test]
    fn two_spellings_of_one_case_are_one_case() {
        let axes = axes(&[("size", &["1g", "1024m", "1GiB"])]);
        assert_eq!(grid(&Throughput, &axes).unwrap().0.len(), 1);
    }

    #[test]
    fn a_comma_in_arms_makes_one_case_of_two_arms() {
        let (cases, _) = grid(&Throughput, &axes(&[("arms", &["pagelab", "c"])])).unwrap();
        assert_eq!((cases.len(), cases[0].get("arms")), (1, Some("pagelab,c")));
    }

    #[test]
    fn refused_combinations_of_a_grid_are_left_out_with_their_reason() {
        let axes = axes(&[("page", &["4k", "2m"]), ("align", &["ragged"]), ("touch", &["8@4k"])]);
        let (cases, left_out) = grid(&Throughput, &axes).unwrap();
        assert_eq!((cases.len(), left_out.len()), (1, 1));
        assert!(grid(&Throughput, &axes[1..]).is_err(), "nothing is left");
    }

    #[test]
    fn what_is_unknown_is_named_with_what_is_known() {
        let error = grid(&Throughput, &axes(&[("pages", &["4k"])])).unwrap_err();
        assert!(error.contains("`pages`") && error.contains("populate"), "{error}");
        let error = grid(&Throughput, &axes(&[("order", &["sideways"])])).unwrap_err();
        assert!(error.contains("sideways") && error.contains("random"), "{error}");
    }

    #[test]
    fn a_budget_is_shared_among_the_cases() {
        let suite = suite::built_in("quick").unwrap();
        let clock = ClockChoice::Raw;
        let over = Overrides { budget_s: Some(3.0), ..Overrides::default() };
        let plan = of_suite(&suite, clock, over).unwrap();
        let total: u64 =
            plan.cases.iter().map(|c| c.method.budget_ns * u64::from(c.method.forks)).sum();
        assert!(total <= 3_100_000_000, "{total}");
    }
}
