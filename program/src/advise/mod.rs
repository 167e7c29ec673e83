//! Which way of getting fresh memory is the fastest here: the question, and the strategies.
//!
//! The one idea: a strategy is an ordinary case of `fault/throughput` over a sample of the memory
//! that was asked about, so each has the proof that any case has. This file says which strategies
//! there are, what each costs in memory and rights for all of the memory, and how large the sample
//! is; [`Course`] says which of them is measured next. What comes out is read by the report.
//!
//! A strategy is not judged here.

mod code;
mod course;

use pagelab_bench::{
    PageSize, Workload,
    measure::Method,
    plan::{self, Planned},
};
use pagelab_fault::{limit, throughput::THROUGHPUT};
use pagelab_mappings::kinds;
use pagelab_record::{
    Case,
    asked::{Advise, Lack, Memory, Strategy},
    units::{display_bytes, format_bytes, whole},
};
use pagelab_sys::{machine::Topology, time::ClockChoice};

pub use self::course::{Course, Turn, out_of_time};
pub use pagelab_record::asked::Policy;

/// The largest part of the memory that a sample takes.
pub const SHARE_MAX: u64 = 4;
/// Larger samples say no more.
const SAMPLE_MAX: u64 = 512 << 20;
/// Bytes that can be measured in a second of budget, first round of all strategies included.
const SAMPLED_PER_SECOND: f64 = 540.0 * 1_048_576.0;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// Bytes that shall be present.
    pub size: u64,
    /// Threads that may be used for it.
    pub threads: u32,
    /// What may be named.
    pub policy: Policy,
    /// Seconds that the answer may take.
    pub budget_s: f64,
    /// Measure under `SCHED_FIFO`.
    pub fifo: bool,
}

/// Why a question is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It asks for what makes no sense.
    Question(String),
    /// It asks for more than this host has.
    Host(String),
}

/// Page sizes of a row of [`ROWS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    Base,
    /// Each size below the PMD's that the kernel has.
    Folios,
    Thp,
    Hugetlb,
}

/// How many threads work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crew {
    One,
    /// All that may be used; no row where that is one.
    Many,
    /// All that may be used, be it one.
    All,
}

/// One row: page, way, crew, how much there is to set up (the least is the simplest), and what to
/// bear in mind.
type Row = (Pages, &'static str, Crew, u32, &'static str);

const SILENT: &str = "does not say when memory ran short";
const STAYS: &str = "is never paged out";
const STARTED: &str = "threads that run already: starting them is not in the time";
const FALLS_BACK: &str = "comes in smaller pages where memory is fragmented";
const WINDOWS: &str = "measured in windows of 1 MiB; needs the kernel to offer this size";
const POOL: &str = "the pool is set aside for such pages alone";

/// Every strategy, in the order in which the first round takes them.
const ROWS: &[Row] = &[
    (Pages::Base, "touch", Crew::One, 0, ""),
    (Pages::Thp, "touch", Crew::One, 4, FALLS_BACK),
    (Pages::Thp, "touch", Crew::Many, 14, FALLS_BACK),
    (Pages::Hugetlb, "touch", Crew::Many, 40, POOL),
    (Pages::Thp, "madvise-populate", Crew::One, 5, FALLS_BACK),
    (Pages::Thp, "madvise-populate-each", Crew::Many, 15, FALLS_BACK),
    (Pages::Hugetlb, "touch", Crew::One, 30, POOL),
    (Pages::Hugetlb, "map-populate", Crew::One, 31, POOL),
    (Pages::Hugetlb, "madvise-populate-each", Crew::Many, 41, POOL),
    (Pages::Base, "touch", Crew::Many, 10, STARTED),
    (Pages::Base, "map-populate", Crew::One, 1, SILENT),
    (Pages::Base, "madvise-populate", Crew::One, 2, ""),
    (Pages::Base, "madvise-populate-each", Crew::Many, 11, STARTED),
    (Pages::Base, "mlock", Crew::One, 3, STAYS),
    (Pages::Folios, "touch", Crew::All, 20, WINDOWS),
];

