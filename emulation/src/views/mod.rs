//! What reports show of traces and emulated memory.

pub mod replay;
pub mod trace;
pub mod verify;

use pagelab_record::vocabulary::series::REPLAY;
use pagelab_report::{Derive::Alone, Sections::Each, Time, View};

/// In the order of reading.
pub(crate) const VIEWS: &[View] = &[
    View {
        workloads: &[replay::WORKLOAD],
        main: &[(REPLAY, Time::Cpu)],
        short: &["trace"],
        derive: &[Alone(replay::derive)],
        sections: Each(&[replay::section]),
        headlines: replay::headlines,
        ..View::NONE
    },
    View {
        workloads: &[verify::WORKLOAD],
        short: &["trace"],
        sections: Each(&[verify::section]),
        headlines: verify::headlines,
        ..View::NONE
    },
    View {
        workloads: &[trace::WORKLOAD],
        short: &["trace"],
        derive: &[Alone(trace::derive)],
        sections: Each(&[trace::section]),
        headlines: trace::headlines,
        ..View::NONE
    },
];
