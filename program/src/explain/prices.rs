//! What has to be measured so that the faults of a program have a price.
//!
//! The one idea: a price is a case of `fault/latency` of the same kind and page, measured by the
//! same runner into the same run: a record with a witness of its own. Only kinds that the program
//! took are measured, and what larger pages and populating would cost where that is a choice.
//! Where its threads faulted at once, `fault/throughput` says what one fault costs one thread and
//! what it costs as many at once: the difference is what crowding adds.

use std::{collections::BTreeSet, path::Path};

use pagelab_bench::{
    PageSize, Row,
    measure::Method,
    plan::{Plan, Planned, complete},
};
use pagelab_cli::part;
use pagelab_fault::{latency::LATENCY, throughput::THROUGHPUT};
use pagelab_mappings::kinds;
use pagelab_record::{
    Asked, Case, Measured, Record, RunHeader,
    asked::{Explain, Rung},
    units::format_bytes,
    vocabulary::{knob, tried},
    walks::{Captured, Looks, Uses},
};
use pagelab_sys::{
    machine::{Topology, Tree, proc::in_use},
    time::ClockChoice,
};
use pagelab_translation::chase::CHASE;

use super::{kind::Kind, watch::Subject};

/// Memory that a price is measured over; a kind that has to be set up page by page takes less.
const SIZE: &str = "64m";
/// The same where caches are cold: each touch waits for a walk.
const SIZE_COLD: &str = "4m";
/// Kinds that are measured so: at most so many, and none with less than this share of all faults.
const COLD_MAX: usize = 2;
const COLD_MIN: f64 = 0.1;
/// Faults below this share of all are not worth a measurement of their own.
const SHARE_MIN: f64 = 0.002;
/// Kinds that are worth measuring at most.
const KINDS_MAX: usize = 8;
/// Crowded faults of a kind below this share of all are not worth one either.
const CROWDED_MIN: f64 = 0.02;
/// Kinds that are measured in a crowd at most: each takes two cases.
const CROWDS_MAX: usize = 3;
/// Threads of a crowd that are worth starting.
const CROWD_MAX: u64 = 64;
/// Memory for each thread of a crowd, in bytes.
const EACH: u64 = 32 << 20;

/// Memory that walks are priced over, in bytes and by name: from what a TLB holds to where its
/// tables leave the caches.
const CHAINS: [(u64, &str); 5] =
    [(4 << 20, "4m"), (16 << 20, "16m"), (64 << 20, "64m"), (256 << 20, "256m"), (1 << 30, "1g")];

/// What larger pages would cost is measured for these, where nobody asks for others.
const PAGES: [&str; 2] = ["64k", "2m"];

/// The cases that price what `measured` has seen, and what pages of some sizes would make of its
/// first writes.
pub fn plan(measured: &Measured, pages: &[impl AsRef<str>], clock: ClockChoice) -> Plan {
    let mut plan = Plan::default();
    // The largest memory first, as long as what the program gave back is still there: a host that
    // takes free memory returns it slowly.
    walks(&mut plan, measured, clock);
    let faults = faults(measured);
    let all: u64 = faults.iter().map(|taken| taken.faults).sum();
    for Taken { kind, page, faults, .. } in faults.iter().take(KINDS_MAX) {
        if *faults as f64 >= all as f64 * SHARE_MIN {
            price(&mut plan, kind, page, SIZE, clock);
        }
    }
    let often = |taken: &&Taken| taken.page == "4k" && taken.faults as f64 >= all as f64 * COLD_MIN;
    for Taken { kind, page, .. } in faults.iter().filter(often).take(COLD_MAX) {
        // Few programs do nothing but fault.
        let pairs = [("kind", &**kind), ("page", page), ("size", SIZE_COLD), ("caches", "cold")];
        if kinds::NAMES.contains(&kind.as_str()) {
            add(&mut plan, &LATENCY, &pairs, clock);
        }
    }
    let crowded = |taken: &&Taken| taken.crowded as f64 >= (all as f64 * CROWDED_MIN).max(1.0);
    for taken in faults.iter().filter(crowded).take(CROWDS_MAX) {
        crowd(&mut plan, taken, clock);
    }
    let shared = of_kind(&faults, Kind::ShmemWrite, "4k");
    if shared as f64 >= all as f64 * SHARE_MIN && shared > 0 {
        for kind in [Kind::ShmemWrite, Kind::Write] {
            price(&mut plan, kind.name(), "2m", SIZE, clock);
        }
    }
    // Memory that is loaded from first is written, too.
    let [writes, rewrites] = [Kind::Write, Kind::ZeroWrite]
        .map(|kind| ["4k", "2m"].map(|page| of_kind(&faults, kind, page)));
    for (page, faults) in ["4k", "2m"].into_iter().zip(rewrites) {
        if faults as f64 >= all as f64 * SHARE_MIN && faults > 0 {
            price(&mut plan, Kind::Write.name(), page, SIZE, clock);
            price(&mut plan, Kind::Read.name(), page, SIZE, clock);
        }
    }
    let writes = writes[0] + rewrites[0];
    if writes as f64 >= all as f64 * SHARE_MIN && writes > 0 {
        // What a knob would make of first writes.
        for page in pages.iter().map(AsRef::as_ref) {
            if PageSize::offered().iter().any(|offered| offered.to_string() == page) {
                price(&mut plan, Kind::Write.name(), page, SIZE, clock);
                // What giving it back takes.
                add(&mut plan, &THROUGHPUT, &[("page", page), ("size", SIZE)], clock);
            }
        }
        let pairs = [("page", "4k"), ("size", SIZE), ("populate", "madvise-populate")];
        add(&mut plan, &THROUGHPUT, &pairs, clock);
    }
    plan
}

