//! `tier/curve`: what the same accesses take with a share of their pages on the slow node.
//!
//! The one idea: nothing moves while it is measured. One memory lies in eleven placements, one
//! after the other, and the same draws are made over each: what differs is where pages are. So the
//! curve C(u) that the simulator builds on is measured, not assumed.
//!
//! Draws are uniform, so that a share of the pages is that share of the accesses. Pages on the slow
//! node are spread evenly. Each placement is asked of the kernel before the clock starts and after
//! it stopped, page by page. On one node there is one placement, and the others are left out.

mod places;

use std::rc::Rc;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Over, Param, Read, Trial,
    Witness,
    needs::{self, Node, far_node, near_node},
    words,
};
use pagelab_record::{
    Case,
    vocabulary::{Check, counter::PAGES, series::SCORE},
};
use pagelab_sys::{
    Area,
    loops::draws::{DRAWERS_MAX, Draws},
    memory::{Advice, Backing, Layout},
};

use super::{
    drawn::{self, Drawn, Made},
    micro::still,
};
use pagelab_mappings::{populate::touch_all, space};

/// The share of the pages on the slow node, in percent.
const SHARES: &[&str] = &["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"];

fn percent(share: &str) -> u64 {
    share.parse().unwrap_or(0)
}

words! {
    /// What is done against what the case says.
    pub enum Lie {
        /// Nothing.
        None = "none",
        /// Every thread makes two accesses less.
        Fewer = "fewer",
    }
}

const PARAMS: &[Param] = &[
    Param::arms("share", Kind::Choice(SHARES), "0,10,20,30,40,50,60,70,80,90,100")
        .asks(&["0,100"])
        .help("percent of the pages on the slow node"),
    Param::axis("size", Kind::Size, "64m").help("memory that is accessed"),
    Param::axis("threads", Kind::Count { max: DRAWERS_MAX as u64, auto: true }, "auto")
        .help("threads, on CPUs of the fast node; auto: one for each of them"),
    Param::axis("accesses", Kind::Ops, "1m").help("accesses of each thread, an even number"),
    Param::axis("seed", Kind::Count { max: 1 << 32, auto: false }, "1")
        .help("where the draws begin: pages and their order follow from it"),
    Param::axis("waits", Kind::Choice(&["no", "yes"]), "no")
        .help("yes: a load begins when the one before it has ended, so that its latency shows"),
    space::CPU,
    Param { default: "3", ..space::ROUNDS }.help("repetitions in each process, all of them kept"),
    Param { kind: Kind::Choice(Lie::WORDS), ..space::LIE },
];

/// A case, read.
#[derive(Debug, Clone)]
pub struct Asked {
    shares: Vec<&'static str>,
    drawn: Drawn,
    waits: bool,
    rounds: Option<u32>,
    lie: Lie,
}

/// See the module's documentation.
pub const CURVE: Described<Asked> = Described {
    resolve: Drawn::resolve,
    parts: &[&Over { of: |asked: &Asked| &asked.drawn, tables: &[drawn::REFUSALS] }],
    ..Described::new(
        "tier/curve",
        "the same accesses over eleven placements: what a share of slow memory costs, C(u)",
        PARAMS,
        &[("size", "4m"), ("accesses", "20k"), ("threads", "2"), ("rounds", "2")],
        of,
    )
};

fn of(case: &Case) -> Asked {
    let share = |word: &str| SHARES.iter().copied().find(|share| *share == word);
    Asked {
        shares: case.text("share").unwrap_or_default().split(',').filter_map(share).collect(),
        drawn: Drawn::of(case),
        waits: case.is("waits", "yes"),
        rounds: case.count("rounds").and_then(|rounds| u32::try_from(rounds).ok()),
        lie: case.word("lie"),
    }
}

