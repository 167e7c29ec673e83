//! `segment/fault`: what first touch and taking again cost, by where memory comes from.
//!
//! The one idea: a row is an arm. Every round of the kernel's own pages is a first pass, and so is
//! every round of a segment of the module; a segment of ours has one first pass, and then is taken
//! again. So both are columns, and each is set beside what it is to beat: base pages, huge pages,
//! and clearing the same memory without anything else.

use std::collections::BTreeMap;

use pagelab_record::{
    Case, Clock, Data, Measured, Series,
    vocabulary::{
        arm::{PLAIN, THP},
        arm_counter, counter, parameter,
        series::{ALL, CLEAR, CONTROL, FIRST, MAP, PROCESS, RESERVE, SETUP, ZERO},
    },
};

use pagelab_report::{
    Cell, Entry, Grid, Headline, Limits, Numbers, Quantity, Run, Section, Table, Unit, all_rows,
    columns, cpu, distinct, group_thousands, headline,
    limits::{OF_CLEAR, over_limit, share_cell},
    ratio, tally,
};

use crate::WORKLOAD;

/// A round less the control loop.
const NET: &str = "net";

fn first(name: &str) -> String {
    format!("{FIRST}{name}")
}

/// The arms of a record, as the case lists them.
fn arms(case: &Case, measured: &Measured) -> Vec<String> {
    let mut arms = distinct(measured.series.iter().map(|series| series.arm.clone()));
    let listed: Vec<&str> = case.get(parameter::ARMS).unwrap_or_default().split(',').collect();
    arms.sort_by_key(|arm| listed.iter().position(|known| known == arm));
    arms
}

/// Adds each round beside base pages, huge pages, clearing, and the limit of clearing.
pub(crate) fn derive(case: &Case, measured: &Measured, limits: &Limits, numbers: &mut Numbers) {
    let series = &measured.series;
    for arm in arms(case, measured) {
        for start in ["", FIRST] {
            let (process, all) = (format!("{start}{PROCESS}"), format!("{start}{ALL}"));
            let over = |name: &str, other: &str, base: &str| {
                ratio::of_series(series, Clock::Cpu, [(&arm, name), (other, base)])
            };
            numbers.add(cpu(&arm, &process), "of_plain", over(&process, PLAIN, PROCESS));
            numbers.add(cpu(&arm, &all), "of_thp", over(&all, THP, ALL));
            let bandwidth = numbers.get(cpu(&arm, &process), "bandwidth");
            limits.add_share_of_clear(cpu(&arm, &process), bandwidth, numbers);
        }
        let net = net(series, &arm);
        let of_clear = ratio::of_series(&net, Clock::Cpu, [(&arm, NET), (&arm, CLEAR)]);
        numbers.add(cpu(&arm, PROCESS), "of_clear", of_clear);
        let faults = measured.counters.get(&arm_counter(counter::FAULTS_PER_REPETITION, &arm));
        let faults = faults.map(|faults| Quantity::exact(*faults as f64, Unit::Count));
        numbers.add(tally(&arm, "faults"), "each", faults);
    }
}

/// Rounds that take memory again, less the control loop; and what the same memory takes to clear.
fn net(series: &[Series], arm: &str) -> Vec<Series> {
    let mine = |name: &'static str| {
        let is_it = move |s: &&Series| s.arm == arm && s.clock == Clock::Cpu && s.name == name;
        series.iter().filter(is_it)
    };
    let value = |series: &Series| match &series.data {
        Data::Values(values) => values.first().copied().unwrap_or(0),
        _ => 0,
    };
    let at = |series: &Series| (series.process, series.repetition);
    let control: BTreeMap<_, u64> = mine(CONTROL).map(|s| (at(s), value(s))).collect();
    let less = |round: &Series| {
        let left = value(round).saturating_sub(*control.get(&at(round))?);
        let (name, data) = (NET.to_owned(), Data::Values(vec![left]));
        Some(Series { name, ops: 1, data, ..round.clone() })
    };
    mine(PROCESS).filter_map(less).chain(mine(CLEAR).cloned()).collect()
}