/// Adds what prices walks, up to the memory that the program had: loads that wait for each other,
/// and loads that do not.
fn walks(plan: &mut Plan, measured: &Measured, clock: ClockChoice) {
    let Some(most) = walked(measured) else { return };
    // The first two bound what small memory costs, and the last may be a step too large.
    let needed = |(nth, (bytes, _)): &(usize, (u64, _))| *nth <= 1 || most >= bytes / 2;
    let chains: Vec<_> = CHAINS.into_iter().enumerate().take_while(needed).collect();
    for (_, (_, size)) in chains.into_iter().rev() {
        for together in ["1", "8"] {
            let pairs = [("page", "4k"), ("size", size), ("loads", "50k"), ("together", together)];
            add(plan, &CHASE, &pairs, clock);
        }
    }
}

/// Bytes that the program walked to the pages of; `None` where nobody looked.
fn walked(measured: &Measured) -> Option<u64> {
    if let Some(captured) = Captured::of(measured) {
        let add = |sum: u64, uses: &Uses| sum.saturating_add(uses.all);
        let pages = captured.pages(4096).map_or(0, |pages| pages.first.iter().fold(0, add));
        return Some(pages.saturating_mul(4096));
    }
    let looks = Looks::of(&measured.tables)?;
    Some(looks.looks.iter().map(|look| look.resident * 4096).max().unwrap_or(0))
}

/// What the header of a run says that measures prices, or takes those of another run.
pub fn asked(are_measured: bool) -> Option<Asked> {
    Some(Asked::Explain(Explain { prices: are_measured }))
}

/// Every case that prices the programs of a run, where it measures prices: as many as there were
/// to measure, whether they were or not. Of an invalid record nothing is priced.
pub fn of_run(header: &RunHeader, records: &[Record], clock: ClockChoice) -> Plan {
    let pages = match &header.asked {
        Some(Asked::Explain(Explain { prices: true })) => PAGES.map(str::to_owned).to_vec(),
        Some(Asked::Try(tried)) if tried.predicts => pages_of(&tried.rungs),
        _ => return Plan::default(),
    };
    let mine = |record: &&Record| record.workload == super::WORKLOAD;
    let measured = records.iter().filter(mine).find_map(Record::valid);
    measured.map(|measured| plan(measured, &pages, clock)).unwrap_or_default()
}

/// The page sizes of rungs that do what `explain` knows, and of those that choose by its prices.
fn pages_of(rungs: &[Rung]) -> Vec<String> {
    let size = |rung: &Rung| {
        if [tried::FIT, tried::FIT_ALL].contains(&rung.name.as_str()) {
            return Some(rung.page);
        }
        let knob = rung.knob.as_deref()?;
        knob::bytes_of(knob).or(Some(rung.page).filter(|page| *page > 0))
    };
    let sizes: BTreeSet<u64> = rungs.iter().filter_map(size).collect();
    sizes.into_iter().map(format_bytes).collect()
}

