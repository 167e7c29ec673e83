//! What is worth a sentence: a row each.
//!
//! The one idea: a row names cells by workload and parameters, what they are set against, and how
//! far apart the two must be; the sentence takes the ratio in. Bounds of a row leave at least a tie
//! to either side of 1, so that no pair of cells can be told both ways.

use pagelab_record::vocabulary::{
    series::REPLAY,
    workload::{LATENCY, MEMTYPE_BANDWIDTH, REPLAY as REPLAYED, THROUGHPUT, USERFAULTFD},
};

use super::{
    Said,
    wording::{as_long_as, of_limit, of_the, pages},
};
use crate::{metric::Statistic, parameters};

/// A row.
pub(super) struct Rule {
    /// What programs know it by.
    pub(super) id: &'static str,
    /// What is compared.
    pub(super) cells: Cells,
    /// What must hold of the same value beside it.
    pub(super) beside: Option<Cells>,
    /// Of which values it is said, where there are several.
    pub(super) take: Take,
    /// The sentence.
    pub(super) says: fn(&Said<'_>) -> String,
    /// What it does not say.
    pub(super) caveat: &'static str,
}

/// Cells along a parameter, each set against one.
pub(super) struct Cells {
    pub(super) workload: &'static str,
    /// The parameter; of arms, the series that they have.
    pub(super) axis: &'static str,
    pub(super) base: Base,
    /// Which of its values are spoken of.
    pub(super) of: fn(&str) -> bool,
    /// What the case must be, as far as it says.
    pub(super) with: &'static [(&'static str, &'static str)],
    pub(super) statistic: Statistic,
    pub(super) bounds: Bounds,
}

impl Cells {
    /// Whether a value of the parameter is one to speak of.
    pub(super) fn speaks_of(&self, value: &str) -> bool {
        let is_base = match self.base {
            Base::Value(base) | Base::Arm(base) => base == value,
            Base::Clear => false,
        };
        !is_base && (self.of)(value)
    }
}

/// What cells are set against.
#[derive(Clone, Copy)]
pub(super) enum Base {
    /// The otherwise equal case with this value of the parameter.
    Value(&'static str),
    /// Another arm of the same processes.
    Arm(&'static str),
    /// The limit of clearing memory.
    Clear,
}

/// Beyond which ratios there is something to say.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) below: Option<f64>,
    pub(super) above: Option<f64>,
}

/// Of which values a rule speaks that has several.
pub(super) enum Take {
    /// All of them.
    Each,
    /// The first: of pages the smallest.
    First,
    /// The one that is furthest off, to either side.
    Furthest,
}

/// A difference of so much either way.
const fn beyond(share: f64) -> Bounds {
    Bounds { below: Some(1.0 - share), above: Some(1.0 / (1.0 - share)) }
}

const fn at_least(bound: f64) -> Bounds {
    Bounds { below: None, above: Some(bound) }
}

const fn at_most(bound: f64) -> Bounds {
    Bounds { below: Some(bound), above: None }
}

fn any(_: &str) -> bool {
    true
}

fn is_below_2m(page: &str) -> bool {
    parameters::page_rank(page) < parameters::page_rank("2m")
}

/// What a page is compared in where nothing else is asked about.
const WRITTEN: &[(&str, &str)] = &[("kind", "write")];
const TOUCHED: &[(&str, &str)] = &[("kind", "write"), ("populate", "touch"), ("backing", "anon")];
const TOUCHED_4K: &[(&str, &str)] =
    &[("kind", "write"), ("populate", "touch"), ("backing", "anon"), ("page", "4k")];
const BASE_PAGE: &[(&str, &str)] = &[("page", "4k")];
const WRITTEN_4K: &[(&str, &str)] = &[("kind", "write"), ("page", "4k")];

/// A cell of `fault/latency`: the median of single faults.
const FAULT: Cells = Cells {
    workload: LATENCY,
    axis: "page",
    base: Base::Value("2m"),
    of: any,
    with: WRITTEN,
    statistic: Statistic::MEDIAN,
    bounds: beyond(0.2),
};

/// A cell of `fault/throughput`: bytes a second of map, populate and touch together.
const MEMORY: Cells = Cells {
    workload: THROUGHPUT,
    axis: "page",
    base: Base::Value("2m"),
    of: any,
    with: TOUCHED,
    statistic: Statistic::BANDWIDTH,
    bounds: beyond(0.1),
};

/// Rates of a memory type.
const TYPED: Cells = Cells {
    workload: MEMTYPE_BANDWIDTH,
    axis: "type",
    base: Base::Value("wb"),
    of: any,
    with: &[("test", "write")],
    statistic: Statistic::BANDWIDTH,
    bounds: beyond(0.2),
};

const RECYCLED: &str = "pages are recycled, and one thread takes them";
const WAITS: &str = "the median of single faults; a thread waits for the whole page";
const IN_BULK: &str = "over map, populate and touch, with the faults of page tables";
const BY_KIND: &str =
    "the median of single faults; what each kind finds in memory is prepared before";

/// Every rule, in the order of reading.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "page-near-clear-limit",
        cells: Cells { base: Base::Clear, of: is_below_2m, bounds: at_least(0.8), ..MEMORY },
        beside: Some(Cells { bounds: at_most(0.25), ..FAULT }),
        take: Take::First,
        says: |said| {
            let share = of_limit(&said.ratios[0].ratio);
            let latency = of_the("latency", &said.ratios[1].ratio);
            format!("{} reach {share} at {latency} a 2 MiB page.", pages(said.value))
        },
        caveat: RECYCLED,
    },
    Rule {
        id: "page-near-2m",
        cells: Cells { of: is_below_2m, bounds: at_least(0.8), ..MEMORY },
        beside: Some(Cells { bounds: at_most(0.25), ..FAULT }),
        take: Take::First,
        says: |said| {
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            let latency = of_the("latency", &said.ratios[1].ratio);
            format!("{} bring {bandwidth} 2 MiB pages, at {latency} one.", pages(said.value))
        },
        caveat: RECYCLED,
    },
    Rule {
        id: "base-page-and-clear-limit",
        cells: Cells {
            base: Base::Clear,
            of: |page| page == "4k",
            bounds: Bounds { below: Some(0.5), above: Some(0.8) },
            ..MEMORY
        },
        beside: None,
        take: Take::Each,
        says: |said| {
            let share = of_limit(&said.ratios[0].ratio);
            format!("Touching fresh memory by 4 KiB pages reaches {share}.")
        },
        caveat: RECYCLED,
    },
    Rule {
        id: "huge-page-bandwidth",
        cells: Cells { base: Base::Value("4k"), of: |page| page == "2m", ..MEMORY },
        beside: None,
        take: Take::Each,
        says: |said| {
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("Fresh memory comes in 2 MiB pages at {bandwidth} 4 KiB pages.")
        },
        caveat: RECYCLED,
    },
    Rule {
        id: "huge-page-latency",
        cells: Cells { base: Base::Value("4k"), of: |page| page == "2m", ..FAULT },
        beside: None,
        take: Take::Each,
        says: |said| {
            let time = as_long_as(&said.ratios[0].ratio);
            format!("One write fault of 2 MiB takes {time} one of 4 KiB, for 512 times the memory.")
        },
        caveat: WAITS,
    },
    Rule {
        id: "hugetlb-bandwidth",
        cells: Cells { of: |page| page == "hugetlb-2m", ..MEMORY },
        beside: None,
        take: Take::Each,
        says: |said| {
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("2 MiB hugetlb pages bring {bandwidth} transparent ones.")
        },
        caveat: "pages of a pool are cleared at the fault, too, and are never swapped or split",
    },
    Rule {
        id: "hugetlb-latency",
        cells: Cells { of: |page| page == "hugetlb-2m", bounds: beyond(0.1), ..FAULT },
        beside: None,
        take: Take::Each,
        says: |said| {
            let time = as_long_as(&said.ratios[0].ratio);
            format!("A fault for a 2 MiB hugetlb page takes {time} one for a transparent page.")
        },
        caveat: WAITS,
    },
    Rule {
        id: "kind-of-fault",
        cells: Cells { axis: "kind", base: Base::Value("write"), with: BASE_PAGE, ..FAULT },
        beside: None,
        take: Take::Furthest,
        says: |said| {
            let time = as_long_as(&said.ratios[0].ratio);
            format!("A 4 KiB {} fault takes {time} a write to fresh memory.", said.value)
        },
        caveat: BY_KIND,
    },
    Rule {
        id: "random-order",
        cells: Cells {
            axis: "order",
            base: Base::Value("ascending"),
            with: WRITTEN_4K,
            bounds: beyond(0.1),
            ..FAULT
        },
        beside: None,
        take: Take::Each,
        says: |said| {
            let time = as_long_as(&said.ratios[0].ratio);
            format!("A 4 KiB write fault in random order takes {time} one in ascending order.")
        },
        caveat: "the median; most faults that allocate a page table are in a series of their own",
    },
    Rule {
        id: "under-pressure",
        cells: Cells { axis: "pressure", base: Base::Value("none"), with: WRITTEN_4K, ..FAULT },
        beside: None,
        take: Take::Each,
        says: |said| {
            let time = as_long_as(&said.ratios[0].ratio);
            let pressure = said.value;
            format!("Under pressure ({pressure}) a 4 KiB write fault takes {time} one without.")
        },
        caveat: "the median; reclaim shows in the tail first",
    },
    Rule {
        id: "populate",
        cells: Cells {
            axis: "populate",
            base: Base::Value("touch"),
            of: |way| !matches!(way, "mlock-onfault" | "populate-read"),
            with: WRITTEN_4K,
            ..MEMORY
        },
        beside: None,
        take: Take::Each,
        says: |said| {
            let way = match said.value {
                "map-populate" => "MAP_POPULATE",
                "madvise-populate" => "MADV_POPULATE_WRITE",
                other => other,
            };
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("{way} brings 4 KiB pages at {bandwidth} touching them one by one.")
        },
        caveat: IN_BULK,
    },
    Rule {
        id: "threads",
        cells: Cells { axis: "threads", base: Base::Value("1"), with: TOUCHED_4K, ..MEMORY },
        beside: None,
        take: Take::Each,
        says: |said| {
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("{} threads together fault 4 KiB pages in at {bandwidth} one.", said.value)
        },
        caveat: "threads of one address space, and of one mapping",
    },
    Rule {
        id: "processes",
        cells: Cells { axis: "processes", base: Base::Value("1"), with: TOUCHED_4K, ..MEMORY },
        beside: None,
        take: Take::Each,
        says: |said| {
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("{} processes together fault 4 KiB pages in at {bandwidth} one.", said.value)
        },
        caveat: "each has its own address space",
    },
    Rule {
        id: "userfaultfd-handler",
        cells: Cells {
            workload: USERFAULTFD,
            axis: "handler",
            base: Base::Value("sigbus"),
            with: &[("op", "copy"), ("page", "4k")],
            ..FAULT
        },
        beside: None,
        take: Take::Furthest,
        says: |said| {
            let time = as_long_as(&said.ratios[0].ratio);
            let handler = said.value;
            format!(
                "A userfaultfd fault that a thread resolves ({handler}) takes {time} one that the \
                 faulting thread resolves in SIGBUS."
            )
        },
        caveat: "UFFDIO_COPY of 4 KiB; the resolver does nothing else",
    },
    Rule {
        id: "memory-type-stores",
        cells: TYPED,
        beside: None,
        take: Take::Each,
        says: |said| {
            let kind = parameters::display_type(said.value);
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("Ordinary stores to {kind} memory run at {bandwidth} WB memory.")
        },
        caveat: "until the end that the test names, one thread",
    },
    Rule {
        id: "memory-type-loads",
        cells: Cells { with: &[("test", "read")], ..TYPED },
        beside: None,
        take: Take::Each,
        says: |said| {
            let kind = parameters::display_type(said.value);
            let bandwidth = of_the("bandwidth", &said.ratios[0].ratio);
            format!("Loads from {kind} memory run at {bandwidth} WB memory.")
        },
        caveat: "what a cache holds of WB memory is in it, one thread",
    },
    Rule {
        id: "replay-backend",
        cells: Cells {
            workload: REPLAYED,
            axis: REPLAY,
            base: Base::Arm("base"),
            of: |arm| !arm.starts_with("noop"),
            with: &[],
            statistic: Statistic::MEDIAN,
            bounds: beyond(0.15),
        },
        beside: None,
        take: Take::Furthest,
        says: |said| {
            let time = of_the("CPU time", &said.ratios[0].ratio);
            let trace = parameters::display_trace(said.case.get("trace").unwrap_or("the trace"));
            format!("{} replays {trace} in {time} base.", said.value)
        },
        caveat: "one layout of the code, which alone moves a loop by 15 %; decoding is in it",
    },
];

#[cfg(test)]
mod tests {
    use pagelab_record::verdict::DELTA;

    use super::*;

    #[test]
    fn no_rule_speaks_of_a_tie_and_none_has_the_id_of_another() {
        let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            for Cells { bounds: Bounds { below, above }, .. } in
                [Some(&rule.cells), rule.beside.as_ref()].into_iter().flatten()
            {
                assert!(below.is_some() || above.is_some(), "{}", rule.id);
                assert!(below.unwrap_or(0.0) < above.unwrap_or(f64::INFINITY), "{}", rule.id);
                assert!(below.is_none_or(|below| below <= 1.0 - DELTA), "{}", rule.id);
            }
        }
    }
}