/// The table, where there is one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let mut section = Section::new("segment", "Segments: first pass, and taken again");
    let mut shown = columns(&mine, &[]);
    shown.retain(|name| name != "arms");
    section.add(table(&mine, &shown));
    let named = [shown, vec!["arms".to_owned()]].concat();
    section.add(format!(
        "{}CPU time of a round: taking memory, a store to each 4 KiB, giving it back. First pass: \
         with set-up. Again: with clearing what was given back, by whomever. Of plain: of the CPU \
         time of a round of base pages. Of THP: with the kernel's helpers (khugepaged, kcompactd, \
         kswapd, ksmd, of the whole machine) and the filling of a pool, of the same for huge \
         pages. Of clearing: again, less the same loop over present pages, of one clear \
         of the same memory.",
        all_rows(&mine, &named)
    ));
    section.all(over_limit(&mine));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let rows = entries.iter().flat_map(|entry| {
        let arms = entry.measured().map(|measured| arms(entry.case(), measured));
        arms.into_iter().flatten().map(move |arm| (*entry, arm))
    });
    let number = |(entry, arm): &(&Entry, String), series: &str, statistic| {
        entry.numbers.get(cpu(arm, series), statistic)
    };
    // Every round of the kernel's own pages is a first one.
    let passed = move |row: &(&Entry, String), series: &str, statistic| {
        let has_first = number(row, &first(PROCESS), "p50").is_some();
        number(row, &if has_first { first(series) } else { series.to_owned() }, statistic)
    };
    let total = move |row: &(&Entry, String), series: &str| {
        let number = number(row, series, "p50")?;
        let ops = if series.ends_with(PROCESS) { pages(row.0)? } else { 1.0 };
        Some(number.times(ops, Unit::Ns))
    };
    let whole = move |row: &(&Entry, String), is_first: bool| {
        let has_first = number(row, &first(PROCESS), "p50").is_some();
        let name = if is_first && has_first { first(PROCESS) } else { PROCESS.to_owned() };
        total(row, &name)
    };
    Grid::<(&Entry, String)>::new()
        .case(shown, |(entry, _)| entry)
        .words("memory", 0, |(_, arm)| arm.clone())
        .number("first pass", 0, move |row| Cell::spread(whole(row, true)))
        .number("of THP", 0, move |row| passed(row, ALL, "of_thp"))
        .number("again", 0, move |row| Cell::spread(whole(row, false)).strong())
        .number("of plain", 0, move |row| number(row, PROCESS, "of_plain"))
        .number("of THP, again", 1, move |row| number(row, ALL, "of_thp"))
        .number("of clearing", 1, move |row| number(row, PROCESS, "of_clear"))
        .number("faults", 1, |(entry, arm)| {
            let each = entry.numbers.get(tally(arm, "faults"), "each");
            each.map(|each| group_thousands(each.value))
        })
        .number("bandwidth", 2, move |row| number(row, PROCESS, "bandwidth"))
        .number("of limit", 2, |(entry, arm)| {
            share_cell(&entry.numbers, cpu(arm, PROCESS), OF_CLEAR)
        })
        .number("set-up", 3, move |row| total(row, SETUP))
        .number("pool", 4, move |row| total(row, RESERVE))
        .number("clearing", 3, move |row| total(row, ZERO))
        .number("map", 4, move |row| total(row, MAP))
        .number("proc×rep", 5, |(entry, arm)| entry.counts(cpu(arm, PROCESS)))
        .words("witness", 0, |(entry, _)| entry.proof())
        .told(rows)
}

/// Base pages of a round: operations of its sums.
fn pages(entry: &Entry) -> Option<f64> {
    let bytes = pagelab_record::units::parse_bytes(entry.value(parameter::SIZE)).ok()?;
    Some((bytes / 4096) as f64)
}

/// What a segment that is taken again costs of base pages.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let told = |entry: &&Entry| {
        let arms = arms(entry.case(), entry.measured()?);
        let again = |arm: &String| entry.numbers.get(cpu(arm, PROCESS), "of_plain");
        let best = arms.iter().filter(|arm| ![PLAIN, THP].contains(&arm.as_str()));
        let best = best.filter_map(|arm| Some((arm, again(arm)?)));
        let (arm, least) = best.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
        let of_thp = entry.numbers.get(cpu(arm, ALL), "of_thp");
        let of_thp = of_thp.map(|ratio| format!("{} of huge pages", ratio.display()));
        let label = format!("of the CPU time of base pages where a {arm} is taken again");
        Some(headline(least, label, &[of_thp]))
    };
    run.valid(WORKLOAD).iter().find_map(told).into_iter().collect()
}
