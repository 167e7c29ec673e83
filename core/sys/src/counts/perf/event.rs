//! One perf event as a source of a session asks for it.

use std::io;

use perf_event::{
    Builder, Clock, Counter, ReadFormat, SampleFlag,
    events::{Software, Tracepoint as Numbered},
};

use super::{
    parse::STACK_BYTES,
    plan::{Callers, Event, Source, When},
};

/// Callers that are asked for.
const CALLERS: u16 = 24;

/// Opens the event of a source on one CPU for one thread and what it starts.
///
/// # Errors
/// When the kernel refuses; `Unsupported` where stacks cannot be unwound on this architecture.
pub(super) fn open(
    source: &Source,
    thread: u32,
    cpu: usize,
    on_exec: bool,
    sees_kernel: bool,
) -> io::Result<Counter> {
    let mut builder = match &source.event {
        Event::MinorFaults => Builder::new(Software::PAGE_FAULTS_MIN),
        Event::MajorFaults => Builder::new(Software::PAGE_FAULTS_MAJ),
        Event::Nothing => Builder::new(Software::DUMMY),
        Event::Tracepoint(tracepoint) => Builder::new(Numbered::with_id(tracepoint.id)),
    };
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::ADDR);
    if source.when != When::InBrief {
        builder.sample(SampleFlag::IP | SampleFlag::CPU);
    }
    if source.callers != Callers::None {
        builder.sample(SampleFlag::CALLCHAIN);
        builder.exclude_callchain_kernel(true).sample_max_stack(CALLERS);
    }
    let mut period = 1;
    if let Callers::Stack(every) = source.callers {
        let registers = USER_REGISTERS.ok_or(io::ErrorKind::Unsupported)?;
        builder.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER);
        builder.sample_regs_user(registers).sample_stack_user(STACK_BYTES);
        period = every.max(1);
    }
    if matches!(source.event, Event::Tracepoint(_)) {
        builder.sample(SampleFlag::RAW);
    }
    let mappings = source.mappings;
    builder.mmap(mappings).mmap2(mappings).mmap_data(mappings);
    builder.comm(mappings).comm_exec(mappings).task(mappings);
    builder
        .observe_pid(i32::try_from(thread).map_err(io::Error::other)?)
        .one_cpu(cpu)
        .inherit(true)
        .enable_on_exec(on_exec && source.when != When::InBrief)
        .exclude_kernel(!sees_kernel)
        .exclude_hv(!sees_kernel)
        .sample_period(period)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC_RAW)
        .read_format(ReadFormat::LOST);
    match builder.build() {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            builder.read_format(ReadFormat::empty()).build()
        }
        result => result,
    }
}

/// The registers that unwinding takes, as bits of `perf_regs.h`: on x86-64 the 16 general ones and
/// the instruction pointer.
const USER_REGISTERS: Option<u64> =
    if cfg!(target_arch = "x86_64") { Some(0x00FF_01FF) } else { None };

impl Event {
    /// What it is called where it cannot be had.
    pub fn name(&self) -> &str {
        match self {
            Self::MinorFaults => "minor-faults",
            Self::MajorFaults => "major-faults",
            Self::Nothing => "dummy",
            Self::Tracepoint(tracepoint) => &tracepoint.name,
        }
    }
}
