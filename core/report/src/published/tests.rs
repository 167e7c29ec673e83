//! Publications of any kind: what is read, what is refused, and what a sentence says.

use pagelab_record::{
    Case, Clock, Data, Host, Measured, Nature, Outcome, Record, Series, Unit, schema,
};

use super::*;
use crate::{Derive::Alone, Numbers, Time, View, Views, cpu};

const HEAD: &str = "title = \"A claim\"\nworkload = \"emu/replay\"\n\
    [figures.time]\nworkload = \"emu/replay\"\nseries = \"replay\"\ntime = \"cpu\"\n\
    statistic = \"ns_per_op\"\narms = \"backend\"\n";

fn series(arm: &str, process: u32, ns: u64) -> Series {
    Series {
        name: "replay".to_owned(),
        arm: arm.to_owned(),
        process,
        repetition: 0,
        clock: Clock::Cpu,
        unit: Unit::Ns,
        ops: 10,
        bytes: 0,
        data: Data::Values(vec![ns]),
    }
}

/// A case with two arms, whose processes differ by more than the arms do.
fn case(trace: &str, factor: u64) -> Record {
    let both = [(0, 100), (1, 200), (2, 300)]
        .into_iter()
        .flat_map(|(process, ns)| [series("a", process, ns * factor), series("b", process, ns)]);
    let outcome = Measured { series: both.collect(), ..Measured::default() };
    Record {
        workload: "emu/replay".to_owned(),
        case: Case::default().with("trace", trace).with("backend", "a,b"),
        nature: Nature::Measured,
        outcome: Outcome::Measured(outcome),
        schema: schema::SCHEMA.to_owned(),
        run: "test".to_owned(),
        boot: String::new(),
        ab: None,
        host: Host::default(),
    }
}

/// What is shown of the records: what an operation takes in each arm.
const VIEWS: &[View] = &[View {
    workloads: &["emu/replay"],
    main: &[("replay", Time::Cpu)],
    derive: &[Alone(|_: &Case, _: &Measured, numbers: &mut Numbers| {
        for arm in ["a", "b"] {
            let at = cpu(arm, "replay");
            numbers.add(at, "ns_per_op", numbers.get(at, "p50"));
        }
    })],
    ..View::NONE
}];

fn views() -> Views {
    Views::new(VIEWS, |_, _| None)
}

/// A record as a report has it.
fn entry(record: &Record) -> Entry {
    views().entry(record)
}

/// A run of some records.
fn run(entries: Vec<Entry>) -> Run {
    Run { views: views(), entries, ..Run::default() }
}

/// What one claim says of two cases.
fn said(claim: &str) -> Note {
    let text = format!("{HEAD}[[claims]]\nname = \"x\"\n{claim}");
    let publication = Publication::parse("mine", "", &text).unwrap();
    let entries: Vec<Entry> = [case("one", 2), case("two", 3)].iter().map(entry).collect();
    let section = publication.section(&run(entries)).unwrap();
    let Some(Block::Note(note)) = section.blocks.last() else { panic!("{section:?}") };
    note.clone()
}

#[test]
fn every_publication_of_ours_is_read_and_its_times_follow_from_each_other() {
    let text = include_str!("../../../../published/page-fault-latency/records.jsonl");
    let records = journal::read_records(text).unwrap();
    let entry = Entry::of(&records[0]);
    let hz = entry.record.host.identity["base_clock_hz"].as_f64().unwrap();
    for statistic in ["min", "p50", "p95", "max"] {
        let of = |series| {
            entry.numbers.get(crate::numbers::elapsed("as-published", series), statistic).unwrap()
        };
        let from_ticks = of("fault-ticks").value / hz * 1e9;
        assert!((from_ticks - of("fault").value).abs() < 1.0, "{statistic}: {from_ticks}");
    }
}

/// The published entries of a publication, with what its template adds.
fn templated(records: &str, template: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> =
        journal::read_records(records).unwrap().iter().map(Entry::of).collect();
    template::render(template, &mut [], &mut entries).unwrap();
    entries
}

#[test]
fn the_rates_and_counts_of_micro_pagefault_follow_from_its_times_and_a_ragged_mapping() {
    let entries = templated(
        include_str!("../../../../published/micro-pagefault/records.jsonl"),
        include_str!("../../../../published/micro-pagefault/report.j2"),
    );
    let rates = [3_445.492_572, 8_340.724_252, 3_940.813_233, 12_060.894_881, 16_000.870_945];
    let (base, huge, giant) = (2_621_440.0, 5_119.0 + 512.0, 9.0 + 511.0 + 512.0);
    let faults = [base, huge, base, huge, giant].map(|count| 20.0 * count);
    assert_eq!(entries.len(), rates.len());
    for ((entry, rate), faults) in entries.iter().zip(rates).zip(faults) {
        let of = |statistic| {
            let mut all = entry.numbers.0.iter();
            all.rfind(|number| number.statistic == statistic).unwrap().quantity.value
        };
        // Printed times are rounded to a microsecond.
        assert!((of("bandwidth") / 1_048_576.0 / rate - 1.0).abs() < 1e-7, "{rate}");
        assert!((of("faults") - faults).abs() < 0.5);
    }
}

