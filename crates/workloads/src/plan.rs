//! From what was asked to the list of cases, and how each of them is measured.

use std::collections::{BTreeMap, HashMap, HashSet};

use pagelab_record::{Case, units::display_bytes};
use pagelab_sys::time::clock::ClockChoice;

pub use crate::grid::{CASES_MAX, check, complete, grid};
use crate::{
    Need,
    asked::{Forks, Repetitions, Seconds, Share},
    grid::{grid_beside, too_many},
    inputs::Supply,
    measure::{self, Method},
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
            format!("suite `{}`, case {} ({}): {why}", suite.name, index + 1, entry.workload)
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
    let is_one_pass = crate::workload(&entry.workload)?.is_one_pass();
    if !entry.workload.starts_with("limit/") && !is_one_pass {
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

/// A plan that grows entry by entry.
struct Planner {
    plan: Plan,
    clock: ClockChoice,
    over: Overrides,
    known: HashMap<&'static str, HashSet<Case>>,
}

impl Planner {
    fn new(clock: ClockChoice, over: Overrides) -> Self {
        Self { plan: Plan::default(), clock, over, known: HashMap::new() }
    }

    fn add(&mut self, entry: &Entry) -> Result<(), String> {
        let (plan, over) = (&mut self.plan, self.over);
        let workload = crate::workload(&entry.workload)?;
        // The first entry that names a case decides how it is measured.
        let known = self.known.entry(workload.name()).or_default();
        let (cases, left_out) = grid_beside(workload, &entry.axes, known)?;
        let all = plan.cases.len() + cases.len();
        if all > CASES_MAX {
            return Err(too_many(all as u128));
        }
        plan.left_out.extend(left_out);
        let forks = over.forks.unwrap_or(entry.forks).get();
        let forks = if workload.is_one_pass() { 1 } else { forks };
        let method = Method {
            forks,
            repetitions_min: entry.repetitions_min.get(),
            repetitions_max: Repetitions::MAX.get(),
            budget_ns: entry.budget.ns() / u64::from(forks),
            precision: over.precision.unwrap_or(entry.precision).get(),
            limit_ns: over.limit.unwrap_or(entry.limit).ns(),
            attempts_max: measure::attempts_max(),
            clock: self.clock,
        };
        for case in cases {
            let mut method = method;
            if over.limit.is_none() {
                // Even a host that backs memory at 100 MB/s finishes a case that was asked for.
                let rounds = u64::from(workload.repetitions(&case).unwrap_or(4)) + 1;
                let backed = workload.footprint(&case).saturating_mul(rounds).saturating_mul(10);
                let slow = nanoseconds(workload.seconds(&case) * rounds as f64 * 20.0);
                method.limit_ns = method.limit_ns.saturating_add(backed).saturating_add(slow);
            }
            plan.cases.push(Planned { workload: entry.workload.clone(), case, method });
        }
        Ok(())
    }

    /// The plan, its budgets scaled so that together they fit into the one that was asked for.
    fn finish(self) -> Plan {
        let Self { mut plan, over, .. } = self;
        let Some(budget) = over.budget else { return plan };
        let spent = |c: &Planned| c.method.budget_ns as f64 * f64::from(c.method.forks);
        let total: f64 = plan.cases.iter().map(spent).sum();
        for planned in &mut plan.cases {
            let share = planned.method.budget_ns as f64 / total.max(1.0);
            planned.method.budget_ns = nanoseconds(budget.get() * share);
        }
        plan
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
        // Each need is looked at once, however many cases have it.
        let mut needs: BTreeMap<Need, usize> = BTreeMap::new();
        for need in self.cases.iter().flat_map(Planned::needs) {
            *needs.entry(need).or_default() += 1;
        }
        let mut remedies: Vec<(Remedy, usize)> = Vec::new();
        for (remedy, count) in needs.iter().filter_map(|(need, n)| Some((need.pending()?, n))) {
            match remedies.iter_mut().find(|(known, _)| *known == remedy) {
                Some((_, cases)) => *cases += count,
                None => remedies.push((remedy, *count)),
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
    use std::hash::Hash;

    use super::*;
    use crate::grid::Unique;
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

    /// A thing that counts how often it is compared.
    #[derive(Debug, Clone)]
    struct Counted<'c>(u32, &'c std::cell::Cell<u64>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn finding_what_is_known_takes_a_comparison_each() {
        let compared = std::cell::Cell::new(0);
        let mut unique = Unique::default();
        for number in 0..20_000 {
            unique.add(Counted(number / 2, &compared));
        }
        assert_eq!(unique.all.len(), 10_000);
        assert!(compared.get() < 30_000, "{}", compared.get());
    }

    #[test]
    fn a_grid_that_is_too_large_is_refused_with_its_number_before_it_is_made() {
        let numbers = |to: u32| (1..=to).map(|n| n.to_string()).collect::<Vec<_>>();
        let rounds = ("rounds".to_owned(), numbers(1000));
        let mut axes = vec![rounds, ("threads".to_owned(), numbers(1000))];
        let error = grid(&Throughput, &axes).unwrap_err();
        assert!(error.contains("1000000 cases") && error.contains("at most 120000"), "{error}");
        // As many as no machine can count.
        axes.extend((0..16).map(|_| ("rounds".to_owned(), numbers(1000))));
        assert!(grid(&Throughput, &axes).unwrap_err().contains("too many"));
    }

    #[test]
    fn a_thousand_cases_are_planned_once_each_in_the_order_of_the_axes() {
        let numbers = |to: u32| (1..=to).map(|n| n.to_string()).collect::<Vec<_>>();
        let axes = [("rounds".to_owned(), numbers(40)), ("cpu".to_owned(), numbers(25))];
        let mut entry = Entry::new("fault/throughput", axes.to_vec());
        let plan = |entry: &Entry| of_cases(entry, ClockChoice::Raw, Overrides::default()).unwrap();
        let once = plan(&entry);
        entry.axes[0].1.extend(numbers(40));
        assert_eq!((once.cases.len(), plan(&entry)), (1000, once.clone()));
        let value = |index: usize, name| once.cases[index].case.get(name).unwrap();
        assert_eq!((value(24, "rounds"), value(24, "cpu")), ("1", "25"));
    }

    #[test]
    fn an_axis_without_a_value_is_named() {
        let error = grid(&Throughput, &axes(&[("page", &[])])).unwrap_err();
        assert!(error.contains("`page` has no value"), "{error}");
    }

    #[test]
    fn a_case_of_another_version_is_refused_by_parameter_and_value() {
        let case = complete(&Throughput, &[]).unwrap();
        assert_eq!(check("fault/throughput", &case), Ok(()));
        for (name, value) in [
            ("page", "3k"),
            ("page", "4096"),
            ("size", "auto"),
            ("size", "12q"),
            ("touch", "nowhere"),
            ("rounds", "0"),
            ("arms", "rust"),
            ("align", "ragged"),
            ("nosuch", "1"),
        ] {
            let error = check("fault/throughput", &case.clone().with(name, value)).unwrap_err();
            assert!(error.contains("fault/throughput") && error.contains(name), "{error}");
            assert!(name == "nosuch" || error.contains(value), "{error}");
        }
        let mut short = case;
        short.0.remove("page");
        assert!(check("fault/throughput", &short).unwrap_err().contains("`page`"));
        assert!(check("fault/nosuch", &short).unwrap_err().contains("fault/nosuch"));
    }

    #[test]
    fn a_time_that_is_too_long_is_none_and_the_longest_does_not_wrap() {
        let longest: Seconds = "31536000".parse().unwrap();
        let entry = Entry { limit: longest, ..Entry::new("fault/throughput", Vec::new()) };
        let plan = of_cases(&entry, ClockChoice::Raw, Overrides::default()).unwrap();
        assert!(plan.cases[0].method.limit_ns >= longest.ns());
    }

    #[test]
    fn a_budget_is_shared_among_the_cases() {
        let suite = suite::built_in("quick").unwrap();
        let clock = ClockChoice::Raw;
        let over = Overrides { budget: Some("3".parse().unwrap()), ..Overrides::default() };
        let plan = of_suite(&suite, clock, over).unwrap();
        let total: u64 =
            plan.cases.iter().map(|c| c.method.budget_ns * u64::from(c.method.forks)).sum();
        assert!(total <= 3_100_000_000, "{total}");
    }
}
