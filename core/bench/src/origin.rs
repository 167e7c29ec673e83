//! Where the numbers of a record come from: what they are, and the machine that they are of.

use pagelab_record::{Host, Nature};
use pagelab_sys::{
    arch,
    machine::environment::{Class, Fact},
    time::ClockChoice,
};

use crate::plan::Planned;

/// What the numbers of this case are, taken here with its clock.
pub(crate) fn nature(planned: &Planned) -> Nature {
    match planned.method.clock {
        _ if planned.is_simulated() => Nature::Simulated,
        ClockChoice::Scripted { .. } => Nature::Simulated,
        _ if arch::is_emulated() || planned.workload.about().is_emulated => Nature::Emulated,
        _ => Nature::Measured,
    }
}

/// Facts in the three classes of a record.
pub fn host(facts: &[Fact]) -> Host {
    let class = |class: Class| {
        facts
            .iter()
            .filter(|fact| fact.class == class)
            .map(|fact| (fact.key.to_owned(), fact.value.clone()))
            .collect()
    };
    Host {
        identity: class(Class::Identity),
        settings: class(Class::Setting),
        volatile: class(Class::Volatile),
    }
}
