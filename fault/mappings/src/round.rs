//! One round: map, advise, populate, touch, release, each between two clock readings of its own.
//!
//! The same function runs in the case's process, in forked processes, and (its touching part) in
//! threads. A kind's [`Stage`] brings the memory into its state before the touch, off the clock. It
//! allocates nothing between mapping and releasing: with `backing=brk` the heap's end
//! is ours meanwhile.

use pagelab_bench::Error;
use pagelab_sys::{
    Area, SysError,
    counts::perf::FaultCounter,
    memory::{Scanner, nodes_of},
    process::{Barrier, Fifo, Pinned},
    time::Clock,
};

use super::{
    Plan, Populate, Space, Stage,
    beside::{Beside, Part, touch_beside},
    outcome::{Outcome, Phase, UNKNOWN, phase, try_phase},
    page_bytes,
    pieces::Pieces,
    plan::touch_share,
    populate::locked_by,
};

/// Runs one round in the calling thread (and in `plan.threads` of its own for the touch); with
/// `beside` in threads in any case, so that the arms of that question differ in nothing else. With
/// `pieces` the touch, which is one worker's then, leaves the time of each.
///
/// # Errors
/// When the machine refuses.
pub(super) fn round(
    plan: &Plan,
    clock: &Clock,
    barrier: &Barrier,
    stage: &mut dyn Stage,
    beside: Option<&mut Beside>,
    mut pieces: Option<&mut Pieces>,
) -> Result<Outcome, Error> {
    let space = &plan.space;
    let scanner = Scanner::open()?;
    let mut perf = if plan.by_perf { FaultCounter::open() } else { None };
    stage.renew()?;
    let mut area = space.reserve()?;
    area.open()?;
    let _fifo = if plan.fifo { Some(Fifo::enter()?) } else { None };
    let mut outcome = Outcome { perf_faults: UNKNOWN, ..Outcome::default() };
    let mut everything = plan.populate.before_map(space)?;

    barrier.wait();
    outcome.map = try_phase(clock, || plan.populate.map(space, &mut area))?;
    if let Some(node) = space.mem_node {
        area.bind(node)?;
    }
    if let Some(advice) = space.advice {
        outcome.advise = try_phase(clock, || area.advise(advice))?;
    }
    barrier.wait();
    if plan.populate.has_call() {
        outcome.populate = try_phase(clock, || plan.populate.call(&area, &mut everything))?;
    }
    stage.ready(&mut area)?;
    let was_present = beside.as_ref().is_some_and(|beside| beside.part == Part::Present);
    if space.touches_twice || was_present {
        touch(plan, &area);
    }
    barrier.wait();
    // Both counters are read once before they count: their own code may be fresh, and a stage that
    // forked leaves a stack whose pages fault once more.
    phase(clock, &mut || lap(plan, &area, clock, pieces.as_deref_mut(), 0));
    perf.as_mut().and_then(FaultCounter::faults);
    let perf_before = perf.as_mut().and_then(FaultCounter::faults);
    if let Some(beside) = beside {
        (outcome.touch, outcome.again_minor) = touch_beside(plan, &area, clock, beside)?;
    } else if plan.threads > 1 {
        (outcome.populate, outcome.touch, outcome.again_minor) =
            touch_in_threads(plan, &area, clock, outcome.populate)?;
    } else {
        let bytes = area.layout().bytes();
        let mut lap = || lap(plan, &area, clock, pieces.as_deref_mut(), bytes);
        outcome.touch = phase(clock, &mut lap);
        if let (Some(before), Some(after)) =
            (perf_before, perf.as_mut().and_then(FaultCounter::faults))
        {
            outcome.perf_faults = after - before;
        }
        outcome.again_minor =
            settled(|| Ok(phase(clock, &mut || touch(plan, &area)).minor), |minor| *minor)?;
    }
    let touched = space.expectation(plan.stride).present;
    let residency = settled(|| scanner.scan(&area), |found| touched.saturating_sub(found.present))?;
    (outcome.present, outcome.huge) = (residency.present, residency.huge);
    outcome.zero = residency.zero.unwrap_or(UNKNOWN);
    outcome.elsewhere = pages_elsewhere(&area, space)?;
    outcome.locked = locked_by(plan.populate)?;
    stage.inspect(&area, &residency)?;
    stage.done()?;
    // A kind whose fault maps more than a page counts from once a page, whatever its stride.
    let stride = if stage.step().is_some() { space.once() } else { plan.stride };
    outcome.expected = plan.populate.expect(space, stage.expect(space.expectation(stride)));
    barrier.wait();
    outcome.release = try_phase(clock, || area.release())?;
    Ok(outcome)
}

