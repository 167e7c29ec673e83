//! Other builds of a program, each compared with the program as it is set up.
//!
//! A build is a variant that claims nothing about pages. It has a verdict on its time, as any
//! variant has, and the difference of its page faults, which are counted. A limit of each may be
//! exceeded ([`BuildLimit`]): that of the time by a verdict, so that chance does not exceed it.

use pagelab_record::{
    Clock,
    verdict::{Better, Verdict},
    vocabulary::tried::{self, AS_SET_UP},
};

use super::{Row, Tried, change};
use pagelab_report::{Block, Headline, Run, Tone, group_thousands};

/// What another build may be worse by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BuildLimit {
    /// By its time, or by the first score of a client: a share, by the verdict.
    Time(f64),
    /// By its page faults: a share, of the medians over the rounds.
    Faults(f64),
}

pub(super) const LEGEND: &str = "\
Beside as-set-up: the time or first score of a build over that of the program, round by round, \
with its 95 % interval. Faults: minor faults, the median of the rounds. Peak: what it and all that \
it started held at most, as far as it was seen. More: beside as-set-up.";

/// The builds that ran, of a run that compares builds.
fn builds<'t, 'r>(tried: &'t Tried<'r>) -> impl Iterator<Item = &'t Row<'r>> {
    tried.ran().filter(|row| tried.builds && row.rung.name != AS_SET_UP)
}

/// Page faults of the program and of a build.
fn faults(tried: &Tried<'_>, row: &Row<'_>) -> Option<[f64; 2]> {
    let of = |row: &Row<'_>| row.middle(tried::MINOR_FAULTS, Clock::Wall);
    Some([of(tried.named(AS_SET_UP)?)?, of(row)?])
}

/// `+12 288 page faults (4 156 → 16 444)`.
fn more_faults(both: [f64; 2]) -> String {
    let [before, after] = both;
    let sign = if after < before { "\u{2212}" } else { "+" };
    if (after - before).abs() < 0.5 {
        return format!("as many page faults ({})", group_thousands(before));
    }
    let [more, a, b] = [(after - before).abs(), before, after].map(group_thousands);
    format!("{sign}{more} page faults ({a} → {b})")
}

/// `+30.1 % of its time`, and `+28.0 % to +33.0 % in 12 rounds`.
fn time(tried: &Tried<'_>, row: &Row<'_>) -> Option<[String; 2]> {
    let ratio = row.screened?;
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(change);
    let spread = format!("{low} to {high} in {} rounds", ratio.units[0]);
    Some([format!("{value} of {}", tried.what()), spread])
}

fn verdict(row: &Row<'_>) -> Verdict {
    row.now.map_or(Verdict::Inconclusive, |now| now.judged.verdict)
}

/// A sentence for each build.
pub(super) fn answers(tried: &Tried<'_>) -> Vec<Block> {
    let sentence = |row: &Row<'_>| {
        let faults = faults(tried, row).map(more_faults);
        let time = time(tried, row).map(|[value, spread]| format!("{value} ({spread})"));
        let told: Vec<String> = time.into_iter().chain(faults).collect();
        let (name, how) = (&row.rung.name, &row.rung.how);
        Block::Text(format!("{name} ({how}) is {}: {}.", verdict(row), told.join("; ")))
    };
    builds(tried).map(sentence).collect()
}

/// A line for each build.
pub(super) fn headlines(tried: &Tried<'_>) -> Vec<Headline> {
    let headline = |row: &Row<'_>| {
        let tone = match verdict(row) {
            Verdict::Slower => Tone::Bad,
            Verdict::Faster => Tone::Good,
            _ => Tone::Plain,
        };
        let faults = faults(tried, row).map(more_faults);
        let (value, name) = (verdict(row).name().to_owned(), &row.rung.name);
        let [time, spread] = time(tried, row).unwrap_or_default();
        let told: Vec<String> = [spread].into_iter().chain(faults).collect();
        let (label, detail) = (format!("{name}: {time}"), told.join(" · "));
        Headline { value, label, detail, tone }
    };
    builds(tried).map(headline).collect()
}

/// A sentence for each limit that a build exceeds.
pub fn exceeded(run: &Run, limits: &[BuildLimit]) -> Vec<String> {
    let Some(tried) = Tried::of(run) else { return Vec::new() };
    let better = tried.goals.first().map_or(Better::Less, |goal| goal.better);
    let percent = |share: f64| format!("{}%", (share * 1e5).round() / 1e3);
    let of = |limit: &BuildLimit, row: &Row<'_>| match *limit {
        BuildLimit::Time(most) => {
            let now = row.now?;
            let is_slower = Verdict::judge(&now.ratio, now.judged.p, most, better);
            let is_worse = is_slower == Verdict::Slower && tried.less(now.ratio.value) > 1.0 + most;
            let [value, spread] = time(&tried, row)?;
            is_worse.then(|| format!("time:{}: {value} ({spread})", percent(most)))
        }
        BuildLimit::Faults(most) => {
            let [before, after] = faults(&tried, row)?;
            let is_worse = after > before * (1.0 + most);
            let told = || format!("faults:{}: {}", percent(most), more_faults([before, after]));
            is_worse.then(told)
        }
    };
    let of_build = |row: &Row<'_>| -> Vec<String> {
        let told = limits.iter().filter_map(|limit| of(limit, row));
        told.map(|told| format!("{told} of {}", row.rung.name)).collect()
    };
    builds(&tried).flat_map(of_build).collect()
}