/// Strategies whose memory is locked, in the same form.
const LOCKED_ROWS: &[Row] = &[
    (Pages::Base, "mlock", Crew::One, 0, STAYS),
    (Pages::Thp, "mlock", Crew::One, 4, FALLS_BACK),
    (Pages::Thp, "mlock-onfault", Crew::Many, 15, FALLS_BACK),
    (Pages::Thp, "mlock-onfault", Crew::One, 5, FALLS_BACK),
    (Pages::Base, "map-locked", Crew::One, 1, SILENT),
    (Pages::Base, "mlock-onfault", Crew::One, 2, "only what is touched is locked"),
    (Pages::Base, "mlock-onfault", Crew::Many, 12, STARTED),
];

/// What is asked of a run, with the case of each strategy.
#[derive(Debug, Clone)]
pub struct Survey {
    /// The part of the run's header that the report reads.
    pub asked: Advise,
    /// The case of each strategy over the sample, in the same order.
    pub cases: Vec<Case>,
}

impl Question {
    /// The strategies over a sample, with what each takes for all of the memory.
    ///
    /// # Errors
    /// A sentence that says what to ask for instead, when the memory is too small to be sampled or
    /// more than there is.
    pub fn survey(&self) -> Result<Survey, Refused> {
        let budget = Topology::machine().memory_budget();
        if self.size > budget.bytes {
            return Err(Refused::Host(format!(
                "--size {}: {} are available, limited by {}; choose a smaller size",
                format_bytes(self.size),
                display_bytes(budget.bytes as f64),
                budget.limited_by
            )));
        }
        let rows = self.rows(&PageSize::offered());
        let sample = self.sample(rows.len()).map_err(Refused::Question)?;
        let (mut strategies, mut cases) = (Vec::new(), Vec::new());
        for (page, populate, threads, effort, caveat) in rows {
            let strategy = self.strategy(page, populate, threads, sample);
            let (strategy, case) = strategy.map_err(Refused::Question)?;
            if self.policy != Policy::Keep || !needs_a_setting(&case) {
                strategies.push(Strategy { effort, caveat: caveat.to_owned(), ..strategy });
                cases.push(case);
            }
        }
        let topology = Topology::machine();
        let cache = topology.caches(topology.default_cpu().unwrap_or(0)).llc;
        let asked = Advise {
            size: self.size,
            threads: self.threads,
            policy: self.policy,
            sample,
            cache: cache.unwrap_or(0),
            strategies,
        };
        Ok(Survey { asked, cases })
    }

    /// The rows that the policy allows, for the page sizes of a kernel: page, way, threads, effort,
    /// caveat.
    fn rows(&self, offered: &[PageSize]) -> Vec<(PageSize, &str, u32, u32, &str)> {
        let table = if self.policy == Policy::Locked { LOCKED_ROWS } else { ROWS };
        let mut rows = Vec::new();
        for (pages, populate, crew, effort, caveat) in table {
            let threads = match crew {
                Crew::One => 1,
                Crew::Many if self.threads == 1 => continue,
                Crew::Many | Crew::All => self.threads,
            };
            let allowed = match self.policy {
                Policy::Base => *pages == Pages::Base,
                Policy::Transparent => *pages != Pages::Hugetlb,
                _ => true,
            };
            let is_meant = |page: &&PageSize| match pages {
                Pages::Base => **page == PageSize::Base,
                Pages::Folios => matches!(page, PageSize::Folio(_)),
                Pages::Thp => **page == PageSize::Thp,
                Pages::Hugetlb => **page == PageSize::Hugetlb(21),
            };
            for page in offered.iter().filter(is_meant).filter(|_| allowed) {
                rows.push((*page, *populate, threads, *effort, *caveat));
            }
        }
        rows
    }

