//! A case of `fault/throughput`, read once; and what is turned away.

use pagelab_bench::{params::PageSize, refusal::Refusal};
use pagelab_record::Case;
use pagelab_sys::{loops::beside::Call, loops::touch::Stride};

use crate::fault::{
    beside,
    kinds::{self, FaultKind, kind_of},
    populate::{self, Populate},
    space::{size_of, stride_of},
    workers::workers,
};

/// What is compared inside a case, in the order of the arms.
pub(super) const ARMS: &[&str] = &["pagelab", "c", "page-fault1", "pft"];

/// A case, read.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Asked {
    pub(super) kind: &'static dyn FaultKind,
    pub(super) page: PageSize,
    pub(super) backing: &'static str,
    pub(super) populate: Populate,
    pub(super) stride: Stride,
    pub(super) size: u64,
    pub(super) threads: usize,
    pub(super) processes: usize,
    pub(super) arms: Vec<&'static str>,
    pub(super) call: Option<Call>,
    pub(super) is_random: bool,
    pub(super) is_ragged: bool,
    pub(super) is_bound: bool,
    /// A mapping for each thread.
    pub(super) divides: bool,
    /// No CPU is left for a thread beside.
    pub(super) lacks_cpus: bool,
    pub(super) picks_cpus: bool,
    pub(super) fifo: bool,
    pub(super) reads: bool,
    pub(super) lies_truly: bool,
}

impl Asked {
    pub(super) fn of(case: &Case) -> Self {
        let is = |name: &str, value: &str| case.get(name) == Some(value);
        let kind = kind_of(case);
        let (threads, processes) = workers(case);
        let list = case.get("cpu").and_then(pagelab_sys::machine::topology::parse_list);
        let is_told = !is("lie", "none") && kind.name() != "write";
        Self {
            kind,
            page: PageSize::of(case),
            backing: match case.get("backing") {
                Some("brk") => "brk",
                Some("fixed") => "fixed",
                _ => "anon",
            },
            populate: Populate::of(case),
            stride: stride_of(case),
            size: size_of(case),
            threads,
            processes,
            arms: arms(case),
            call: beside::call_of(case),
            is_random: is("order", "random"),
            is_ragged: is("align", "ragged"),
            is_bound: !is("mem-node", "any"),
            divides: is("vmas", "each"),
            lacks_cpus: is("cpu", "none") || list.is_some_and(|cpus| cpus.len() <= threads),
            picks_cpus: is("cpu", "auto"),
            fifo: is("fifo", "on"),
            reads: is("lie", "read"),
            lies_truly: is_told || populate::lie_is_true(case) || kinds::lie_is_true(case),
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.threads * self.processes
    }

    pub(super) fn is_hugetlb(&self) -> bool {
        matches!(self.page, PageSize::Hugetlb(_))
    }

    pub(super) fn is_folio(&self) -> bool {
        matches!(self.page, PageSize::Folio(_))
    }

    pub(super) fn is_write(&self) -> bool {
        self.kind.name() == "write"
    }

    pub(super) fn has(&self, arm: &str) -> bool {
        self.arms.contains(&arm)
    }

    pub(super) fn has_peer(&self) -> bool {
        self.has("page-fault1") || self.has("pft")
    }

    /// Whether all is as a short loop in C has it.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self.page, PageSize::Base | PageSize::Thp)
            && self.backing == "anon"
            && self.populate == Populate::Touch
            && !self.is_random
            && !self.is_ragged
            && !self.is_bound
            && self.stride.bytes == 8
    }

    pub(super) fn touches_each_base_page(&self) -> bool {
        self.page == PageSize::Base && self.stride.step == 4096
    }

    /// Whether nothing is asked for that only a first store has.
    pub(super) fn is_ordinary(&self) -> bool {
        self.stride.bytes == 8
            && self.stride.step as u64 == self.page.bytes()
            && self.populate == Populate::Touch
            && self.backing == "anon"
            && !self.is_ragged
    }

