//! `try/program`: a program on every variant of page size, and which of them is worth it.
//!
//! Each variant is compared with base pages and with what is set up now, round by round. What that
//! comes to is in `verdict`. A variant whose pages did not come has no time of its own: it is the
//! program as it was. Each gain is reported with the memory that it costs.
//!
//! The tables are in `section`, why pages did not come in `took`, what `explain` had
//! predicted in `foretold`.

mod beside;
mod builds;
mod foretold;
mod json;
mod memory;
mod section;
mod took;
mod units;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use pagelab_record::{
    Clock, Data, RunHeader,
    asked::{Asked, Reach, Rung},
    stats,
    units::display_bytes,
    verdict::{Better, Judged, Question, Ratio, Verdict, judge},
    vocabulary::tried,
};

pub use self::builds::{BuildLimit, exceeded};
pub(crate) use self::{foretold::predictions, json::value, section::section, units::fit};
use self::{took::Took, verdict::Conclusion};
pub(crate) use crate::ladder::WORKLOAD;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{Entry, Headline, Quantity, Run, Tone, Unit};

/// One rung beside another.
#[derive(Debug, Clone, Copy)]
struct Against {
    ratio: Ratio,
    judged: Judged,
}

/// A rung with all that was seen of it.
#[derive(Debug)]
struct Row<'r> {
    rung: &'r Rung,
    entry: &'r Entry,
    took: Took,
    rounds: usize,
    /// Those in which its pages came: no other is compared.
    came: BTreeSet<u32>,
    /// Relative to [`Tried::base`], and relative to what is set up.
    plain: Option<Against>,
    now: Option<Against>,
    /// Relative to what is set up, of whatever was compared at all.
    screened: Option<Ratio>,
    cpu: Option<Ratio>,
    /// The same beside the variant that was watched.
    watched: Option<Ratio>,
}

/// What is to be better: a time, or what a client said.
#[derive(Debug, Clone, PartialEq)]
struct Goal {
    /// Its series.
    series: String,
    /// What it is called.
    name: String,
    better: Better,
}

impl Goal {
    /// Those of a rung, the one that decides first.
    fn all(entry: &Entry) -> Vec<Self> {
        let mut goals: Vec<Self> = Vec::new();
        let series = entry.measured().into_iter().flat_map(|measured| &measured.series);
        for series in series {
            let goal = Self::of(&series.name);
            goals.extend(goal.filter(|goal| !goals.contains(goal)));
        }
        let time = Self {
            series: tried::ELAPSED.to_owned(),
            name: "elapsed".to_owned(),
            better: Better::Less,
        };
        goals.push(time);
        goals
    }

    fn of(series: &str) -> Option<Self> {
        let (way, name) = series.strip_prefix(tried::SCORE)?.split_once('/')?;
        let better = if way == tried::MORE { Better::More } else { Better::Less };
        Some(Self { series: series.to_owned(), name: name.to_owned(), better })
    }

    /// What a change of it is a change of, in a sentence.
    fn what(&self) -> String {
        if self.series == tried::ELAPSED { "its time".to_owned() } else { self.name.clone() }
    }
}

/// What was tried, and what it comes to.
struct Tried<'r> {
    rows: Vec<Row<'r>>,
    delta: f64,
    /// Rounds at most.
    rounds: u32,
    /// What is to be better, the one that decides first.
    goals: Vec<Goal>,
    /// The process that ran already.
    pid: Option<u32>,
    /// Whether its variants are other builds.
    builds: bool,
    /// The variant whose faults were watched, for what is predicted.
    watched: &'static str,
}

/// The values of a series by round.
fn values(entry: &Entry, name: &str, clock: Clock) -> BTreeMap<u32, f64> {
    let series = entry.measured().into_iter().flat_map(|measured| &measured.series);
    let mine = series.filter(|series| series.name == name && series.clock == clock);
    let value = mine.filter_map(|series| match &series.data {
        Data::Values(values) => Some((series.process, *values.first()? as f64)),
        Data::Histogram(_) | Data::Summary(_) => None,
    });
    value.collect()
}