    /// Bytes of a sample, so that so many strategies can be gone through in the budget: never more
    /// than a quarter of the memory, whole PMD-sized pages for each thread.
    ///
    /// # Errors
    /// When a quarter holds no such pages.
    fn sample(&self, strategies: usize) -> Result<u64, String> {
        let unit = (2 << 20) * u64::from(self.threads);
        // Where there are few, the time is better spent on rounds: a large sample that the host
        // took back costs a second to warm.
        let affordable = self.budget_s * SAMPLED_PER_SECOND / strategies.max(12) as f64;
        let most = whole(affordable).min(SAMPLE_MAX).max(unit).min(self.size / SHARE_MAX);
        match most / unit {
            0 => Err(format!(
                "--size {}: a quarter of it is too little to measure with {} threads; ask for {} \
                 or more",
                format_bytes(self.size),
                self.threads,
                format_bytes((SHARE_MAX * unit).next_power_of_two())
            )),
            units => Ok(unit << units.ilog2()),
        }
    }

    fn strategy(
        &self,
        page: PageSize,
        populate: &str,
        threads: u32,
        sample: u64,
    ) -> Result<(Strategy, Case), String> {
        let (page_name, threads_name) = (page.to_string(), threads.to_string());
        let of_size = |bytes: u64| {
            let size = format_bytes(bytes);
            let mut pairs = vec![
                ("page", page_name.as_str()),
                ("populate", populate),
                ("threads", threads_name.as_str()),
                ("size", size.as_str()),
            ];
            if self.fifo {
                pairs.push(("fifo", "on"));
            }
            plan::complete(&THROUGHPUT, &pairs)
        };
        let case = of_size(sample)?;
        // Whole pages for each thread: what is lacking is asked of memory rounded up.
        let unit = page.bytes().max(1 << 20) * u64::from(threads);
        let whole = of_size(self.size.next_multiple_of(unit))?;
        let lacking = THROUGHPUT.read(&whole).needs().into_iter().filter(|need| !need.check());
        let lacks = lacking.map(|need| Lack { need: need.name(), cure: need.cure() });
        let lacks: Vec<Lack> = lacks.collect();
        let rounded = self.size.next_multiple_of(page.bytes());
        let is_pool = matches!(page, PageSize::Hugetlb(_));
        let memory = Memory {
            rounding: rounded - self.size,
            pool: if is_pool { rounded } else { 0 },
            locked: if kinds::asked(&case).populate.locks() { self.size } else { 0 },
        };
        let crew = if threads > 1 { format!(" ×{threads}") } else { String::new() };
        let strategy = Strategy {
            name: format!("{populate} {page}{crew}"),
            page: page_name,
            populate: populate.to_owned(),
            threads,
            effort: 0,
            memory,
            caveat: String::new(),
            lacks,
            code: code::code(page, populate, threads, rounded),
        };
        Ok((strategy, case))
    }
}

/// Whether a case needs a setting of the machine that is not as it needs it.
fn needs_a_setting(case: &Case) -> bool {
    THROUGHPUT.read(case).needs().iter().any(|need| need.pending().is_some())
}

impl Survey {
    /// The cases to measure: the clear limit first, where its buffer is within a quarter of the
    /// memory too, then the strategies in the order of the first round.
    pub fn plan(&self, clock: ClockChoice) -> (Option<Planned>, Vec<Planned>) {
        let method = |repetitions: u32, budget_ns| Method {
            forks: 1,
            turns: 1,
            repetitions_min: repetitions,
            repetitions_max: repetitions,
            budget_ns,
            precision: 0.005,
            limit_ns: 60_000_000_000,
            attempts_max: 3,
            clock,
            planted: None,
        };
        let limit = &limit::bulk::CLEAR;
        let clear = Case::default().with("level", "dram");
        let asked = limit.read(&clear);
        let fits = asked.footprint() <= self.asked.size / SHARE_MAX
            && asked.needs().iter().all(|need| need.check());
        let clear = fits.then(|| Planned::new(limit, clear, method(3, 100_000_000)));
        let strategies =
            self.cases.iter().map(|case| Planned::new(&THROUGHPUT, case.clone(), method(2, 1)));
        (clear, strategies.collect())
    }

    /// The most memory that any case takes at once.
    pub fn footprint(&self) -> u64 {
        self.cases.iter().map(|case| kinds::asked(case).size).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
