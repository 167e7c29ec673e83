//! The session that receives the faults of a program, and the tally of what it tells.
//!
//! The one idea: what a session may tell depends on rights, so each source is opened for itself,
//! and what could not be is a part of the result ([`Sight`]). How much is told of each fault
//! depends on how many come ([`super::pace`]).

use pagelab_sys::{
    SysError,
    counts::perf::{
        Callers, Event, Plan, Session, Source, Target, Told, When, tracefs::tracepoints,
    },
    machine::Topology,
    time::monotonic_raw_ns,
};

use super::{
    allowed::Limits,
    callers::EVERY,
    calls,
    counts::Seen,
    pace::Pace,
    tally::{Role, Tally},
};

/// What a session could see.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sight {
    /// Faults taken in kernel mode.
    pub kernel: bool,
    /// Exceptions with their error codes.
    pub exceptions: bool,
    /// Allocations of pages.
    pub allocations: bool,
    /// Calls that change what memory may become.
    pub calls: bool,
    /// Stacks, to unwind.
    pub stacks: bool,
}

/// The sources of minor faults: in full, and in brief.
const MINOR: usize = 0;
const BRIEF: usize = 3;
/// To change what is told takes a call for each event, which interrupts its CPU: of more events it
/// would take longer than it saves.
const EVENTS_MAX: usize = 2048;

/// The sources of a session and what each is: what ends a fault stands before what it consists of.
fn sources() -> (Vec<Source>, Vec<Role>) {
    let names = [
        "exceptions:page_fault_user",
        "exceptions:page_fault_kernel",
        "kmem:mm_page_alloc",
        "sched:sched_switch",
    ];
    let names: Vec<&str> = names.into_iter().chain(calls::POINTS).collect();
    let mut points = tracepoints(&names).into_iter();
    // All rings together stay below 192 MiB, however many CPUs there are.
    let cpus = Topology::machine().cpus().online.len().max(1);
    let large = (4 << 20).min((32 << 20) / cpus).max(64 << 10);
    let source = |when, event, chain, mappings, ring_bytes, required| Source {
        when,
        event,
        callers: if chain { Callers::Chain } else { Callers::None },
        mappings,
        ring_bytes,
        required,
    };
    let mut sources = vec![
        source(When::InFull, Event::MinorFaults, true, false, large, true),
        source(When::Always, Event::MajorFaults, true, false, large / 8, true),
        source(When::Always, Event::Nothing, false, true, large / 4, true),
        source(When::InBrief, Event::MinorFaults, false, false, large, false),
    ];
    let handled = |major, brief| Role::Handled { major, brief };
    let mut roles =
        vec![handled(false, false), handled(true, false), Role::Mappings, handled(false, true)];
    let mut add = |when, point, role: &dyn Fn(_) -> Role, ring_bytes| {
        if let Some(point) = point {
            let role = role(Clone::clone(&point));
            // Whoever gives memory back is told with its callers.
            let chain = matches!(role, Role::Call(_));
            roles.push(role);
            sources.push(source(when, Event::Tracepoint(point), chain, false, ring_bytes, false));
        }
    };
    // Whether a page was there and whether it was a store says what a fault is: always told.
    add(When::Always, points.next().flatten(), &Role::Exception, large);
    add(When::Always, points.next().flatten(), &Role::Exception, large / 4);
    add(When::InFull, points.next().flatten(), &Role::Allocation, large);
    add(When::Always, points.next().flatten(), &Role::Switch, large / 8);
    for point in points {
        add(When::Always, point, &Role::Call, large / 8);
    }
    // What its ring has no room for is looked at less often. It comes last: where a user may lock
    // little memory, the others have it.
    let stack = source(When::InFull, Event::MinorFaults, true, false, large / 4, false);
    sources.push(Source { callers: Callers::Stack(EVERY), ..stack });
    roles.push(Role::Stack);
    (sources, roles)
}