/// The rounds of a rung in which its pages came, beside those with base pages.
fn rounds(rung: &Rung, entry: &Entry, plain: Option<&Entry>) -> BTreeSet<u32> {
    let values = |entry, name| values(entry, name, Clock::Wall);
    let [large, faults] = [tried::LARGE, tried::MINOR_FAULTS].map(|name| values(entry, name));
    let plain = plain.map(|plain| values(plain, tried::MINOR_FAULTS)).unwrap_or_default();
    let all = values(entry, tried::ELAPSED).into_keys();
    all.filter(|round| {
        let [large, faults, plain] = [&large, &faults, &plain].map(|of| of.get(round).copied());
        rung.came(large, faults, plain)
    })
    .collect()
}

/// One over the other, round by round.
fn ratio(one: &Row<'_>, other: &Entry, name: &str, clock: Clock) -> Option<Ratio> {
    let below = values(other, name, clock);
    let above = one.values(name, clock);
    let pairs = above.into_iter().filter_map(|(round, value)| Some([value, *below.get(&round)?]));
    Ratio::of_pairs(&pairs.collect::<Vec<_>>())
}

impl Row<'_> {
    /// The values of a series by round, of those that are compared; of all, where none is.
    fn values(&self, name: &str, clock: Clock) -> BTreeMap<u32, f64> {
        let mut values = values(self.entry, name, clock);
        if !self.came.is_empty() {
            values.retain(|round, _| self.came.contains(round));
        }
        values
    }

    /// Their median, where there are any.
    fn middle(&self, name: &str, clock: Clock) -> Option<f64> {
        let values = self.values(name, clock);
        (!values.is_empty()).then(|| stats::median(values.into_values()))
    }
}

impl<'r> Tried<'r> {
    fn of(run: &'r Run) -> Option<Self> {
        let Some(Asked::Try(asked)) = &run.header.asked else { return None };
        let delta = f64::from(asked.delta_ppm) / 1e6;
        let entry = |name: &str| {
            let is_mine = |entry: &&Entry| {
                entry.record.workload == WORKLOAD && entry.value(parameter::RUNG) == name
            };
            run.entries.iter().find(is_mine)
        };
        let base = entry(tried::PLAIN);
        let row = |rung: &'r Rung| -> Option<Row<'r>> {
            let entry = entry(&rung.name)?;
            let all = values(entry, tried::ELAPSED, Clock::Wall).len();
            let came = rounds(rung, entry, base);
            let faults = |entry: &Entry| {
                let faults = values(entry, tried::MINOR_FAULTS, Clock::Wall);
                (!faults.is_empty()).then(|| stats::median(faults.into_values()))
            };
            let both = base.and_then(faults).zip(faults(entry));
            let spares = both.is_some_and(|(plain, faults)| faults * 2.0 < plain);
            let took = Took::of(rung, entry, &came, spares);
            let (plain, now, screened, cpu, watched) = (None, None, None, None, None);
            Some(Row { rung, entry, took, rounds: all, came, plain, now, screened, cpu, watched })
        };
        let rows: Vec<Row<'r>> = asked.rungs.iter().filter_map(row).collect();
        let goals = rows.iter().map(|row| Goal::all(row.entry)).max_by_key(Vec::len);
        let (goals, rounds, pid) = (goals.unwrap_or_default(), asked.rounds, asked.pid);
        let builds = asked.own.iter().any(|own| own.build);
        let watched = foretold::watched(&run.aside);
        let mut tried = Self { rows, delta, rounds, goals, pid, builds, watched };
        tried.judge();
        Some(tried)
    }