#[test]
fn a_template_that_is_wrong_is_named_with_its_line() {
    let publication = Publication::parse("mine", "", HEAD).unwrap();
    let why = publication.clone().with_template("\n{% if %}").unwrap_err();
    assert!(why.starts_with("mine/report.j2:2: "), "{why}");
    let text = format!("{HEAD}[[claims]]\nname = \"x\"\nsays = 'so'");
    let publication = Publication::parse("mine", "", &text).unwrap();
    for (template, wanted) in [("\n{{ 1 / 0 }}", "mine/report.j2:2: "), ("text", "what it prints")]
    {
        let publication = publication.clone().with_template(template).unwrap();
        let entries = [entry(&case("one", 2))];
        let section = publication.section(&run(entries.into())).unwrap();
        let is_broken = |block: &Block| match block {
            Block::Note(note) => note.tag == "BROKEN" && note.text.contains(wanted),
            _ => false,
        };
        assert!(section.blocks.iter().any(is_broken), "{section:?}");
    }
}

#[test]
fn a_ratio_of_arms_is_taken_process_by_process_and_of_cases_with_the_worst_ends() {
    let of = |trace, arm| format!("of(\"time\", trace=\"{trace}\", arm=\"{arm}\")");
    let over = |one, other| said(&format!("says = '{{{{ told(ratio({one}, {other})) }}}}'")).text;
    assert_eq!(over(of("one", "a"), of("one", "b")), "x: 2.00");
    assert_eq!(over(of("two", "a"), of("one", "a")), "x: 1.50 (0.50–4.50)");
}

#[test]
fn a_missing_figure_drops_the_sentence_and_names_the_case_and_its_cure() {
    let note = said(
        "verdict = 'verdict(ratio(of(\"time\", trace=\"one\", arm=\"c\"), \
         of(\"time\", trace=\"one\", arm=\"b\")))'\n\
         agrees = 'never'\nopen = 'never'\nrefuted = 'never'",
    );
    assert_eq!(note.tag, "cannot be tested here");
    assert_eq!(note.text, "x: It needs emu/replay trace=one with c (its case has no such number).");
    assert_eq!(note.cure, "pagelab run emu/replay --trace one --backend c");
}

#[test]
fn a_verdict_follows_the_numbers() {
    // The processes reach from 10 to 30 ns.
    for (low, high, tag) in [(9, 31, "agrees"), (31, 40, "refuted"), (10, 20, "open")] {
        let note = said(&format!(
            "verdict = 'verdict(of(\"time\", trace=\"one\", arm=\"b\"), {low}, {high})'\n\
             agrees = 'yes'\nopen = 'perhaps'\nrefuted = 'no'"
        ));
        assert_eq!(note.tag, tag, "{low} {high}");
    }
}

#[test]
fn pairs_are_counted_by_their_order() {
    let times = |trace| format!("of(\"time\", trace=\"{trace}\", arm=[\"a\", \"b\"])");
    let said = said(&format!(
        "with = {{ order = 'pairs({}, {})' }}\n\
         says = '{{{{ order.agree }}}} of {{{{ order.all }}}}{{{{ order.wrong }}}}'",
        times("one"),
        times("two")
    ));
    assert_eq!(said.text, "x: 1 of 1");
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_line_and_what_to_write() {
    let refused = |claim: &str| {
        let text = format!("{HEAD}[[claims]]\nname = \"x\"\n{claim}");
        Publication::parse("mine", "", &text).unwrap_err()
    };
    for (claim, wanted) in [
        ("says = '{{ of( }}'", "mine/claims.toml:11: "),
        ("says = '{% set a = 1 %}'", "has no statement `set`; there are if, elif"),
        ("says = '{% include \"x\" %}'", "has no statement `include`"),
        ("says = '{{ \"a\" * 99 }}'", "has no `*`; write ×"),
        ("colour = 'x'", "mine/claims.toml:11: unknown field `colour`"),
        ("verdict = 'verdict(1)'\nagrees = 'a'", "write `agrees`, `open` and `refuted`"),
        ("also = ['a']", "says nothing; write `says`"),
    ] {
        let why = refused(claim);
        assert!(why.starts_with("mine/claims.toml:") && why.contains(wanted), "{why}");
    }
    let ours = serde_json::to_string(&case("one", 2)).unwrap();
    let why = Publication::parse("mine", &ours, HEAD).unwrap_err();
    assert!(why.contains("mine/records.jsonl:1: a record was not published"), "{why}");
    assert!(Publication::parse("../mine", "", HEAD).unwrap_err().contains("a-z, 0-9 and -"));
}

#[test]
fn a_sentence_that_asks_for_what_there_is_not_is_shown_as_broken() {
    for (asked, wanted) in [
        ("of(\"tyme\")", "no figure is called `tyme`; there are time"),
        ("told(3)", "a figure is needed"),
        ("nothing(3)", "nothing"),
    ] {
        let note = said(&format!("says = '{{{{ {asked} }}}}'"));
        assert!(note.tag == "BROKEN" && note.text.contains(wanted), "{note:?}");
        assert!(note.text.starts_with("mine/claims.toml:11: "), "{note:?}");
    }
    let long = "[1,2,3,4,5,6,7,8,9]";
    let note = said(&format!(
        "says = '{{% for a in {long} %}}{{% for b in {long} %}}{{% for c in {long} %}}{{% for d in \
         {long} %}}{{% for e in {long} %}}{{{{ a }}}}{{% endfor %}}{{% endfor %}}{{% endfor %}}\
         {{% endfor %}}{{% endfor %}}'"
    ));
    assert_eq!(note.tag, "BROKEN");
}
