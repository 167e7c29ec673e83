//! pagelab's default memory beside fast-mem's best, and beside no look-up at all.
//!
//! The one idea: a replay is a decoder and a memory, so a ratio says which of the two differ. The
//! same memory stands behind two decoders, ours and fast-mem's own, which checks bounds: only
//! behind the same one is a ratio of the two memories' doing.

use pagelab_record::Measured;

use super::{BASES, REPLAY};
use pagelab_report::{Entry, Numbers, Time, cpu, ratio};

/// The memory that is compared.
pub(super) const OURS: &str = "tlb";
/// What it stands beside: the statistic, the arm's names, and the words.
pub(super) const BESIDE: [(&str, &[&str], &str); 3] = [
    (
        "ratio_to_best_same_decoder",
        &["paged-cache-32-neg"],
        "fast-mem's best memory behind the same decoder (paged-cache-32-neg)",
    ),
    ("ratio_to_base", &BASES, "fast-mem's best memory behind its own (base)"),
    ("ratio_to_flat", &["flat"], "no look-up at all (flat)"),
];

/// Adds the ratios that no other arm has.
pub(super) fn derive(measured: &Measured, numbers: &mut Numbers) {
    for (statistic, names, _) in BESIDE {
        if numbers.get(cpu(OURS, REPLAY), statistic).is_none() {
            let of =
                |name: &&str| ratio::of_times(&measured.series, REPLAY, Time::Cpu, [OURS, name]);
            numbers.add(cpu(OURS, REPLAY), statistic, names.iter().find_map(of));
        }
    }
}

/// The ratios that a case has, in words.
pub(super) fn text(entry: &Entry) -> Option<String> {
    let of = |(statistic, _, words): &(&str, &[&str], &str)| {
        let ratio = entry.numbers.get(cpu(OURS, REPLAY), statistic)?;
        let spread = if ratio.display_spread().is_empty() {
            String::new()
        } else {
            format!(" ({:.2}–{:.2})", ratio.low, ratio.high)
        };
        Some(format!("{:.2}{spread} of {words}", ratio.value))
    };
    let said: Vec<String> = BESIDE.iter().filter_map(of).collect();
    (!said.is_empty()).then(|| format!("{OURS} takes, of the time: {}.", said.join(", ")))
}
