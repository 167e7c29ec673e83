//! What a simulation leaves: times, counters, and a series with a bounded number of rows.
//!
//! The one idea: plain values, and a digest over all of them, so that a change of any bit is seen.

use crate::policy::Hot;

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Nanoseconds that the program took.
    pub time_ns: u64,
    /// Accesses that it did.
    pub accesses: u64,
    /// Pages of its working set.
    pub pages: u64,
    /// Pages that went to a higher tier.
    pub promoted: u64,
    /// Pages that went to a lower tier.
    pub demoted: u64,
    /// Pages that went to another node of the same tier.
    pub exchanged: u64,
    /// Moves that failed though there was room.
    pub failed: u64,
    /// Moves that found no room.
    pub full: u64,
    /// Entries that the hint-fault scanner changed: `numa_pte_updates`.
    pub pte_updates: u64,
    /// Hint faults: `numa_hint_faults`.
    pub hint_faults: u64,
    /// Faults among them that came while the first one on the page was not done.
    pub duplicate_faults: u64,
    /// Samples that arrived: `hwhint_total_events`.
    pub hw_events: u64,
    /// Samples that did not: lost, or no room in the ring.
    pub hw_dropped: u64,
    /// Accesses that the policy recorded: `pghot_recorded_accesses`.
    pub recorded: u64,
    /// Recorded accesses to a page that was already on its way.
    pub duplicates: u64,
    /// What pghot's map and daemon counted, where there were any; it follows from the rest, and is
    /// in no digest.
    pub hot: Hot,
    /// Promotions of a page that had been demoted not long before.
    pub ping_pongs: u64,
    /// Promotions that cost the program more than they saved it.
    pub wasted: u64,
    /// Nanoseconds of run time that observing and moving took from the program.
    pub stall_ns: u64,
    /// Nanoseconds that the daemons were busy: scans, walks and moves.
    pub daemon_ns: u64,
    /// Bytes that were moved.
    pub move_bytes: u64,
    /// Share of the accesses that went to the top tier.
    pub top_share: f64,
    /// The sampling period at the end, in accesses.
    pub period: u64,
    /// Pages of each node at the end.
    pub placed: Vec<u64>,
    /// How it went: a row after equal times, from the start to the end.
    pub series: Vec<Row>,
}

/// The state at one time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Nanoseconds since the start.
    pub at_ns: u64,
    /// Accesses done so far.
    pub accesses: u64,
    /// Pages of each node.
    pub placed: Vec<u64>,
    /// Share of the traffic that goes to the top tier now.
    pub top_share: f64,
    /// Pages promoted so far.
    pub promoted: u64,
    /// Pages demoted so far.
    pub demoted: u64,
    /// Promotions so far that cost more than they saved.
    pub wasted: u64,
    /// Hint faults so far.
    pub hint_faults: u64,
    /// Recorded accesses so far.
    pub recorded: u64,
}

impl Outcome {
    /// Seconds that the program took.
    pub fn seconds(&self) -> f64 {
        self.time_ns as f64 * 1e-9
    }

    /// A number that is another one when any value is, bit for bit.
    pub fn digest(&self) -> u64 {
        // FNV-1a over the numbers; the text of a float would hide its last bits.
        let mut digest = 0xcbf2_9ce4_8422_2325;
        let mut add = |value: u64| {
            for byte in value.to_le_bytes() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for value in self.counters() {
            add(value.1);
        }
        add(self.top_share.to_bits());
        self.placed.iter().for_each(|&pages| add(pages));
        for row in &self.series {
            add(row.at_ns);
            add(row.accesses);
            add(row.top_share.to_bits());
            row.placed.iter().for_each(|&pages| add(pages));
            for value in [row.promoted, row.demoted, row.wasted, row.hint_faults, row.recorded] {
                add(value);
            }
        }
        digest
    }

    /// Every whole number with its name, in a fixed order.
    pub fn counters(&self) -> [(&'static str, u64); 22] {
        [
            ("time_ns", self.time_ns),
            ("accesses", self.accesses),
            ("pages", self.pages),
            ("promoted", self.promoted),
            ("demoted", self.demoted),
            ("exchanged", self.exchanged),
            ("failed", self.failed),
            ("full", self.full),
            ("pte_updates", self.pte_updates),
            ("hint_faults", self.hint_faults),
            ("duplicate_faults", self.duplicate_faults),
            ("hw_events", self.hw_events),
            ("hw_dropped", self.hw_dropped),
            ("recorded", self.recorded),
            ("duplicates", self.duplicates),
            ("ping_pongs", self.ping_pongs),
            ("wasted", self.wasted),
            ("stall_ns", self.stall_ns),
            ("daemon_ns", self.daemon_ns),
            ("move_bytes", self.move_bytes),
            ("period", self.period),
            ("rows", self.series.len() as u64),
        ]
    }
}
