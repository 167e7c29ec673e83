//! The section of `try/program`: the verdict, the variants in time and memory, what was predicted,
//! and which pages did not come and why.

use pagelab_record::{
    Clock,
    units::{display_bytes, display_ns, display_number},
    verdict::{Ratio, Verdict},
    vocabulary::tried,
};

use super::{
    Goal, Row, Tried, beside, builds, change, foretold, memory, quantity,
    took::Took,
    units,
    verdict::{Candidate, Conclusion},
};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Block, Cell, Grid, Key, Lanes, Note, Quantity, Run, Section, Table, Time, Tone, Unit,
    group_thousands,
};

/// What was tried of a run, where something was.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let tried = Tried::of(run)?;
    let first = tried.rows.first()?;
    let what = if tried.builds { "Builds of" } else { "Larger pages for" };
    let title = format!("{what} {}", first.entry.value(parameter::PROGRAM));
    let mut section = Section::new("try", &title);
    for row in &tried.rows {
        section.all(row.entry.notes().filter(|_| !row.entry.is_valid()));
    }
    let ran: Vec<&str> = tried.ran().map(|row| row.rung.name.as_str()).collect();
    if ran.is_empty() {
        let text = "No run of it came to its end on any rung: there is nothing to compare.";
        section.add(text);
        return Some(section);
    }
    if tried.builds {
        section.all(builds::answers(&tried));
    } else if ran.contains(&tried::AS_SET_UP) {
        section.all(answers(&tried));
        section.all(untried(&tried));
    } else {
        section.add(format!(
            "As it is set up it does not come to its end here; it does on these rungs: {}.",
            ran.join(", ")
        ));
    }
    section.all(beside::caveat(&tried));
    section.all(drawings(&tried));
    section.add(ladder(&tried));
    section.add(legend(&tried));
    section.all(units::blocks(run));
    section.all(foretold::blocks(run));
    section.all(broken_up(&tried).or_else(|| warmed(&tried)));
    section.all(untaken(&tried));
    section.all(memory::mappings(&tried));
    section.all(output(&tried));
    Some(section)
}

/// What the columns are.
fn legend(tried: &Tried<'_>) -> String {
    if tried.pid.is_some() {
        return beside::LEGEND.to_owned();
    }
    if tried.builds {
        return builds::LEGEND.to_owned();
    }
    let [base, of, more] = if tried.base() == tried::PLAIN {
        let more =
            ", whose pages were all touched, so it is memory that is held and was never used";
        ["plain", "base pages", more]
    } else {
        ["as-set-up", "what is set up (the budget left no time for as many of base pages)", ""]
    };
    format!(
        "Beside {base}: the time or first score of a rung over that of {of}, round by round, with \
         its 95 % interval; what is only screened has no verdict. Peak: what it and all that it \
         started held at most, hugetlb pages included, of files and shared memory what the largest \
         of them holds. More: beside {base}{more}. In large pages: the most at one look of any \
         round, in pages of the rung's size or larger."
    )
}

fn answers(tried: &Tried<'_>) -> Vec<Block> {
    let answers = match tried.conclusion() {
        Conclusion::Faster(answers) => answers,
        Conclusion::Undecided(candidates) => {
            return vec![Block::Text(undecided(tried, &candidates))];
        }
        Conclusion::Nothing => {
            let least = change(1.0 - tried.delta);
            return vec![Block::Text(format!(
                "Leave it as it is: no variant is faster than what is set up. Their intervals \
                 exclude a gain of {least} and more."
            ))];
        }
    };
    let mut blocks = Vec::new();
    for (what, row) in &answers {
        let Some(now) = row.now else { continue };
        let [value, low, high] = [now.ratio.value, now.ratio.low, now.ratio.high].map(change);
        let price = tried.price(row, tried::AS_SET_UP).map_or(String::new(), |p| format!(", {p}"));
        blocks.push(Block::Text(format!(
            "{}: {} ({}): {value} of {} ({low} to {high}) beside what is set up{price}.",
            capital(what),
            row.rung.name,
            row.rung.how,
            tried.what()
        )));
        for way in &row.rung.keep {
            blocks.push(Block::Frame(way.clone()));
        }
        if !row.rung.cost.is_empty() {
            blocks.push(Block::Text(format!("It costs others: {}.", row.rung.cost)));
        }
    }
    blocks
}

