//! The places in a fault at which a stock kernel tells of it, and the right to be told.
//!
//! The one idea: a *mark* is an event that a fault passes once; the stage that ends there has a
//! name. What a kernel does not have, or does not tell once for each fault, is no mark there: the
//! stages around it become one.

use pagelab_bench::Plain;
use pagelab_sys::{
    SysError,
    counts::perf::{
        Body, Callers, Event, Plan, Record, Session, Source, Target, When,
        tracefs::{Tracepoint, tracepoints},
    },
    process::thread_id,
};

use super::marks::Told;

/// Bytes of a sample in a ring, at most: its head, 40 bytes, and the fields of a tracepoint.
const SAMPLE_BYTES: usize = 160;

/// One place in a fault.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// The tracepoint; none for the software event of minor faults.
    tracepoint: Option<&'static str>,
    /// The stage that ends here.
    pub(super) stage: &'static str,
    /// Only in faults that allocate.
    allocates: bool,
}

/// In the order in which a fault passes them:
/// - the handler has been entered (x86, `arch/x86/mm/fault.c`);
/// - the page has been allocated and, on x86, cleared (`mm/page_alloc.c`: the event stands after
///   the preparation of the page, which clears where `__GFP_ZERO` asks for it);
/// - the page was counted as the process's, right before its page-table entry is set
///   (`mm/memory.c`; before Linux 6.2 in batches of 64 faults, hence no mark there);
/// - the fault has been handled (`mm_account_fault` in `mm/memory.c`).
const MARKS: [Mark; 4] = [
    Mark { tracepoint: Some("exceptions:page_fault_user"), stage: "entry", allocates: false },
    Mark { tracepoint: Some("kmem:mm_page_alloc"), stage: "allocation", allocates: true },
    Mark { tracepoint: Some("kmem:rss_stat"), stage: "mapping", allocates: true },
    Mark { tracepoint: None, stage: "completion", allocates: false },
];

/// The last stage: from the last mark to the next instruction of the program.
pub(super) const RETURN: &str = "return";
/// From the stamp before the touch to the stamp after it.
pub(super) use pagelab_record::vocabulary::series::END_TO_END as WHOLE;

/// The marks of one kind of fault that this kernel has.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    marks: Vec<(Mark, Event)>,
}

impl Marks {
    /// Those that a fault passes which allocates, or one which does not; `None` where this process
    /// may not see the kernel's tracepoints or there is none for the entry.
    pub(super) fn of(allocates: bool) -> Option<Self> {
        let wanted: Vec<Mark> =
            MARKS.into_iter().filter(|mark| allocates || !mark.allocates).collect();
        let names: Vec<&str> = wanted.iter().filter_map(|mark| mark.tracepoint).collect();
        let mut found = tracepoints(&names).into_iter();
        let event = |mark: Mark| {
            let event = match mark.tracepoint {
                Some(_) => Event::Tracepoint(found.next()??),
                None => Event::MinorFaults,
            };
            Some((mark, event))
        };
        let marks: Vec<_> = wanted.into_iter().filter_map(event).collect();
        let has_entry = marks.first().is_some_and(|(mark, _)| mark.stage == MARKS[0].stage);
        has_entry.then_some(Self { marks })
    }

    /// The first only.
    pub(super) fn first(&self) -> Self {
        Self { marks: self.marks[..1].to_vec() }
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// The name of the stage that ends at a mark.
    pub(super) fn stage(&self, mark: usize) -> &'static str {
        self.marks[mark].0.stage
    }

    /// A session that is told of them for this thread, with room for so many faults.
    pub(super) fn session(&self, faults: usize) -> Result<Session, SysError> {
        let source = |(_, event): &(Mark, Event)| Source {
            when: When::Always,
            event: event.clone(),
            callers: Callers::None,
            mappings: false,
            ring_bytes: faults * SAMPLE_BYTES,
            required: true,
        };
        let sources = self.marks.iter().map(source).collect();
        Session::open(&Plan { target: Target::Threads(vec![thread_id()]), sources })
    }

    /// What a record of the session says.
    pub(super) fn told(&self, record: &Record) -> Option<Told> {
        let Body::Sample { addr, raw, .. } = &record.body else { return None };
        let field = |point: &Tracepoint| point.field(raw, "address");
        let address = match &self.marks.get(record.source)?.1 {
            Event::Tracepoint(point) => field(point),
            _ => Some(*addr),
        };
        Some(Told { mark: record.source, time: record.time_ns, address })
    }
}

/// Whether this process may be told of its own faults at their entry.
fn may_trace() -> bool {
    Marks::of(false).is_some_and(|marks| marks.session(1).is_ok())
}

/// The kernel tells this process of its own faults at their entry: a tracepoint.
pub const TRACEPOINTS: Plain = Plain {
    name: "the kernel's tracepoints of page faults",
    has: may_trace,
    cure: "run as root (in a container with CAP_PERFMON, CAP_SYS_ADMIN and perf_event_open), on \
           an x86-64 kernel with tracefs",
};