/// The cases of records that came out invalid, once more.
pub fn again(records: &[Record], clock: ClockChoice) -> Plan {
    let one = |record: &Record| {
        let workload = part::workload(&record.workload).ok()?;
        Some(Planned::new(workload, record.case.clone(), method(clock)))
    };
    Plan { cases: records.iter().filter_map(one).collect(), ..Plan::default() }
}

/// Faults of one kind and page, wherever they were.
#[derive(Debug, Default)]
struct Taken {
    kind: String,
    page: String,
    faults: u64,
    /// As in [`super::counts::Count`].
    crowded: u64,
    crowd: u64,
    shared: u64,
}

/// What was taken, the most frequent first.
fn faults(measured: &Measured) -> Vec<Taken> {
    let mut sums: Vec<Taken> = Vec::new();
    for table in &measured.tables {
        let Some(name) = table.name.strip_prefix("fault/") else { continue };
        let mut parts = name.split('/');
        let (Some(kind), Some(page)) = (parts.next(), parts.next()) else { continue };
        let cell = |name: &str| table.cell(name).and_then(|cell| u64::try_from(cell).ok());
        let index = sums.iter().position(|taken| taken.kind == kind && taken.page == page);
        let index = index.unwrap_or_else(|| {
            sums.push(Taken { kind: kind.to_owned(), page: page.to_owned(), ..Taken::default() });
            sums.len() - 1
        });
        let sum = &mut sums[index];
        sum.faults += cell("faults").unwrap_or(0);
        sum.crowded += cell("crowded").unwrap_or(0);
        sum.crowd += cell("crowd").unwrap_or(0);
        sum.shared += cell("shared").unwrap_or(0);
    }
    sums.sort_by_key(|taken| std::cmp::Reverse(taken.faults));
    sums
}

fn of_kind(faults: &[Taken], kind: Kind, page: &str) -> u64 {
    let mine = faults.iter().filter(|taken| taken.kind == kind.name() && taken.page == page);
    mine.map(|taken| taken.faults).sum()
}

/// Adds the cases that say what crowding adds to a fault: one thread, and as many as met.
fn crowd(plan: &mut Plan, taken: &Taken, clock: ClockChoice) {
    let cpus = Topology::machine().cpus().allowed.len() as u64;
    let mean = (taken.crowd + taken.crowded / 2) / taken.crowded.max(1);
    let threads = mean.min(cpus).min(CROWD_MAX);
    if threads < 2 || !kinds::NAMES.contains(&taken.kind.as_str()) {
        return;
    }
    let size = format_bytes(EACH * threads);
    let pairs = [("kind", &*taken.kind), ("page", &*taken.page), ("size", &*size)];
    let threads = threads.to_string();
    let many = |vmas| [&pairs[..], &[("threads", &threads), ("vmas", vmas)]].concat();
    let each = many("each");
    // Large folios lie in windows, which are mappings of their own anyway.
    let is_each = taken.shared * 2 < taken.crowded && complete(&THROUGHPUT, &each).is_ok();
    let many = if is_each { each } else { many("one") };
    if complete(&THROUGHPUT, &many).is_ok() {
        add(plan, &THROUGHPUT, &pairs, clock);
        add(plan, &THROUGHPUT, &many, clock);
    }
}

/// Adds the case that prices a kind, where there is one.
fn price(plan: &mut Plan, kind: &str, page: &str, size: &str, clock: ClockChoice) {
    if !kinds::NAMES.contains(&kind) {
        return;
    }
    let mut pairs = vec![("kind", kind), ("page", page), ("size", size)];
    if kind == Kind::Swap.name() && swaps_to_disk() {
        pairs.push(("swap", "file"));
    }
    add(plan, &LATENCY, &pairs, clock);
}

/// Whether the machine swaps to something else than zram.
fn swaps_to_disk() -> bool {
    let is_zram = |path: &Path| path.to_string_lossy().starts_with("/dev/zram");
    in_use(&Tree::machine()).iter().any(|one| !is_zram(&one.path))
}

/// Adds a case unless it is there, or the workload refuses it: then there is no price.
fn add(plan: &mut Plan, row: Row, pairs: &[(&str, &str)], clock: ClockChoice) {
    let Ok(case) = complete(row, pairs) else { return };
    let is_there = |planned: &Planned| planned.workload == row && *planned.case == case;
    if !plan.cases.iter().any(is_there) {
        plan.cases.push(Planned::new(row, case, method(clock)));
    }
}

