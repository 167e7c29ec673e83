//! Slowdowns that were planted, over and over: how often a comparison finds them.
//!
//! The one idea: a trial is one question, whether what was made slower by a known share is found;
//! beside it stands the same question where nothing was planted, which must find nothing. How far
//! processes of a block lie apart in which nothing was planted says what fewer or more would see.

use pagelab_record::{
    power::{Seen, seen, share_interval},
    stats::median,
    verdict::Verdict,
    vocabulary::series::PLANTED,
};
use serde_json::{Value, json};

use super::{Asked, Comparison, arms, judged::Cell as Compared, sections};
use crate::{
    Views,
    document::{Cell, Document, Headline, Note, Section, Tone},
    forms,
    grid::Grid,
    terminal::{self, Style},
};

/// Processes of each side that are asked what they see.
const UNITS: [usize; 5] = [8, 16, 32, 64, 128];
/// So many blocks at least say how far their processes lie apart.
const NOISE_MIN: usize = 24;

/// A slowdown, and what counts as none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// By which share bodies are to be slower.
    pub planted: f64,
    /// A difference of less is none.
    pub delta: f64,
}

impl Question {
    /// How the runs of a trial are compared.
    pub fn asked(&self, views: &Views) -> Asked {
        Asked { delta: Some(self.delta), allow: vec![PLANTED.to_owned()], ..Asked::of(views) }
    }
}

/// What a trial took.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// By which share bodies were slower, as measured.
    pub planted: f64,
    /// Seconds.
    pub seconds: f64,
}

/// What came of a trial.
#[derive(Debug, Clone)]
struct Trial {
    verdict: Verdict,
    /// Where nothing was planted.
    control: Verdict,
    ratio: Option<f64>,
    processes: usize,
    taken: Taken,
}

/// Trials of one question on one case.
#[derive(Debug, Clone)]
pub struct Power {
    question: Question,
    case: String,
    trials: Vec<Trial>,
    /// How far two processes of a block lie apart in which nothing was planted.
    noise: Vec<f64>,
}

impl Power {
    /// No trial yet.
    pub fn new(question: Question, case: &str) -> Self {
        Self { question, case: case.to_owned(), trials: Vec::new(), noise: Vec::new() }
    }

    /// One more trial: its cells are what was made slower, and what was not. Answers what came of
    /// the first, and by how many processes of each side.
    pub fn add(&mut self, trial: &Comparison<'_>, taken: Taken) -> (Verdict, usize) {
        let mut cells = trial.cells();
        let Some(cell) = cells.next() else { return (Verdict::NotComparable, 0) };
        let processes = cell.counts().into_iter().max().unwrap_or(0);
        let again = cells.next();
        self.noise.extend(again.into_iter().flat_map(apart));
        self.trials.push(Trial {
            verdict: cell.verdict,
            control: again.map_or(Verdict::NotComparable, |cell| cell.verdict),
            ratio: cell.ratio.map(|ratio| ratio.value),
            processes,
            taken,
        });
        (cell.verdict, processes)
    }

