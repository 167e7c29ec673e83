//! Runs of two arms that are not measured: what blocks, rounds and verdicts together make of times
//! whose truth is known. Who is the first, who gets more blocks, and what it comes to are those of
//! a real run; only the clock and the processes are drawn.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on is a test that failed")]

use std::{fmt::Write as _, ops::Range};

use pagelab_bench::blocks::{Cell, first, round};
use pagelab_record::verdict::{Better, DELTA, Judged, Question, Ratio, Verdict, judge};

/// Blocks of the screen.
const SCREEN: u32 = 16;

/// What is the matter with a machine while it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Weather {
    /// Every process draws for itself.
    Calm,
    /// Some are somewhere else altogether.
    HeavyTails,
    /// The machine becomes slower all the while, for all cells alike.
    Drift,
    /// Something comes and goes, and takes a fifth of the time while it is there.
    Periodic,
}

/// A cell: how much slower its second arm is, how far its processes lie apart, what a block takes.
#[derive(Debug, Clone, Copy)]
struct Truth {
    shift: f64,
    spread: f64,
    block_ns: u64,
}

/// A machine that passes the time.
struct Machine {
    chance: fastrand::Rng,
    weather: Weather,
    now_ns: u64,
    period_ns: f64,
    drift: f64,
}

impl Machine {
    fn of(weather: Weather, budget_ns: u64, seed: u64) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        // About as long as a block, and no multiple of it.
        let period_ns = 20.0 * (0.7 + chance.f64());
        let drift = 0.3 / budget_ns as f64;
        Self { chance, weather, now_ns: 0, period_ns, drift }
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.chance.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.chance.f64()).cos()
    }

    /// The time of one process, as a logarithm.
    fn process(&mut self, truth: &Truth, is_second: bool) -> f64 {
        self.now_ns += truth.block_ns / 2;
        let now = self.now_ns as f64;
        let own = match self.weather {
            Weather::HeavyTails => {
                let cauchy = (std::f64::consts::PI * (self.chance.f64() - 0.5)).tan();
                (0.5 * cauchy).clamp(-50.0, 50.0)
            }
            _ => self.normal(),
        };
        let common = match self.weather {
            Weather::Drift => self.drift * now,
            Weather::Periodic if now % self.period_ns < 0.3 * self.period_ns => 0.2,
            _ => 0.0,
        };
        common + truth.spread * own + if is_second { truth.shift } else { 0.0 }
    }
}

/// What became of a run: its cells, the blocks of each, and the time it took.
struct Came {
    judged: Vec<Judged>,
    blocks: Vec<usize>,
    took_ns: u64,
}

impl Came {
    fn verdicts(&self) -> Vec<Verdict> {
        self.judged.iter().map(|judged| judged.verdict).collect()
    }

    fn cries(&self) -> bool {
        self.verdicts().iter().any(|v| matches!(v, Verdict::Faster | Verdict::Slower))
    }
}

/// A run of some cells within a budget, as `run --ab` goes about it.
fn simulated(cells: &[Truth], weather: Weather, budget_ns: u64, seed: u64) -> Came {
    let mut machine = Machine::of(weather, budget_ns, seed);
    let mut pairs: Vec<Vec<[f64; 2]>> = vec![Vec::new(); cells.len()];
    let mut looks = vec![0; cells.len()];
    let mut given: Vec<(usize, u32)> = (0..cells.len()).map(|at| (at, SCREEN)).collect();
    let mut ratios: Vec<Option<Ratio>> = vec![None; cells.len()];
    loop {
        for (at, more) in given {
            for _ in 0..more {
                let (cell, block) = (u32::try_from(at).unwrap(), pairs[at].len());
                let starts = first(seed, cell, u32::try_from(block).unwrap());
                let mut times = [0.0; 2];
                for arm in [starts, 1 - starts] {
                    times[arm] = machine.process(&cells[at], arm == 1).exp();
                }
                pairs[at].push([times[1], times[0]]);
            }
            looks[at] += 1;
            ratios[at] = Ratio::of_pairs(&pairs[at]);
        }
        let asked = |(ratio, look): (&Option<Ratio>, &u32)| Question {
            ratio: ratio.unwrap(),
            better: Better::Less,
            look: Some(*look),
        };
        let asked: Vec<Question> = ratios.iter().zip(&looks).map(asked).collect();
        let judged = judge(&asked, DELTA);
        let state = |(at, judged): (usize, &Judged)| Cell {
            blocks: u32::try_from(pairs[at].len()).unwrap(),
            block_ns: cells[at].block_ns,
            needs: judged.needs,
        };
        let states: Vec<Cell> = judged.iter().enumerate().map(state).collect();
        given = round(&states, budget_ns.saturating_sub(machine.now_ns));
        if given.is_empty() {
            let blocks = pairs.iter().map(Vec::len).collect();
            return Came { judged, blocks, took_ns: machine.now_ns };
        }
    }
}

