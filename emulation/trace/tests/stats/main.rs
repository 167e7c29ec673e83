//! The statistics: against plain ones on random traces, against formulas, and as text.

mod differential;
mod identities;
mod oracle;
mod parts;
mod reuse;
mod stacks;
mod text;

use pagelab_trace::{
    Op,
    stats::{Collector, Options, Stats},
};

/// The statistics of these operations.
fn collect(ops: &[Op], options: &Options) -> Stats {
    let mut collector = Collector::new(options).expect("good options");
    for op in ops {
        let Ok(()) = op.visit(&mut collector);
    }
    collector.finish(0)
}
