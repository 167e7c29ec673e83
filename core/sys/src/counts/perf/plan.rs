//! What a session is to watch: whom, and for which events.

use super::tracefs::Tracepoint;

/// What a source is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Faults that needed no I/O, told when they are handled.
    MinorFaults,
    /// Faults that did.
    MajorFaults,
    /// Nothing of its own: for [`Source::mappings`].
    Nothing,
    /// A tracepoint.
    Tracepoint(Tracepoint),
}

/// When a source tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All the time.
    Always,
    /// While events are told in full, as they are at first.
    InFull,
    /// While they are told in brief: thread, time and address, in place of what is told in full.
    InBrief,
}

/// What is told of where the program was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The instruction at most.
    None,
    /// Return addresses, as frame pointers have them.
    Chain,
    /// Those, the registers and the upper end of the stack
    /// ([`Body::Stack`](super::Body::Stack)), of
    /// one event in this many on each CPU; of no other event of the source is anything told.
    Stack(u64),
}

/// One kind of events to be told.
#[derive(Debug, Clone)]
pub struct Source {
    /// When it tells.
    pub when: When,
    /// What it is about.
    pub event: Event,
    /// What samples have of callers.
    pub callers: Callers,
    /// Whether mappings, names, forks and exits are told too.
    pub mappings: bool,
    /// Bytes of the ring of each CPU; halved until the kernel allows it.
    pub ring_bytes: usize,
    /// Whether the session makes no sense without it.
    pub required: bool,
}

/// Whom a session watches.
#[derive(Debug, Clone)]
pub enum Target {
    /// A process that waits to `execve`: watched from then on, with all that it starts.
    OnExec(u32),
    /// These threads from [`Session::start`](super::Session::start) on, with all that they start.
    Threads(Vec<u32>),
}

/// What to watch.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whom.
    pub target: Target,
    /// For what.
    pub sources: Vec<Source>,
}