    /// Whether no trial came to its end.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    fn count(&self, is_wanted: impl Fn(&Trial) -> bool) -> usize {
        self.trials.iter().filter(|trial| is_wanted(trial)).count()
    }

    fn middle(&self, of: impl Fn(&Trial) -> f64) -> f64 {
        median(self.trials.iter().map(of))
    }

    fn found(&self) -> usize {
        self.count(|trial| trial.verdict == Verdict::Slower)
    }

    fn undecided(&self) -> usize {
        self.count(|trial| trial.verdict == Verdict::Inconclusive)
    }

    /// Trials in which nothing was planted and something was found.
    fn cried(&self) -> usize {
        self.count(|trial| matches!(trial.control, Verdict::Slower | Verdict::Faster))
    }

    /// The middle and the most of the processes of each side.
    fn processes(&self) -> [f64; 2] {
        let most = self.trials.iter().map(|trial| trial.processes).max().unwrap_or(0);
        [self.middle(|trial| trial.processes as f64), most as f64]
    }

    /// What so many processes see here.
    fn seen(&self) -> Vec<Seen> {
        if self.noise.len() < NOISE_MIN {
            return Vec::new();
        }
        UNITS.iter().filter_map(|units| seen(&self.noise, *units, self.question.delta)).collect()
    }

    /// What the trials of some questions come to, for a terminal.
    pub fn terminal(all: &[Self], style: Style) -> String {
        let percents = |share: f64| format!("{:.2} %", share * 100.0);
        let table = Grid::<&Self>::new()
            .number("planted", 0, |power| sections::share(power.question.planted))
            .number("measured", 0, move |power| percents(power.middle(|t| t.taken.planted)))
            .number("a tie", 0, |power| sections::share(power.question.delta))
            .number("trials", 0, |power| power.trials.len().to_string())
            .number("found", 0, |power| Cell::from(power.found().to_string()).strong())
            .number("95 %", 0, |power| {
                let [low, high] = share_interval(power.found(), power.trials.len());
                format!("{}–{}", percent(low), percent(high))
            })
            .number("undecided", 0, |power| power.undecided().to_string())
            .number("false alarms", 0, |power| power.cried().to_string())
            .number("processes", 0, |power| {
                let [middle, most] = power.processes();
                format!("{middle:.0}, at most {most:.0}")
            })
            .number("seconds", 0, |power| format!("{:.1}", power.middle(|t| t.taken.seconds)))
            .table(all);
        let mut trials = Section::new("trials", "Trials").with(table);
        let cases: Vec<&str> = all.first().map(|power| power.case.as_str()).into_iter().collect();
        trials.add(format!(
            "Each trial measures {} in blocks of two fresh processes: as it is beside slower, and \
             as it is beside as it is. Planted: extra work inside the clock pair; measured: what \
             it took, \
             over what the body took. Found: SLOWER, with a 95 % interval of the share. False \
             alarms: FASTER or SLOWER where nothing was planted. Processes, seconds: the middle \
             of the trials, and the most processes, of each side; a trial asks for as many as its \
             verdict plans, within its budget.",
            cases.join(", ")
        ));
        let sections = [Some(trials)].into_iter().chain(all.iter().map(Self::seen_section));
        let few = all.iter().any(|power| power.noise.len() < NOISE_MIN).then(|| {
            let text = "so few processes do not say how far they lie apart: nothing is said of \
                        what more or fewer would see";
            Note::warn("few", text.to_owned(), "more --trials")
        });
        let document = Document {
            title: "A slowdown that was planted".to_owned(),
            alerts: few.into_iter().collect(),
            headlines: all.iter().map(Self::headline).collect(),
            sections: sections.flatten().collect(),
            ..Document::default()
        };
        terminal::render(&document.harmless(), style)
    }

    fn headline(&self) -> Headline {
        let Question { planted, delta } = self.question;
        let (found, trials) = (self.found(), self.trials.len());
        Headline {
            value: percent(found as f64 / trials.max(1) as f64),
            label: format!("of slowdowns by {} are found", sections::share(planted)),
            detail: format!(
                "{found} of {trials} trials; a tie is within {}",
                sections::share(delta)
            ),
            tone: Tone::Strong,
        }
    }

    fn seen_section(&self) -> Option<Section> {
        let Question { planted, delta } = self.question;
        let percents = |share: f64| format!("{:.2} %", share * 100.0);
        let table = Grid::<Seen>::new()
            .number("processes of each side", 0, |seen| seen.units.to_string())
            .number("found in half", 0, move |seen| percents(seen.half))
            .number("found in 90 %", 0, move |seen| Cell::from(percents(seen.most)).strong())
            .table(self.seen());
        let title = format!(
            "The least slowdown that is seen where a tie is within {}",
            sections::share(delta)
        );
        let id = format!("seen-{:.0}", planted * 1000.0);
        (self.noise.len() >= NOISE_MIN).then(|| {
            Section::new(id, &title).with(table).with(format!(
                "Drawn from {} blocks of this host in which nothing was planted, by how far \
                 their two processes lie apart.",
                self.noise.len()
            ))
        })
    }

    /// As JSON, `pagelab.power/1`.
    pub fn json(all: &[Self]) -> String {
        let questions: Vec<Value> = all.iter().map(Self::value).collect();
        let document = json!({"schema": "pagelab.power/1", "questions": questions});
        forms::json(&document)
    }

    fn value(&self) -> Value {
        let (trials, [low, high]) =
            (self.trials.len(), share_interval(self.found(), self.trials.len()));
        let [middle, most] = self.processes();
        let seen = self.seen().into_iter().map(|seen| {
            json!({
                "processes": seen.units, "found_in_half": seen.half,
                "found_in_90_percent": seen.most,
            })
        });
        let trial = |trial: &Trial| {
            json!({
                "verdict": trial.verdict, "control": trial.control, "ratio": trial.ratio,
                "processes": trial.processes, "planted": trial.taken.planted,
                "seconds": trial.taken.seconds,
            })
        };
        json!({
            "case": self.case,
            "planted": self.question.planted,
            "planted_measured": self.middle(|trial| trial.taken.planted),
            "delta": self.question.delta,
            "trials": trials,
            "found": self.found(),
            "found_share": self.found() as f64 / trials.max(1) as f64,
            "low": low,
            "high": high,
            "undecided": self.undecided(),
            "false_alarms": self.cried(),
            "processes": {"median": middle, "max": most},
            "seconds": {"median": self.middle(|trial| trial.taken.seconds)},
            "smallest": seen.collect::<Vec<_>>(),
            "all": self.trials.iter().map(trial).collect::<Vec<_>>(),
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// How far the two processes of each block of a cell lie apart.
fn apart(cell: &Compared<'_>) -> Vec<f64> {
    let [Some(a), Some(b)] = &cell.sides else { return Vec::new() };
    arms::blocks(a, b).map(|(_, [a, b])| (b / a).ln()).collect()
}
