//! What the parameters of a case say of it, where more than one view asks.

use pagelab_record::Case;

use crate::{entry::Entry, parameters};

/// Whether it is the touches that fault, not a call before them.
pub(crate) fn touches_fault(case: &Case) -> bool {
    matches!(case.get("populate"), None | Some("touch" | "mlock-onfault" | "populate-read"))
}

/// Whether several workers fault at once.
pub(crate) fn is_parallel(case: &Case) -> bool {
    ["threads", "processes"].iter().any(|name| case.get(name).is_some_and(|n| n != "1"))
}

/// The test of a case by its name, or what it consists of.
pub(crate) fn test_of(case: &Case) -> String {
    let of = |name| case.get(name).unwrap_or_default();
    match of("test") {
        "" | "unnamed" => {}
        named => return named.to_owned(),
    }
    let mut said = vec![of("store"), of("fence")];
    if matches!(of("store"), "" | "none") {
        said = vec!["read"];
    } else if !matches!(of("load"), "" | "none") {
        said.push("readback");
    }
    said.extend((of("load") == "nt").then_some("movntdqa"));
    said.extend((of("verify") == "deferred").then_some("deferred"));
    said.retain(|word| !word.is_empty());
    said.join(" ")
}

/// The name of a trace without what its generator takes: what published results go by.
pub(crate) fn name_of(case: &Case) -> &str {
    let trace = case.get("trace").unwrap_or_default();
    trace.split(':').next().unwrap_or(trace)
}

/// A trace as a heading: a path is its last part.
pub(crate) fn display_trace(trace: &str) -> &str {
    trace.rsplit('/').next().unwrap_or(trace)
}

/// What to call some cases: their traces, and where that tells two of them not apart, what does;
/// but not the parameters that are said elsewhere.
pub(crate) fn titles(entries: &[&Entry], said: &[&str]) -> Vec<String> {
    let said = [said, &["trace"]].concat();
    let names: Vec<&str> = entries.iter().map(|e| display_trace(e.parameter("trace"))).collect();
    let rest: Vec<_> =
        entries.iter().map(|entry| parameters::without(entry.case(), &said)).collect();
    let labels = parameters::labels(&rest.iter().collect::<Vec<_>>(), "");
    let title = |(name, label): (&&str, String)| {
        let twins = names.iter().filter(|other| *other == name).count() > 1;
        if twins && !label.is_empty() { format!("{name}, {label}") } else { (*name).to_owned() }
    };
    names.iter().zip(labels).map(title).collect()
}