fn truth(shift: f64, spread: f64, block_ns: u64) -> Truth {
    Truth { shift, spread, block_ns }
}

#[test]
fn what_the_screen_decides_gets_no_more_and_the_rest_is_decided() {
    // Quiet and equal; quiet and much slower; noisy and equal; noisy and slower.
    let cells = [(0.0, 0.002), (0.3, 0.01), (0.0, 0.04), (0.08, 0.06)];
    let cells = cells.map(|(shift, spread)| truth(shift, spread, 10));
    let came = simulated(&cells, Weather::Calm, 1_000_000, 1);
    let (verdicts, blocks) = (came.verdicts(), &came.blocks);
    assert_eq!((verdicts[0], verdicts[1]), (Verdict::Same, Verdict::Slower));
    assert_eq!(verdicts[3], Verdict::Slower);
    assert!(!verdicts.contains(&Verdict::Inconclusive), "{verdicts:?}");
    assert_eq!(blocks[0], SCREEN as usize);
    assert!(blocks[2] > blocks[0] && blocks[3] > blocks[0], "{blocks:?}");
}

#[test]
fn a_budget_is_kept_and_what_it_cannot_decide_stays_open() {
    let cells = [truth(0.0, 0.5, 1000), truth(0.0, 0.03, 10), truth(0.0, 0.03, 10)];
    let came = simulated(&cells, Weather::Calm, 30_000, 3);
    assert!(came.took_ns <= 30_000, "{}", came.took_ns);
    let verdicts = came.verdicts();
    assert_eq!(verdicts[0], Verdict::Inconclusive, "{:?}", came.blocks);
    // The cheap ones were not kept waiting by the one that cannot be decided.
    assert!(verdicts[1..].iter().all(|v| *v != Verdict::Inconclusive), "{verdicts:?}");
    // A budget that the screen has spent gives nothing to anybody.
    let came = simulated(&cells, Weather::Calm, 100, 3);
    assert_eq!(came.blocks, [SCREEN as usize; 3]);
}

/// The kinds of runs in which nothing differs: weather, and how far processes lie apart. The first
/// ones can hardly be decided, so that every cell is looked at as often as the budget reaches.
const NOTHING: [(&str, Weather, f64); 5] = [
    ("noise that no run decides", Weather::Calm, 0.15),
    ("heavy tails", Weather::HeavyTails, 0.05),
    ("drift", Weather::Drift, 0.10),
    ("a periodic disturbance", Weather::Periodic, 0.05),
    ("noise that most runs decide", Weather::Calm, 0.04),
];

/// Of the runs of these seeds, of ten cells with time for so many blocks of each, in which nothing
/// differs: those that call anything different, and the cells that are SAME.
fn alarms((weather, spread): (Weather, f64), runs: Range<u64>, blocks: u64) -> [usize; 2] {
    let cells = [truth(0.0, spread, 10); 10];
    let budget_ns = 10 * 10 * blocks;
    let came = runs.map(|seed| simulated(&cells, weather, budget_ns, seed));
    came.fold([0, 0], |[cried, same], came| {
        let mine = came.verdicts().iter().filter(|v| **v == Verdict::Same).count();
        [cried + usize::from(came.cries()), same + mine]
    })
}

#[test]
fn runs_of_two_equal_arms_hardly_ever_cry_however_often_they_look() {
    for (name, weather, spread) in NOTHING {
        let [cried, _] = alarms((weather, spread), 0..6, 32);
        // More than one of six is chance in less than one of five hundred.
        assert!(cried <= 1, "{name}: {cried} of 6");
    }
}

#[test]
#[ignore = "minutes; to run it: cargo test --release -p pagelab-bench --test looks -- --ignored"]
fn of_many_runs_of_two_equal_arms_one_in_a_hundred_cries_at_most() {
    const RUNS: u64 = 1000;
    let mut told = String::new();
    // No kind draws what another one drew.
    for (from, (name, weather, spread)) in (10_000..).step_by(1000).zip(NOTHING) {
        let [cried, same] = alarms((weather, spread), from..from + RUNS, 128);
        // What is met in 1 % is met in 20 of 1000 or fewer but for one time in 500.
        assert!(cried <= 20, "{name}: {cried}");
        let [cried, same] = [cried as f64 / RUNS as f64, same as f64 / (10 * RUNS) as f64];
        writeln!(told, "{:.2} %  {:5.1} % SAME  {name}", 100.0 * cried, 100.0 * same).unwrap();
    }
    // Pages show what is kept in `records/`; the seeds are fixed, so that it comes out again.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../records/alarms.txt");
    if std::env::var_os("PAGELAB_KEEP").is_some() {
        std::fs::write(path, &told).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert_eq!(kept, told, "cure: PAGELAB_KEEP=1 and this test again, then cargo xtask splice");
}