    pub(super) fn is_indivisible(&self) -> bool {
        let step = self.stride.step as u64;
        let window = if self.is_folio() { 1 << 20 } else { 1 };
        let unit = self.page.bytes().max(step).max(window) * self.workers() as u64;
        !self.size.is_multiple_of(unit) || (self.is_folio() && step > window)
    }
}

/// What is turned away beside what other rooms turn away.
pub(super) const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.is_hugetlb() && asked.backing != "anon",
        "backing=brk|fixed with page=hugetlb-…",
        "hugetlb pages have no brk; use backing=anon",
    ),
    Refusal::new(
        |asked| asked.backing == "brk" && asked.is_folio(),
        "backing=brk with page=16k … 1m",
        "one heap range would come in 2m pages; use backing=anon",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.is_hugetlb(),
        "align=ragged with page=hugetlb-…",
        "a hugetlb mapping is always aligned",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.page == PageSize::Base,
        "align=ragged with page=4k",
        "a mapping has no ends smaller than a base page",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.is_folio(),
        "align=ragged with page=16k … 1m",
        "large folios lie in windows of their own; use page=2m",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.stride.step != 4096,
        "align=ragged without touch=…@4k",
        "the ends are touched only by a stride of 4k",
    ),
    Refusal::new(
        |asked| asked.threads > 1 && asked.processes > 1,
        "threads and processes above 1",
        "they are two questions; ask one at a time",
    ),
    Refusal::new(
        |asked| asked.is_random && asked.threads > 1,
        "order=random with threads above 1",
        "threads share the range in ascending shares",
    ),
    Refusal::new(
        |asked| asked.has("c") && !(asked.is_bare() && !asked.fifo && asked.workers() == 1),
        "arms=c outside page=4k|2m, anon, touch=8@…, one ordinary worker",
        "the C loop does no more",
    ),
    Refusal::new(
        |asked| asked.has_peer() && !(asked.is_bare() && asked.touches_each_base_page()),
        "arms=page-fault1|pft outside page=4k, anon, ascending touch=8@4k",
        "their loops do no more",
    ),
    Refusal::new(
        Asked::is_indivisible,
        "size not divisible by page and stride × workers",
        "every worker touches whole pages",
    ),
    Refusal::new(
        |asked| asked.lies_truly,
        "a lie that would be the truth, or that this page size cannot tell",
        "nothing would be proven",
    ),
    Refusal::new(
        |asked| !asked.kind.in_throughput(),
        "a kind whose cost is a call",
        "nothing is touched in bulk; use fault/latency",
    ),
    Refusal::new(
        |asked| !asked.is_write() && !asked.is_ordinary(),
        "a kind other than write with populate, backing, align or touch",
        "only a first store has these; use kind=write",
    ),
    Refusal::new(
        |asked| (asked.has("c") || asked.has_peer()) && !asked.is_write(),
        "other arms with a kind other than write",
        "the C loops store to fresh memory",
    ),
    Refusal::new(
        |asked| asked.divides && (asked.threads == 1 || asked.is_folio() || asked.backing == "brk"),
        "vmas=each with threads=1, backing=brk or page=16k … 1m",
        "there is nothing to divide",
    ),
    Refusal::new(
        |asked| asked.call.is_some() && asked.processes > 1,
        "beside with processes above 1",
        "calls beside are made in the same address space",
    ),
    Refusal::new(
        |asked| {
            let is_other = asked.has("c") || asked.has_peer() || asked.populate != Populate::Touch;
            asked.call.is_some() && is_other
        },
        "beside with populate or other arms",
        "the calls are made beside touches that fault",
    ),
    Refusal::new(
        |asked| asked.call.is_some() && asked.lacks_cpus,
        "beside with cpu=none or fewer CPUs than threads and one more",
        "the thread that calls needs a CPU of its own",
    ),
];

fn arms(case: &Case) -> Vec<&'static str> {
    let asked = case.get("arms").unwrap_or("pagelab");
    ARMS.iter().copied().filter(|arm| asked.split(',').any(|word| word == *arm)).collect()
}
