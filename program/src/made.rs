//! A record of what was seen here and now.

use pagelab_bench::origin::host;
use pagelab_record::{Case, Nature, Outcome, Record, schema};
use pagelab_sys::{arch, machine::environment};

/// A record of a program, with the machine as it is; what was measured gets its warnings.
pub(crate) fn record(run: &str, workload: &str, case: Case, mut outcome: Outcome) -> Record {
    let facts = environment::facts();
    if let Outcome::Measured(measured) = &mut outcome {
        measured.warnings.extend(environment::warnings(&facts));
    }
    Record {
        schema: schema::SCHEMA.to_owned(),
        run: run.to_owned(),
        boot: environment::boot_id(),
        workload: workload.to_owned(),
        nature: if arch::is_emulated() { Nature::Emulated } else { Nature::Measured },
        case,
        ab: None,
        host: host(&facts),
        outcome,
    }
}
