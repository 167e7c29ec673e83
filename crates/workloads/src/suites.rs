//! The suites that are built in.

/// The built-in suites: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("quick", include_str!("../../../suites/quick.toml")),
    ("full", include_str!("../../../suites/full.toml")),
    ("aa", include_str!("../../../suites/aa.toml")),
    ("limits", include_str!("../../../suites/limits.toml")),
    ("micro-pagefault", include_str!("../../../suites/micro-pagefault.toml")),
    ("page-fault-latency", include_str!("../../../suites/page-fault-latency.toml")),
];
