//! Whether others used the CPUs during one side more than during the other: what then differs need
//! not be what was compared.
//!
//! The kernel says for how many percent of the last ten seconds some task waited for a CPU
//! (`/proc/pressure/cpu`, since Linux 4.20); a record has that as it was when it was made.

use pagelab_record::Record;

use super::pairs::Pair;

const PRESSURE: &str = "pressure_cpu_some_avg10";
/// Percent by which the sides may differ; a run beside nothing else has two or three.
const MORE_MAX: f64 = 10.0;

/// Which side others used the CPUs of more, where the sides differ so much. Different cases may
/// wait for their own threads.
pub(super) fn side(pair: &Pair<'_>) -> Option<usize> {
    if pair.a.case != pair.b.case {
        return None;
    }
    let [a, b] = pair.all().map(|side| most(&side));
    let (a, b) = (a?, b?);
    ((a - b).abs() >= MORE_MAX).then_some(usize::from(b > a))
}

fn most(records: &[&Record]) -> Option<f64> {
    let waits = records.iter().filter_map(|record| record.host.volatile.get(PRESSURE)?.as_f64());
    waits.reduce(f64::max)
}

/// What is said of cells that are not decided for that.
pub(super) const NOTE: &str = "Busy: others used the CPUs of that side (by the kernel's \
     pressure_cpu_some_avg10), so what differs may be theirs: measure again when they have ended.";