    /// Judges those that went on behind the screen, as one family beside each of the two bases.
    fn judge(&mut self) {
        let most = self.most_rounds();
        let Some(goal) = self.goals.first().cloned() else { return };
        for base in [tried::PLAIN, tried::AS_SET_UP] {
            let Some(base) = self.named(base).map(|row| row.entry).filter(|e| e.is_valid()) else {
                continue;
            };
            let name = base.value(parameter::RUNG);
            let [is_base, is_now] = [self.base() == name, name == tried::AS_SET_UP];
            let (pid, is_cpu) = (self.pid, self.usual_base() == name);
            let is_watched = self.watched == name;
            let mut family = Vec::new();
            for (at, row) in self.rows.iter_mut().enumerate() {
                let is_other = row.entry.value(parameter::RUNG) != name;
                if !row.entry.is_valid() || !is_other || !row.took.is_compared() {
                    continue;
                }
                let ratio = if pid.is_some() { beside::ratio } else { ratio };
                if is_cpu {
                    row.cpu = ratio(row, base, tried::CPU, Clock::Cpu);
                }
                if is_watched {
                    row.watched = ratio(row, base, tried::CPU, Clock::Cpu);
                }
                let ratio = ratio(row, base, &goal.series, Clock::Wall);
                if is_now {
                    row.screened = ratio;
                }
                let look = row.entry.counter(tried::LOOKS).unwrap_or(1).max(1);
                let look = u32::try_from(look).ok();
                // A screen asks nothing: it only says who goes on. Nobody chooses what only costs.
                if row.rounds * 2 > most && row.rung.name != tried::FIT_NONE {
                    let question = |ratio| Question { ratio, better: goal.better, look };
                    family.extend(ratio.map(|ratio| (at, question(ratio))));
                }
            }
            let asked: Vec<Question> = family.iter().map(|(_, question)| *question).collect();
            for ((at, question), judged) in family.iter().zip(judge(&asked, self.delta)) {
                let against = Some(Against { ratio: question.ratio, judged });
                let row = &mut self.rows[*at];
                row.plain = against.filter(|_| is_base).or(row.plain);
                row.now = against.filter(|_| is_now).or(row.now);
            }
        }
    }

    /// What decides, in a sentence.
    fn what(&self) -> String {
        self.goals.first().map(Goal::what).unwrap_or_default()
    }

    /// The variant that every other is compared with: what is set up, where a budget left no time
    /// for as many rounds with base pages.
    fn base(&self) -> &'static str {
        let base = self.usual_base();
        let rounds = self.named(base).map_or(0, |row| row.rounds);
        let is_screened = rounds * 2 <= self.most_rounds();
        let set_up = self.named(tried::AS_SET_UP).filter(|row| is_screened && row.rounds > rounds);
        set_up.map_or(base, |_| tried::AS_SET_UP)
    }

    /// The same, where a budget left time for it.
    fn usual_base(&self) -> &'static str {
        if self.pid.is_some() || self.builds { tried::AS_SET_UP } else { tried::PLAIN }
    }

    fn most_rounds(&self) -> usize {
        self.rows.iter().map(|row| row.rounds).max().unwrap_or(0)
    }

    fn named(&self, name: &str) -> Option<&Row<'r>> {
        self.rows.iter().find(|row| row.rung.name == name)
    }

    /// The rungs on which it came to its end.
    fn ran(&self) -> impl Iterator<Item = &Row<'r>> {
        self.rows.iter().filter(|row| !matches!(row.took, Took::NotRun | Took::Late(_)))
    }

    /// The fastest of those that are faster than what is set up, and that reach no farther.
    fn best(&self, reach: &[Reach]) -> Option<&Row<'r>> {
        let faster = self.rows.iter().filter_map(|row| {
            let now = row.now.filter(|now| now.judged.verdict == Verdict::Faster)?;
            reach.contains(&row.rung.reach).then(|| (row, self.less(now.ratio.value)))
        });
        faster.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(row, _)| row)
    }

    /// The answers, each with what it is the best of; of equal ones the first.
    fn answers(&self) -> Vec<(&'static str, &Row<'r>)> {
        let asked: [(&str, &[Reach]); 3] = [
            ("best", &[Reach::Program, Reach::Privileged, Reach::Machine]),
            ("best without touching the machine", &[Reach::Program, Reach::Privileged]),
            ("best without privilege", &[Reach::Program]),
        ];
        let mut told: Vec<(&'static str, &Row<'r>)> = Vec::new();
        for (what, reach) in asked {
            let Some(row) = self.best(reach) else { continue };
            if told.iter().all(|(_, other)| other.rung.name != row.rung.name) {
                told.push((what, row));
            }
        }
        told
    }

    /// A ratio of which less is better, whatever decides.
    fn less(&self, ratio: f64) -> f64 {
        let more = self.goals.first().is_some_and(|goal| goal.better == Better::More);
        if more { ratio.recip() } else { ratio }
    }

    /// Bytes that a rung held more than another at its peak.
    fn more(&self, row: &Row<'_>, base: &str) -> Option<f64> {
        let peak = |row: &Row<'_>| row.middle(tried::PEAK, Clock::Wall);
        Some(peak(row)? - peak(self.named(base)?)?)
    }

    /// The same in words: `220 MiB more at its peak`.
    fn price(&self, row: &Row<'_>, base: &str) -> Option<String> {
        let more = self.more(row, base)?;
        let peak = self.named(base)?.middle(tried::PEAK, Clock::Wall)?;
        // What a look catches of a peak is not as exact as a byte.
        if more.abs() < (peak * 0.01).max(1_048_576.0) {
            return Some("no more memory at its peak".to_owned());
        }
        let word = if more > 0.0 { "more" } else { "less" };
        Some(format!("{} {word} at its peak", display_bytes(more.abs())))
    }
}

