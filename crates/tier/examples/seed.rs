use pagelab_tier::{sim::*, *};
fn main() {
    let pages = 2_097_152u64;
    let base = |s: f64, f: f64, g: f64, policy: &str| Scenario {
        seed: 1, work: Work::Generated(WorkSpec::parse("uniform").unwrap()), pages,
        accesses: 5_532_979 * 10_000, threads: 64, stores: 0.5,
        tiers: Tiers::two(131_985_408, pages),
        curve: Curve::Power { fast: f, lower: vec![Level { seconds: s, exponent: g }], remote: None },
        sources: vec![], policy: PolicySpec::parse(policy).unwrap(),
        mover: Mover { walk_ps: 13_000, ..Mover::kernel(2000) }, costs: Costs { sample_ns: 1500 }, rows: 200,
    };
    let mut sets = vec![];
    for (name, f, g, period) in [("A", 26.6, 2.5, 1000u64), ("B", 40.8, 5.5, 100)] {
        let mut s = base(181.393, f, g, "numab2");
        let mut h = HintScan { period_ns: period * MILLISECOND, adapts: false, fault_ns: 20_000, ..HintScan::kernel(pages) };
        if name == "B" { h.failure = 0.1106 } else { h.duplicate_ns = 400_000 }
        s.sources = vec![Source::Hints(h)];
        sets.push((format!("{name} numab2"), s));
        for p in std::env::args().skip(1).chain(["pghot:threshold=1".into()]) {
            let mut s = base(184.331, f, g, &p);
            s.sources = vec![Source::Sampling(Sampling::every(10_000))];
            if p == "none" || p == "all-at-once" { s.sources.clear() }
            sets.push((format!("{name} {p}"), s));
        }
    }
    for (name, s) in sets {
        let o = simulate(&s).unwrap();
        println!("{name:24} {:8.3} s promoted {} demoted {} faults {} dup {} rec {} dups {} hw {} failed {} full {} stall {:.3} daemon {:.3} waste {} share {:.4} period {} digest {:x}", o.seconds(), o.promoted, o.demoted, o.hint_faults, o.duplicate_faults, o.recorded, o.duplicates, o.hw_events, o.failed, o.full, o.stall_ns as f64*1e-9, o.daemon_ns as f64*1e-9, o.wasted, o.top_share, o.period, o.digest());
    }
}
