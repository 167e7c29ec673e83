//! What reading costs: why a larger buffer did not help, and what a mapping costs in faults.
//!
//! The one idea: calls, copies and faults are told apart by counts, because the kernel's split into
//! user and system time is sampled: how many calls there are, what an empty one costs here, and how
//! many bytes move either way.

use super::both::{Answer, Both, EXEC, ns, told};
use crate::{
    numbers::{cpu, tally},
    quantity::{Quantity, Unit, group_thousands},
    ratio::{Verdict, open},
    replay::{NOOP, REPLAY},
};

const SMALL: &str = "buffered-8k";
const LARGE: &str = "buffered-4m";

/// One quantity over another of another case.
fn over(one: Quantity, other: Quantity) -> Result<Quantity, String> {
    one.over(other, Unit::Ratio).ok_or_else(|| "a time of zero".to_owned())
}

/// Why a larger read buffer did not help.
pub(super) fn buffering(both: &Both<'_>) -> Answer {
    let of = |reader, at, statistic| both.read(EXEC, reader, (at, statistic));
    let calls = |reader| of(reader, tally(NOOP, "read-calls"), "p50");
    let system = |reader| of(reader, cpu(NOOP, "system-time"), "p50");
    let thread = |reader| of(reader, cpu(NOOP, REPLAY), "ns_per_op");
    let (few, many) = (calls(LARGE)?, calls(SMALL)?);
    let (before, after) = (thread(SMALL)?, thread(LARGE)?);
    let ratio = over(after, before)?;
    let mut text = format!(
        "On {EXEC}, pieces of 4 MiB take {} calls of read, pieces of 8 KiB {}, {:.0} times as \
         many. System time of an operation goes from {} to {}, CPU time from {} to {}, {} of it.",
        group_thousands(few.value),
        group_thousands(many.value),
        many.value / few.value.max(1.0),
        ns(system(SMALL)?.value),
        ns(system(LARGE)?.value),
        ns(before.value),
        ns(after.value),
        told(ratio),
    );
    text.push_str(match Verdict::of(ratio) {
        Verdict::Tie => " That is a tie: fewer calls do not help here either.",
        Verdict::Less => " So here the larger buffer does help, other than published.",
        Verdict::More => " So here the larger buffer even costs more.",
        Verdict::Open => " That is ",
    });
    if Verdict::of(ratio) == Verdict::Open {
        text.push_str(&format!("{}.", open(ratio)));
    }
    let entry = both.reader_case(EXEC, SMALL);
    let ops = entry.map_or(0.0, |entry| entry.counter("trace_ops").unwrap_or_default() as f64);
    let bytes = entry.map_or(0.0, |entry| entry.counter("trace_bytes").unwrap_or_default() as f64);
    let empty = both.limits.costs.iter().find(|(name, ..)| *name == "system call");
    if let Some((_, empty, _)) = empty.filter(|_| ops > 0.0) {
        text.push_str(&format!(
            " An empty system call takes {}, so that the calls of the small buffer as such are \
             worth {} of an operation; the {:.1} bytes that each operation has copied out of the \
             page cache are the same with either.",
            empty.display(),
            ns(many.value * empty.value / ops),
            bytes / ops,
        ));
    }
    let theirs = |reader| both.step("buffering", EXEC, Some(reader));
    if let (Some(small), Some(large)) = (theirs(SMALL), theirs(LARGE)) {
        let seconds = |name| small.counter(name).unwrap_or_default() as f64 / 1e9;
        text.push_str(&format!(
            " Published: {} calls became {}, and kernel time stayed at {:.0} to {:.0} s.",
            group_thousands(small.counter("read_calls").unwrap_or_default() as f64),
            group_thousands(large.counter("read_calls").unwrap_or_default() as f64),
            seconds("system_time_ns_min"),
            seconds("system_time_ns_max"),
        ));
    }
    Ok(text)
}

/// What mapping the file costs in faults.
pub(super) fn mapping(both: &Both<'_>) -> Answer {
    let of = |reader, at, statistic| both.read(EXEC, reader, (at, statistic));
    let faults = |reader| of(reader, tally(NOOP, "minor-faults"), "p50");
    // On a machine with other work elapsed time says more about that.
    let thread = |reader| of(reader, cpu(NOOP, REPLAY), "ns_per_op");
    let (count, each) = (faults("mmap")?, thread("mmap")?);
    let per_mib = of("mmap", tally(NOOP, "minor-faults"), "per_mib")?.value;
    let mut text = format!(
        "On {EXEC} a mapping takes {} minor faults, {per_mib:.1} for each MiB",
        group_thousands(count.value)
    );
    if per_mib > 0.0 {
        text.push_str(&format!(", one for {:.0} KiB", 1024.0 / per_mib));
        // More than a page at a time cannot come from faults on single pages.
        text.push_str(if per_mib < 200.0 {
            ": the kernel maps the pages around a fault with it."
        } else {
            ": page by page, nothing is mapped around a fault."
        });
    } else {
        text.push('.');
    }
    text.push_str(&format!(" An operation takes {} of CPU time", ns(each.value)));
    if let Ok(memory) = thread("memory") {
        let ratio = told(over(each, memory)?);
        text.push_str(&format!(", {ratio} times the {} from memory", ns(memory.value)));
    }
    text.push('.');
    if let Some(price) = price_of_a_fault(both) {
        text.push_str(&format!(
            " Over memory that is {price:.2} µs for each fault, with what it costs the decoder \
             that the file lies on base pages."
        ));
    }
    let small = thread(SMALL)?;
    let ratio = over(each, small)?;
    let (noop, mapped) =
        ["buffering", "mmap"].map(|step| both.published_total(step, EXEC, NOOP)).into();
    let theirs = noop.zip(mapped).map(|(noop, mapped)| mapped / noop);
    text.push_str(&format!(
        " Against pieces of 8 KiB it takes {} of the time{}",
        told(ratio),
        super::both::published(theirs)
    ));
    text.push_str(match Verdict::of(ratio) {
        Verdict::Less => ": as published, faults are cheaper than copies.",
        Verdict::Tie => ": a tie here; what copies cost, faults cost too.",
        Verdict::More => ": other than published, faults are dearer than copies here.",
        Verdict::Open => ": ",
    });
    if Verdict::of(ratio) == Verdict::Open {
        text.push_str(&format!("{}.", open(ratio)));
    }
    if let (Ok(populated), Ok(count)) = (thread("mmap-populate"), faults("mmap-populate")) {
        text.push_str(&format!(
            " With all pages mapped before (mmap-populate) it is {} faults, and {} an operation.",
            group_thousands(count.value),
            ns(populated.value)
        ));
    }
    Ok(text)
}

/// Microseconds of CPU time that a mapping takes over memory, for each fault.
fn price_of_a_fault(both: &Both<'_>) -> Option<f64> {
    let of = |reader, at, statistic| both.read(EXEC, reader, (at, statistic)).ok();
    let thread = |reader| of(reader, cpu(NOOP, REPLAY), "total");
    let (mapped, memory) = (thread("mmap")?, thread("memory")?);
    let faults = of("mmap", tally(NOOP, "minor-faults"), "p50")?.value;
    // Below nothing is noise, and no price.
    let more = mapped.value - memory.value;
    (more > 0.0 && faults > 0.0).then(|| more / faults / 1000.0)
}
