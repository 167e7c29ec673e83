//! Chains of loads: both arms proven, what is left out said, and no duration asserted.

use pagelab_translation::prices::Prices;

use crate::support::{Lab, Machine, is_skipped, measured};

#[test]
fn both_arms_walk_the_same_lines_over_pages_that_are_proven() {
    // Where THP are off altogether, root's runs turn them on, one run at a time.
    let _machine = Machine::alone();
    let lab = Lab::new();
    let case = |page: &str| format!("tlb/chase page={page} size=192k,3m loads=5k rounds=2");
    let ended = lab.measure_huge("run", &[&case("4k"), &case("2m")], 0);
    let records = lab.records("run");
    assert_eq!(records.len(), 4);
    if records.iter().any(is_skipped) {
        ended.shows(&["transparent pages of 2m"]);
        return;
    }
    ended.exits(0).shows(&["4 valid", "Translation: loads by memory and page size"]);
    for record in &records {
        let measured = measured(record);
        let lines = if record.case.get("size") == Some("3m") { 768 } else { 48 };
        assert_eq!(measured.counters["lines"], lines);
        let arms: &[&str] = if record.case.get("page") == Some("4k") {
            &["pagelab", "against"]
        } else {
            &["pagelab"]
        };
        for arm in arms {
            let holds = |id: &str, expected: i64| {
                measured.witness.iter().any(|claim| {
                    let is_mine = claim.arm == *arm && claim.id == id;
                    is_mine && claim.holds && claim.expected == expected
                })
            };
            assert!(holds("faults-of-loop", 0) && holds("chain-closed", 0), "{}", record.case);
            assert!(holds("chain-blocks", i64::try_from(lines).unwrap()), "{}", record.case);
            let loads: Vec<_> = measured.series.iter().filter(|s| s.arm == *arm).collect();
            assert_eq!(loads.len() % 2, 0);
            // Whole laps in 16 pieces, together no fewer loads than were asked for.
            let asked = 5000_u64.next_multiple_of(lines) / 16;
            assert!(loads.iter().all(|s| s.name == "load" && s.ops == asked));
        }
    }
    let prices = Prices::of(&records);
    assert_eq!(prices.len(), 1, "only the base page stands against something");
    assert_eq!(prices[0].reach(), Some([48.0, 768.0]));
    assert!(prices[0].at(100.0).is_some());
}

#[test]
fn without_a_size_every_size_is_planned_and_one_without_memory_is_skipped_with_how_much_there_is() {
    let lab = Lab::new();
    let planned = lab.pagelab(&["run", "tlb/chase", "--dry-run"]);
    planned.exits(0).shows(&["size=128k", "size=1536k", "size=8g"]);
    let _machine = Machine::alone();
    let ended = lab.measure("run", &["tlb/chase size=64t loads=1k rounds=2"]);
    ended.exits(4).shows(&["of memory", "choose a smaller --size"]);
}

#[test]
fn what_would_be_no_chain_is_refused_with_what_to_ask_for() {
    let lab = Lab::new();
    for (words, sentence) in [
        (["--size", "5000"], "use size=128k"),
        (["--size", "auto"], "auto"),
        (["--loads", "all"], "use a number"),
    ] {
        lab.pagelab(&[&["run", "tlb/chase"][..], &words].concat()).exits(2).complains(&[sentence]);
    }
}

#[test]
fn a_chain_over_a_segment_is_proven_by_where_its_leaves_lie() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let case = |backing: &str| format!("tlb/chase page=2m {backing} size=4m loads=5k rounds=2");
    let ended = lab.measure_huge("run", &[&case("backing=segment"), &case("backing=module")], 0);
    let records = lab.records("run");
    if is_skipped(&records[0]) {
        ended.shows(&["transparent pages of 2m"]);
        return;
    }
    let measured = measured(&records[0]);
    let has = |arm: &str, id: &str, expected: i64| {
        let mut mine = measured.witness.iter().filter(|claim| claim.arm == arm && claim.id == id);
        mine.any(|claim| claim.holds && claim.expected == expected)
    };
    assert!(has("pagelab", "pooled", 0) && has("pagelab", "huge", 1024));
    // The same pages beside it, of a mapping.
    assert!(!has("against", "pooled", 0) && has("against", "huge", 1024));
    if is_skipped(&records[1]) {
        ended.exits(0).shows(&["the kernel module of pagelab"]);
    }
}
