//! Our policy against every fixed setting: 8 generators, 3 sizes of the top tier, and a grid of
//! periods, thresholds and windows.
//!
//! For each generator and size: seconds without moves, with everything moved at once, at the best
//! point of the grid, with our policy, and with the oracle. The last lines are the figures that the
//! policy has to reach. Arguments: the number of pages (65536), then generators (all).

use std::{env, sync::Mutex, thread};

use pagelab_tier::{
    Curve, GENERATORS, PolicySpec, SECOND, Scenario, Source, Tiers, Work, WorkSpec,
    sim::{Costs, Level, Mover, Sampling},
    simulate,
};

const PERIODS: [u64; 5] = [2_500, 5_000, 10_000, 20_000, 40_000];
const THRESHOLDS: [u64; 3] = [1, 2, 3];
const WINDOWS_S: [u64; 4] = [1, 3, 5, 10];
const SHARES: [u64; 3] = [25, 50, 100];
/// Accesses a page: at the shortest period ten samples of each.
const ACCESSES: u64 = 26_000;

struct Cell {
    name: String,
    seconds: [f64; 5],
    best: String,
    pingpongs: u64,
    promoted: u64,
}

fn scenario(generator: &str, pages: u64, share: u64, policy: &str, period: u64) -> Scenario {
    let parse = |text: &str| PolicySpec::parse(text).expect("a policy of the table");
    let sampling = Sampling {
        period_min: PERIODS[0],
        period_max: PERIODS[PERIODS.len() - 1],
        jitter: 15,
        ..Sampling::every(period)
    };
    let blind = ["none", "all-at-once", "oracle"].contains(&policy);
    Scenario {
        seed: 1,
        work: Work::Generated(WorkSpec::parse(generator).expect("a generator of the table")),
        pages,
        accesses: pages * ACCESSES,
        threads: 16,
        stores: 0.5,
        tiers: Tiers::two(pages * share / 100, pages),
        curve: Curve::Power {
            fast: 20.0,
            lower: vec![Level { seconds: 60.0, exponent: 1.5 }],
            remote: None,
        },
        sources: if blind { Vec::new() } else { vec![Source::Sampling(sampling)] },
        policy: parse(policy),
        mover: Mover {
            walk_ps: 13_000,
            flush_ns: 20_000,
            copy_accesses: 32.0,
            ping_pong_ns: 10 * SECOND,
            ..Mover::kernel(3_000)
        },
        costs: Costs { sample_ns: 1_500 },
        rows: 10,
    }
}

fn seconds(generator: &str, pages: u64, share: u64, policy: &str, period: u64) -> f64 {
    let outcome = simulate(&scenario(generator, pages, share, policy, period));
    outcome.expect("a scenario that makes sense").seconds()
}

fn cell(generator: &str, pages: u64, share: u64) -> Cell {
    let mut best = (f64::INFINITY, String::new());
    for period in PERIODS {
        for threshold in THRESHOLDS {
            for window in WINDOWS_S {
                let window_ms = window * 1000;
                let policy = format!("threshold:threshold={threshold},window={window_ms}");
                let seconds = seconds(generator, pages, share, &policy, period);
                if seconds < best.0 {
                    best = (seconds, format!("{period}/{threshold}/{window}"));
                }
            }
        }
    }
    let simple = |policy| seconds(generator, pages, share, policy, PERIODS[2]);
    let ours = simulate(&scenario(generator, pages, share, "pagelab", PERIODS[2]));
    let ours = ours.expect("a scenario that makes sense");
    Cell {
        name: format!("{generator} {share} %"),
        seconds: [simple("none"), simple("all-at-once"), best.0, ours.seconds(), simple("oracle")],
        best: best.1,
        pingpongs: ours.ping_pongs,
        promoted: ours.promoted,
    }
}

#[expect(clippy::print_stdout, reason = "an example that prints a table")]
fn main() {
    let mut arguments = env::args().skip(1);
    let pages = arguments.next().map_or(65_536, |text| text.parse().expect("a number of pages"));
    let chosen: Vec<String> = arguments.collect();
    let names = GENERATORS.iter().map(|generator| generator.name);
    let names: Vec<&str> =
        names.filter(|name| chosen.is_empty() || chosen.iter().any(|one| one == name)).collect();
    let cells: Vec<(&str, u64)> =
        names.iter().flat_map(|&name| SHARES.map(|share| (name, share))).collect();
    let next = Mutex::new(0..cells.len());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(at) = { next.lock().expect("nobody panics").next() } {
                    let (name, share) = cells[at];
                    let cell = cell(name, pages, share);
                    done.lock().expect("nobody panics").push((at, cell));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("nobody panics");
    done.sort_by_key(|&(at, _)| at);
    let head = ["cell", "none", "all at once", "best of grid", "at", "pagelab", "oracle", "regret"];
    println!("| {} | vs none | promoted | ping-pongs |", head.join(" | "));
    println!("|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|");
    let (mut regrets, mut losses) = (Vec::new(), Vec::new());
    for (_, cell) in &done {
        let [none, all, best, ours, oracle] = cell.seconds;
        let (regret, loss) = (ours / best - 1.0, ours / none - 1.0);
        regrets.push(regret);
        losses.push(loss);
        println!(
            "| {} | {none:.2} | {all:.2} | {best:.2} | {} | {ours:.2} | {oracle:.2} \
             | {:+.1} % | {:+.1} % | {} | {} |",
            cell.name,
            cell.best,
            regret * 100.0,
            loss * 100.0,
            cell.promoted,
            cell.pingpongs
        );
    }
    regrets.sort_by(f64::total_cmp);
    losses.sort_by(f64::total_cmp);
    let percent = |values: &[f64], at: usize| values.get(at).copied().unwrap_or(0.0) * 100.0;
    println!(
        "median regret {:+.1} %, worst {:+.1} %; against none at worst {:+.1} %",
        percent(&regrets, regrets.len() / 2),
        percent(&regrets, regrets.len().saturating_sub(1)),
        percent(&losses, losses.len().saturating_sub(1)),
    );
}