/// Whether a record of a run only says what was predicted of the program that it tries: no section
/// but that of the program is about it. What went wrong has its own.
pub(crate) fn is_aside(header: &RunHeader, entry: &Entry) -> bool {
    let is_try = matches!(header.asked, Some(Asked::Try(_)));
    is_try && entry.record.workload != WORKLOAD && entry.is_valid()
}

/// A ratio for reading: `−16.0 %`.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{:.1} %", percent.abs())
}

fn quantity(ratio: &Ratio) -> Quantity {
    let Ratio { value, low, high, coverage, units: [processes, _], .. } = *ratio;
    Quantity { value, low, high, coverage, processes, unit: Unit::Ratio }
}

/// The verdict.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let Some(tried) = Tried::of(run) else { return Vec::new() };
    if tried.rows.iter().all(|row| row.screened.is_none()) {
        return Vec::new();
    }
    if tried.builds {
        return builds::headlines(&tried);
    }
    let headline = |value: &str, label: String, detail: String| Headline {
        value: value.to_owned(),
        label,
        detail,
        tone: Tone::Plain,
    };
    let best = match tried.conclusion() {
        Conclusion::Faster(answers) => answers.first().map(|(_, best)| *best),
        Conclusion::Undecided(candidates) => {
            let untried = tried.untried().count();
            let none =
                format!("nothing that was tried looks better; {untried} variants were not tried");
            let (label, detail) = candidates.first().map_or((none, String::new()), |best| {
                let label =
                    format!("best so far: {} beside what is set up, not yet sure", best.name());
                (label, format!("{} · {}", best.spread(), best.remedy(&tried)))
            });
            return vec![headline("undecided", label, detail)];
        }
        Conclusion::Nothing => {
            let label = "no variant is faster than what is set up".to_owned();
            return vec![headline("leave it", label, String::new())];
        }
    };
    let Some((best, now)) = best.and_then(|best| Some((best, best.now?))) else {
        return Vec::new();
    };
    let [low, high] = [now.ratio.low, now.ratio.high].map(change);
    let price = tried.price(best, tried::AS_SET_UP);
    let detail = [Some(format!("95 %: {low} to {high}")), price];
    vec![Headline {
        value: change(now.ratio.value),
        label: format!("of {} by {}, beside what is set up", tried.what(), best.rung.name),
        detail: detail.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        tone: Tone::Strong,
    }]
}
