//! The suites that measure what several parts have.

/// Their names and texts, in the order of `list`.
pub const SUITES: &[(&str, &str)] = &[
    ("quick", include_str!("../../../suites/quick.toml")),
    ("full", include_str!("../../../suites/full.toml")),
    ("aa", include_str!("../../../suites/aa.toml")),
];
