//! What page walks of a program cost, by the chains of its machine.

use pagelab_record::{
    Outcome, RunHeader,
    walks::{Look, Looks, Walked},
};
use pagelab_report::Report;

use crate::{
    explain, made,
    made_chains::{SIZES, record},
};

#[test]
fn what_a_tlb_answered_between_two_walks_lay_between_as_well() {
    let saved = |resident: u64| {
        let mut records = explain::with_density(0, None);
        // The same pages again and again, so that about 150 were walked to in between.
        let looks = [(1, 100), (3, 150), (10, 160), (30, 160)].into_iter().zip(0..);
        let looks = looks.map(|((ms, pages), level)| Look {
            stands_ns: 70_000_000,
            level,
            window_ns: ms * 1_000_000,
            cpu_ns: ms * 1_000_000,
            resident,
            walked: vec![Walked { least: pages, most: pages, whole: pages }],
        });
        let looks = Looks { places: vec!["anonymous".to_owned()], looks: looks.collect() };
        let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("measured") };
        seen.tables.push(looks.table());
        records.extend(SIZES.map(|size| record("4k", size, 0.0)));
        let header: RunHeader = made::journal().header;
        let report = Report::of(&header, &records, None, &[], &crate::views());
        explain::number(&report, "page-2m", "saved_translation")
    };
    let [all, few] = [saved(100_000), saved(160)];
    assert!(all[0] > few[0] * 2.0 && all[2] > few[2] * 2.0, "{all:?} {few:?}");
    assert_eq!(all[1].to_bits(), few[1].to_bits(), "at least they lay near");
}