/// The best candidate with its interval, what would decide it, and the other candidates.
fn undecided(tried: &Tried<'_>, candidates: &[Candidate<'_, '_>]) -> String {
    let Some((best, others)) = candidates.split_first() else {
        return "Undecided: nothing that was tried looks better, and not all was tried.".to_owned();
    };
    let (what, spread) = (tried.what(), best.spread());
    let mut text = format!(
        "Undecided. Best so far: {} of {what} ({spread}) beside what is set up, not yet sure; {}.",
        best.name(),
        best.remedy(tried)
    );
    if !others.is_empty() {
        let names: Vec<String> = others.iter().take(OPEN).map(Candidate::name).collect();
        let more = others.len().saturating_sub(OPEN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text += &format!(" Not excluded either: {}{more}.", names.join(", "));
    }
    text
}

/// Other candidates that are named.
const OPEN: usize = 3;

/// The variants that the budget left no time for.
fn untried(tried: &Tried<'_>) -> Option<Block> {
    let all: Vec<_> = tried.untried().collect();
    let names: Vec<&str> = all.iter().map(|(row, _)| row.rung.name.as_str()).collect();
    let round_ns: u64 = all.iter().map(|(_, ns)| ns).sum();
    let longest = all.iter().map(|(_, ns)| *ns).max()?;
    Some(Block::Text(format!(
        "Not tried: {}. A run of each takes up to {}, a round of all {}; a larger --budget or \
         --rung NAME tries them.",
        names.join(", "),
        display_ns(longest as f64),
        display_ns(round_ns as f64)
    )))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The ladder as two charts: time and memory.
fn drawings(tried: &Tried<'_>) -> Vec<Block> {
    let times = tried.rows.iter().filter_map(|row| {
        let ratio = row.plain.map(|plain| plain.ratio)?;
        Some((row.rung.name.clone(), vec![(0, quantity(&ratio))]))
    });
    let beside = match (tried.pid, tried.base()) {
        (Some(_), _) => "Beside what was before",
        (None, tried::PLAIN) => "Beside base pages",
        (None, _) => "Beside what is set up",
    };
    let times = Lanes::ratios(
        [beside, "The line is 1: of a time, to its left a rung is faster."],
        vec![Key::new(tried.goals.first().map_or("", |goal| goal.name.as_str()), None)],
        times.collect(),
        tried.delta,
    );
    let memory = tried.rows.iter().filter(|row| row.took.is_compared()).filter_map(|row| {
        let peak = row.middle(tried::PEAK, Clock::Wall)?;
        let large = row.large().unwrap_or(0.0);
        let bars = [(0, peak), (1, large)];
        let mib = |bytes: f64| Quantity::exact((bytes / 1_048_576.0).round(), Unit::Count);
        Some((row.rung.name.clone(), bars.map(|(key, bytes)| (key, mib(bytes))).to_vec()))
    });
    let memory = Lanes::bars(
        [
            "Memory at its peak, MiB",
            "Held: the median of the rounds. In large pages: at the look that saw most.",
        ],
        vec![Key::new("held", None), Key::new("in large pages", Some(200.0))],
        memory.collect(),
        None,
    );
    [times, memory].into_iter().filter_map(Lanes::shown).map(Block::Lanes).collect()
}

fn ladder(tried: &Tried<'_>) -> Table {
    let bytes = |row: &Row<'_>, name| row.middle(name, Clock::Wall).map(display_bytes);
    let shown = |row: &Row<'_>, ratio: Option<Ratio>| {
        Cell::spread(ratio.filter(|_| row.took.is_compared()).map(|ratio| quantity(&ratio)))
    };
    let grid =
        Grid::<&Row<'_>>::new().words("rung", 0, |row| Cell::from(row.rung.name.clone()).strong());
    // What does not decide is the first to make room.
    let grid = tried.goals.iter().enumerate().fold(grid, |grid, (nth, goal)| {
        grid.number(&goal.name, if nth == 0 { 0 } else { 5 }, move |row| value(row, goal))
    });
    let (is_second, groups) = (tried.base() != tried::AS_SET_UP, tried::GROUP_PEAK);
    let has_groups = tried.rows.iter().any(|row| bytes(row, groups).is_some());
    grid.number(&format!("beside {}", tried.base()), 0, move |row| {
        shown(row, row.plain.map(|plain| plain.ratio))
    })
    .words("verdict", 0, |row| verdict(tried, row))
    // What the sentences above the table say.
    .only_if(is_second, |grid| {
        grid.number("beside as-set-up", 1, move |row| shown(row, row.screened))
    })
    .number(&format!("CPU beside {}", tried.usual_base()), 3, move |row| shown(row, row.cpu))
    .number("faults", 4, |row| row.middle(tried::MINOR_FAULTS, Clock::Wall).map(group_thousands))
    .number("peak", 1, move |row| bytes(row, tried::PEAK))
    .number("mean", 6, move |row| bytes(row, tried::MEAN))
    .number("more", 0, |row| {
        let is_told = row.took.is_compared() && row.rung.name != tried.base();
        let more = tried.more(row, tried.base()).filter(|_| is_told)?;
        let sign = if more < 0.0 { "\u{2212}" } else { "+" };
        Some(format!("{sign}{}", display_bytes(more.abs())))
    })
    .number("in large pages", 2, |row| memory::cell(row))
    .only_if(has_groups, |grid| grid.number("peak of its cgroup", 2, move |row| bytes(row, groups)))
    .told(tried.ran())
}

/// The median of a time, or of what clients said.
fn value(row: &Row<'_>, goal: &Goal) -> Cell {
    if !row.took.is_compared() {
        return Cell::none();
    }
    let at = At { arm: tried::ARM, series: &goal.series, time: Time::Elapsed };
    if goal.series == tried::ELAPSED && row.came.len() == row.rounds {
        return Cell::of(row.entry.numbers.get(at, "p50"));
    }
    let value = row.middle(&goal.series, Clock::Wall);
    if goal.series == tried::ELAPSED {
        return Cell::maybe(value.map(display_ns));
    }
    Cell::maybe(value.map(|thousandths| display_number(thousandths / 1000.0)))
}

fn verdict(tried: &Tried<'_>, row: &Row<'_>) -> Cell {
    let is_base = row.rung.name == tried.base();
    match (&row.took, row.plain) {
        (Took::No(_), _) => Cell::toned("did not take", Tone::Warn),
        (Took::Unseen(_), _) => Cell::toned("not proven", Tone::Warn),
        (_, Some(plain)) => {
            let tone = match plain.judged.verdict {
                Verdict::Faster => Tone::Good,
                Verdict::Slower => Tone::Bad,
                _ => Tone::Quiet,
            };
            Cell::toned(plain.judged.verdict.name(), tone)
        }
        _ if is_base => Cell::toned("the base", Tone::Quiet),
        _ if row.rung.name == tried::FIT_NONE => Cell::toned("the base of fit", Tone::Quiet),
        _ => Cell::toned("screened", Tone::Quiet),
    }
}

/// What was left of free blocks, where they were broken up.
fn broken_up(tried: &Tried<'_>) -> Option<Block> {
    let blocks = tried.rows.iter().filter_map(|row| row.middle(tried::FREE_BLOCKS, Clock::Wall));
    let most = blocks.fold(None, |most: Option<f64>, blocks| {
        Some(most.map_or(blocks, |most| most.max(blocks)))
    })?;
    Some(Block::Text(format!(
        "Free memory was broken up before each run: on the rung that had most, {most:.0} free \
         blocks of 2 MiB were there when it began (the median of its rounds)."
    )))
}

/// What was touched for its host's sake, where it has one.
fn warmed(tried: &Tried<'_>) -> Option<Block> {
    let bytes = tried.rows.iter().filter_map(|row| row.middle(tried::WARMED, Clock::Wall));
    let most = bytes.reduce(f64::max)?;
    let in_part = tried.rows.iter().filter_map(|row| row.entry.counter(tried::WARMED_IN_PART));
    let short = match in_part.sum() {
        0_u64 => String::new(),
        1 => " Before one of them the host took too long for all of it.".to_owned(),
        runs => format!(" Before {runs} of them the host took too long for all of it."),
    };
    Some(Block::Text(format!(
        "This machine gives free memory back to its host. {} of it were touched before each run, \
         so that runs wait for the host less.{short}",
        display_bytes(most)
    )))
}

/// The rungs whose pages did not come, or at times only, or were not seen.
fn untaken(tried: &Tried<'_>) -> Vec<Block> {
    let told = tried.rows.iter().filter_map(|row| match &row.took {
        Took::No(why) => Some(("did not take", row, why.clone())),
        Took::Unseen(why) => Some(("not proven", row, why.clone())),
        Took::Late(ns) => Some(("too slow", row, tried.too_slow(*ns))),
        Took::Yes if row.came.len() < row.rounds => {
            let [came, rounds] = [row.came.len(), row.rounds];
            let why = if row.rung.fickle.is_empty() { "" } else { ": " };
            let text = format!(
                "its pages came in {came} of {rounds} rounds, and no other is compared{why}{}",
                row.rung.fickle
            );
            Some(("at times", row, text))
        }
        Took::NotAsked | Took::Yes | Took::NotRun => None,
    });
    let note = |(tag, row, why): (&'static str, &Row<'_>, String)| {
        Block::Note(Note::warn(tag, format!("{}: {why}", row.rung.name), ""))
    };
    told.map(note).collect()
}

/// Whether the program said the same on every rung.
fn output(tried: &Tried<'_>) -> Option<Block> {
    let digest = |row: &&Row<'_>| row.entry.counter(tried::OUTPUT_DIGEST);
    let of = |name| tried.ran().find(|row| row.rung.name == name);
    let [plain, as_set_up] = [tried::PLAIN, tried::AS_SET_UP].map(of);
    let steady = |row: &Row<'_>| row.entry.counter(tried::OUTPUT_STEADY) == Some(1);
    if [plain, as_set_up].into_iter().flatten().any(|row| !steady(row)) {
        let text = "its output differs from run to run on one rung: it says nothing of the rungs";
        return Some(Block::Text(capital(text)));
    }
    let plain = plain?;
    let others = tried.ran().filter(|row| !steady(row) || digest(row) != digest(&plain));
    let others: Vec<&str> = others.map(|row| row.rung.name.as_str()).collect();
    Some(if others.is_empty() {
        Block::Text("Its output was the same in every run.".to_owned())
    } else {
        let text = format!("its output is another than with base pages: {}", others.join(", "));
        Block::Note(Note::warn("output", text, "compare RUNG.stdout in the run's directory"))
    })
}