/// Three fresh processes of a tenth of a second.
fn method(clock: ClockChoice) -> Method {
    Method {
        forks: 3,
        turns: 1,
        repetitions_min: 3,
        repetitions_max: 100,
        budget_ns: 100_000_000,
        precision: 0.005,
        limit_ns: 60_000_000_000,
        attempts_max: 12,
        clock,
        planted: None,
    }
}

/// What is watched, as a case: the first of its run, which no runner runs.
pub fn watched(subject: &Subject, clock: ClockChoice) -> (Case, Method) {
    let case = match subject {
        Subject::Program(words) => {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            Case::default().with("program", &words.join(" "))
        }
        Subject::Process { pid, at_most } => Case::default()
            .with("pid", &pid.to_string())
            .with("duration", &format!("{}s", at_most.as_secs_f64())),
    };
    (case, method(clock))
}

#[cfg(test)]
mod tests {
    use pagelab_record::Table;

    use super::*;

    fn seen(faults: &[(&str, i64)]) -> Measured {
        let table = |(name, count): &(&str, i64)| {
            Table::new(format!("fault/{name}"), [("faults", "count")], [[*count]])
        };
        Measured { tables: faults.iter().map(table).collect(), ..Measured::default() }
    }

    fn cases(faults: &[(&str, i64)]) -> Vec<String> {
        let plan = plan(&seen(faults), &PAGES, ClockChoice::Raw);
        let brief = |planned: &Planned| {
            let of = |name| planned.case.get(name).unwrap_or_default().to_owned();
            let caches = if of("caches") == "cold" { " in cold caches" } else { "" };
            format!("{} {} {}{caches}", planned.workload.name(), of("kind"), of("page"))
        };
        plan.cases.iter().map(brief).collect()
    }

    #[test]
    fn only_what_the_program_took_is_measured() {
        let found = cases(&[("read/4k/anonymous", 700), ("read/4k/heap", 300)]);
        assert_eq!(found, ["fault/latency read 4k", "fault/latency read 4k in cold caches"]);
        assert!(cases(&[]).is_empty());
    }

    #[test]
    fn first_writes_are_also_measured_as_what_they_could_be() {
        let found = cases(&[("write/4k/anonymous", 10_000), ("read/4k/anonymous", 1)]);
        assert_eq!(found[0], "fault/latency write 4k");
        assert!(found.contains(&"fault/throughput write 4k".to_owned()), "{found:?}");
        assert!(!found.iter().any(|case| case.contains("read")), "one in 10 000: {found:?}");
    }

    #[test]
    fn faults_of_several_threads_at_once_are_measured_by_as_many() {
        if Topology::machine().cpus().allowed.len() < 2 {
            return;
        }
        let crowded = |shared: i64| {
            let mut seen = seen(&[("write/4k/anonymous", 1000)]);
            for (name, value) in [("crowded", 500), ("crowd", 1000), ("shared", shared)] {
                seen.tables[0].columns.push((name, "count").into());
                seen.tables[0].rows[0].push(value);
            }
            let plan = plan(&seen, &PAGES, ClockChoice::Raw);
            let case = |planned: &Planned| {
                let of = |name| planned.case.get(name).unwrap_or_default().to_owned();
                let is_crowd = of("populate") == "touch" && of("page") == "4k";
                is_crowd.then(|| [of("size"), of("threads"), of("vmas")])
            };
            let throughput = |planned: &&Planned| planned.workload.name() == "fault/throughput";
            plan.cases.iter().filter(throughput).filter_map(case).collect::<Vec<_>>()
        };
        assert_eq!(crowded(500), [["64m", "1", "one"], ["64m", "2", "one"]]);
        assert_eq!(crowded(0), [["64m", "1", "one"], ["64m", "2", "each"]]);
    }

    #[test]
    fn kinds_have_the_names_that_they_are_measured_by() {
        for kind in [
            Kind::Write,
            Kind::Read,
            Kind::ZeroWrite,
            Kind::ForkCow,
            Kind::ForkReuse,
            Kind::PrivateFileCow,
            Kind::FileMinor,
            Kind::FileMajor,
            Kind::PageMkwrite,
            Kind::ShmemWrite,
            Kind::ShmemMinor,
        ] {
            assert!(kinds::NAMES.contains(&kind.name()), "{}", kind.name());
        }
    }

    #[test]
    fn what_cannot_be_measured_is_left_without_a_price() {
        assert!(cases(&[("other/4k/kernel", 10), ("write/3k/heap", 5)]).is_empty());
    }
}