/// The touch loop of one worker.
fn touch(plan: &Plan, area: &Area) {
    touch_share(plan, area, 0, area.layout().bytes());
}

/// The best of a few looks, the first one without a flaw if there is one. Whoever compacts memory
/// migrates pages of ours: for that moment they are not present, and an access waits in a fault
/// (`migration_entry_wait`). What is really missing is missing in every look.
fn settled<T>(
    mut look: impl FnMut() -> Result<T, SysError>,
    flaws: impl Fn(&T) -> u64,
) -> Result<T, SysError> {
    const LOOKS: u32 = 8;
    let mut best = look()?;
    for _ in 1..LOOKS {
        if flaws(&best) == 0 {
            break;
        }
        let next = look()?;
        if flaws(&next) < flaws(&best) {
            best = next;
        }
    }
    Ok(best)
}

/// The touch loop of one worker from the start to here, in pieces where these are asked for.
fn lap(plan: &Plan, area: &Area, clock: &Clock, pieces: Option<&mut Pieces>, to: usize) {
    match pieces {
        Some(pieces) => pieces.lap(to, clock, &|from, to| touch_share(plan, area, from, to)),
        None => touch_share(plan, area, 0, to),
    }
}

/// Every thread touches its own contiguous share of the mapping, and populates it before where
/// that is how the case does it: then that phase is `populate`.
fn touch_in_threads(
    plan: &Plan,
    area: &Area,
    clock: &Clock,
    populate: Phase,
) -> Result<(Phase, Phase, u64), SysError> {
    let each = plan.populate == Populate::MadviseEach;
    let barrier = Barrier::new(u32::try_from(plan.threads).expect("a few threads"))?;
    let share = area.layout().bytes() / plan.threads;
    let results = pagelab_sys::process::crew::threads(plan.threads, |worker| {
        // A worker that cannot start ends the case: the others would wait for it for ever.
        let stop = |error: SysError| -> ! { panic!("{error}") };
        let _pinned = plan.cpus[worker].map(|cpu| Pinned::to(cpu).unwrap_or_else(|e| stop(e)));
        let _fifo = plan.fifo.then(|| Fifo::enter().unwrap_or_else(|e| stop(e)));
        let (from, to) = (worker * share, (worker + 1) * share);
        // The first call of a fresh stack takes faults of its own.
        phase(clock, &mut || touch_share(plan, area, from, from));
        barrier.wait();
        let populated = if each {
            let call = try_phase(clock, || area.populate_write_part(from, to));
            barrier.wait();
            Some(call.unwrap_or_else(|e| stop(e)))
        } else {
            None
        };
        let first = phase(clock, &mut || touch_share(plan, area, from, to));
        barrier.wait();
        let again = phase(clock, &mut || touch_share(plan, area, from, to));
        (populated, first, again.minor)
    })?;
    let join = |(a, first, faults): (Option<Phase>, Phase, u64), (b, phase, again)| {
        (a.zip(b).map(|(a, b): (Phase, Phase)| a.join(b)), first.join(phase), faults + again)
    };
    let (populated, first, again) = results.into_iter().reduce(join).expect("at least one thread");
    Ok((populated.unwrap_or(populate), first, again))
}

/// Asks the kernel on which node 64 pages, evenly spread, really are.
fn pages_elsewhere(area: &Area, space: &Space) -> Result<u64, SysError> {
    const ASKED: usize = 64;
    let Some(node) = space.mem_node else { return Ok(0) };
    let page = page_bytes(space.page);
    let pages = area.layout().bytes() / page;
    let address = |index: usize| area.base() + area.layout().offset(index * pages / ASKED * page);
    let addresses: [usize; ASKED] = std::array::from_fn(address);
    let mut nodes = [-1; ASKED];
    nodes_of(&addresses, &mut nodes)?;
    Ok(nodes.iter().filter(|found| usize::try_from(**found) != Ok(node)).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_away_for_a_moment_is_not_missing_and_one_that_stays_away_is() {
        let mut seen = [20_u64, 0, 20].into_iter();
        assert_eq!(settled(|| Ok(seen.next().unwrap()), |missing| *missing).unwrap(), 0);
        let mut looks = 0;
        let look = || {
            looks += 1;
            Ok(3 + looks % 2)
        };
        assert_eq!(settled(look, |missing| *missing).unwrap(), 3);
        assert_eq!(looks, 8, "never for ever");
    }
}
