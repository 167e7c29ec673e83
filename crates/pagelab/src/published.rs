//! Published results: what suites name, and what reports show beside one's own.

use pagelab_record::{Record, journal};

/// Name and text of each.
const PUBLISHED: &[(&str, &str)] = &[
    ("micro-pagefault", include_str!("../../../published/micro-pagefault.jsonl")),
    ("page-fault-latency", include_str!("../../../published/page-fault-latency.jsonl")),
    ("fast-memory", include_str!("../../../published/fast-memory.jsonl")),
    ("memory-types", include_str!("../../../published/memory-types.jsonl")),
    ("pghot", include_str!("../../../published/pghot.jsonl")),
];

/// Their names.
pub(crate) const NAMES: &[&str] = &{
    let mut names = [""; PUBLISHED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PUBLISHED[at].0;
        at += 1;
    }
    names
};

/// Published results by name.
///
/// # Errors
/// A sentence that lists the names there are.
pub(crate) fn published(name: &str) -> Result<Vec<Record>, String> {
    let found = PUBLISHED.iter().find(|(known, _)| *known == name);
    let Some((_, text)) = found else {
        let names = NAMES.join(", ");
        return Err(format!("no published results are called `{name}`; there are {names}"));
    };
    journal::read_records(text)
        .map_err(|damage| format!("published/{name}.jsonl:{}: {}", damage.line, damage.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_can_be_read() {
        for name in NAMES {
            assert!(!published(name).unwrap().is_empty(), "{name}");
        }
    }
}
