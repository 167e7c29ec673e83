//! The suites that are built in, and what any suite can name.

use pagelab_bench::suite::{self, Known, Suite};

use crate::WORKLOADS;

/// The built-in suites: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("quick", include_str!("../../../suites/quick.toml")),
    ("full", include_str!("../../../suites/full.toml")),
    ("aa", include_str!("../../../suites/aa.toml")),
    ("limits", include_str!("../../../suites/limits.toml")),
    ("micro-pagefault", include_str!("../../../suites/micro-pagefault.toml")),
    ("page-fault-latency", include_str!("../../../suites/page-fault-latency.toml")),
    ("fast-memory", include_str!("../../../suites/fast-memory.toml")),
    ("memory-types", include_str!("../../../suites/memory-types.toml")),
    ("pghot", include_str!("../../../suites/pghot.toml")),
];

/// What a suite can name beside these published results.
pub fn known(published: &'static [&'static str]) -> Known {
    Known { workloads: WORKLOADS, published }
}

/// A built-in suite.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn built_in(name: &str, published: &'static [&'static str]) -> Result<Suite, String> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        format!(
            "no suite is called `{name}`; there are {} (or give the path of a .toml file)",
            names.join(", ")
        )
    })?;
    suite::parse(text, known(published))
}