impl Asked {
    fn draws(&self) -> Vec<Draws> {
        let mut draws = self.drawn.draws(true);
        if self.waits {
            draws = draws.into_iter().map(Draws::waiting).collect();
        }
        draws
    }
}

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let mut needs = vec![needs::Memory(self.footprint()).needed()];
        needs.extend(self.drawn.cpus.needs());
        needs.extend(still());
        needs.extend(self.of_arms().into_iter().take(1).flat_map(|(_, needs)| needs));
        needs
    }

    fn of_arms(&self) -> Vec<(&'static str, Vec<Needed>)> {
        let needs = |share: &str| if share == "0" { Vec::new() } else { vec![Node::Far.needed()] };
        self.shares.iter().map(|share| (*share, needs(share))).collect()
    }

    fn footprint(&self) -> u64 {
        self.drawn.size + self.drawn.size / 256
    }

    fn seconds(&self) -> f64 {
        let accesses = self.drawn.accesses.unwrap_or(0) as f64;
        let moved = self.drawn.size as f64 / 4096.0 * 3e-6;
        (accesses * 150e-9 + moved) * self.shares.len() as f64 + 0.01
    }

    fn repetitions(&self) -> Option<u32> {
        self.rounds
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let slow = far_node();
        let area =
            Area::mapped(Layout::contiguous(self.drawn.bytes()), Backing::Anonymous, 2 << 20)?;
        area.advise(Advice::NoHugePage)?;
        touch_all(&area);
        let ground = Rc::new(Ground {
            area,
            near: near_node().unwrap_or(0),
            slow,
            pages: self.drawn.pages(),
            draws: self.draws(),
            cpus: self.drawn.places(),
            lie: self.lie,
        });
        let trial = |share: &&'static str| -> Box<dyn Trial> {
            Box::new(Placement { share, ground: Rc::clone(&ground), found: None })
        };
        Ok(self.shares.iter().filter(|share| inputs.has(share)).map(trial).collect())
    }
}

/// What all placements share.
#[derive(Debug)]
struct Ground {
    area: Area,
    near: usize,
    slow: Option<usize>,
    pages: u32,
    draws: Vec<Draws>,
    cpus: Vec<Option<usize>>,
    lie: Lie,
}

/// One placement.
#[derive(Debug)]
struct Placement {
    share: &'static str,
    ground: Rc<Ground>,
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    /// Pages on the slow node before the accesses and after them.
    slow: [u64; 2],
    /// What the loads of each thread added up to.
    sums: Vec<u64>,
}

impl Trial for Placement {
    fn arm(&self) -> &'static str {
        self.share
    }

    fn reset(&mut self) -> Result<(), Error> {
        let Ground { area, near, slow, .. } = &*self.ground;
        area.fill(|| 0);
        places::lay(area, *near, *slow, percent(self.share))
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let ground = &*self.ground;
        let before = places::on_slow(&ground.area, ground.slow)?;
        let Ground { area, draws, cpus, lie, .. } = ground;
        let clock = meter.clock();
        let Made { span, sums } = drawn::access(area, draws, cpus, *lie == Lie::Fewer, clock)?;
        let (ns, elapsed) = (clock.elapsed_ns(span), meter.elapsed());
        meter.observe(SCORE, elapsed, 1, 0, ns);
        let after = places::on_slow(&ground.area, ground.slow)?;
        self.found = Some(Found { slow: [before, after], sums });
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Found { slow, sums } = self.found.take().expect("run comes before verify");
        let ground = &*self.ground;
        let expected = places::slow_pages(ground.pages, percent(self.share));
        let share = self.share;
        for (when, found) in ["before", "after"].into_iter().zip(slow) {
            let claim = format!("base pages on the slow node, {share} %, {when} the accesses");
            witness.expect((Check::PlacedOnSlow, &claim), expected, found);
        }
        drawn::compare(&ground.area, &ground.draws, &sums, true, witness);
        witness.set(PAGES, u64::from(ground.pages));
        if ground.slow.is_none() {
            witness.warn(
                "this machine has one memory node: the curve has one point, everything fast"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