/// A session and the tally of what it tells.
#[derive(Debug)]
pub(crate) struct Eyes {
    session: Session,
    tally: Tally,
    sight: Sight,
    limits: Limits,
    room: Option<u64>,
    pace: Pace,
}

impl Eyes {
    /// Eyes for a program that waits to be started, and for all that it starts. `supposes_thp`:
    /// what larger pages would do is asked though whoever starts it switches them off for it.
    pub(crate) fn on_exec(process: u32, supposes_thp: bool) -> Result<Self, SysError> {
        let mut eyes = Self::open(process, Target::OnExec(process))?;
        if supposes_thp {
            eyes.tally.suppose_thp();
        }
        Ok(eyes)
    }

    /// Eyes for a process that runs, with all that it starts.
    pub(super) fn on_process(pid: u32, threads: Vec<u32>) -> Result<Self, SysError> {
        let mut eyes = Self::open(pid, Target::Threads(threads))?;
        eyes.tally.attach(pid);
        Ok(eyes)
    }

    /// Begins with a process that runs.
    pub(super) fn start(&mut self) -> Result<(), SysError> {
        self.session.start()
    }

    /// Keeps whole stacks, for a flame graph.
    pub(super) fn keep_stacks(&mut self) {
        self.tally.keep_stacks();
    }

    /// Bytes that its memory cgroups had left when they had least.
    pub(super) fn room(&self) -> Option<u64> {
        self.room
    }

    /// Keeps first touches one by one.
    pub(crate) fn keep_firsts(&mut self) {
        self.tally.keep_firsts();
    }

    fn open(process: u32, target: Target) -> Result<Self, SysError> {
        let (sources, mut roles) = sources();
        let session = Session::open(&Plan { target, sources })?;
        let mut sight = Sight { kernel: session.sees_kernel(), ..Sight::default() };
        let mut calls = 0;
        for (index, role) in roles.iter_mut().enumerate() {
            match role {
                // A source that is not told must not be waited for.
                _ if !session.has(index) => *role = Role::Mappings,
                Role::Exception(_) => sight.exceptions = true,
                Role::Allocation(_) => sight.allocations = true,
                Role::Call(_) => calls += 1,
                Role::Stack => sight.stacks = true,
                Role::Handled { .. } | Role::Mappings | Role::Switch(_) => (),
            }
        }
        // One of them alone would not do: what is given back must be told to the end.
        sight.calls = calls == calls::POINTS.len();
        let limits = Limits::of(process);
        let pace = Pace::new(monotonic_raw_ns());
        Ok(Self { session, tally: Tally::new(roles), sight, limits, room: None, pace })
    }

    /// Reads what came since the last look.
    pub(crate) fn look(&mut self) {
        let Self { session, tally, pace, .. } = self;
        tally.look(session.receive());
        let faults = session.came(MINOR) + session.came(BRIEF);
        // Before what came is taken in: on a busy machine that is long, and more comes meanwhile.
        if session.has(BRIEF)
            && session.events() <= EVENTS_MAX
            && let Some(in_full) = pace.next(monotonic_raw_ns(), faults)
        {
            let begin_ns = monotonic_raw_ns();
            // What is told as it was told before is dearer, or less; it is as true.
            let _ = session.tell(in_full);
            tally.changed(begin_ns, monotonic_raw_ns());
        }
        session.drain(&mut |record| tally.take(&record));
        let room = self.limits.room();
        self.room = self.room.map_or(room, |least| Some(room.map_or(least, |now| now.min(least))));
    }

    /// Ends it: what was seen, what became of minor faults, of major ones, and of mappings.
    pub(super) fn close(mut self) -> Result<(Seen, [Told; 3], Sight), SysError> {
        let tally = &mut self.tally;
        let told = self.session.stop(&mut |record| tally.take(&record))?;
        let seen = Seen { stretches: self.pace.stretches(), ..self.tally.finish() };
        Ok((seen, [told[MINOR].and(told[BRIEF]), told[1], told[2]], self.sight))
    }
}
