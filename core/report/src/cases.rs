//! What the parameters of a case say of it, where more than one view asks.

use pagelab_record::Case;

use crate::{Entry, parameter, parameters};

/// Whether it is the touches that fault, not a call before them.
pub fn touches_fault(case: &Case) -> bool {
    matches!(
        case.get(parameter::POPULATE),
        None | Some("touch" | "mlock-onfault" | "populate-read")
    )
}

/// Whether several workers fault at once.
pub fn is_parallel(case: &Case) -> bool {
    ["threads", "processes"].iter().any(|name| case.get(name).is_some_and(|n| n != "1"))
}

/// The test of a case by its name, or what it consists of.
pub fn test_of(case: &Case) -> String {
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

/// The parameters of some rows that get a column: `always`, and what tells two of them apart.
pub fn columns(entries: &[&Entry], always: &[&str]) -> Vec<String> {
    parameters::columns(&cases(entries), always)
}

/// `All rows: size=128m. `: what no column says, where it is not what it is when nobody asks.
pub fn all_rows(entries: &[&Entry], shown: &[String]) -> String {
    let is_set = |name: &str| entries.iter().any(|entry| entry.set.contains(name));
    let told = |name: &str| is_set(name) && !shown.iter().any(|shown| shown == name);
    match parameters::shared(&cases(entries), told).as_str() {
        "" => String::new(),
        shared => format!("All rows: {shared}. "),
    }
}

fn cases<'e>(entries: &[&'e Entry]) -> Vec<&'e Case> {
    entries.iter().map(|entry| entry.case()).collect()
}

/// Gives the cases of a workload their short names: what they are called by, and what tells them
/// from the others.
pub fn name_shortly(entries: &mut [&mut Entry], by: &[&str]) {
    let Some(workload) = entries.first().map(|entry| entry.record.workload.clone()) else { return };
    let cases: Vec<&Case> = entries.iter().map(|entry| entry.case()).collect();
    let names = short_names(&workload, &cases, by);
    for (entry, name) in entries.iter_mut().zip(names) {
        entry.short = name;
    }
}

/// The short names of some cases of a workload.
pub fn short_names(workload: &str, cases: &[&Case], by: &[&str]) -> Vec<String> {
    let rest: Vec<_> = cases.iter().map(|case| parameters::without(case, by)).collect();
    let labels = parameters::labels(&rest.iter().collect::<Vec<_>>(), "");
    let name = |(case, label): (&&Case, String)| {
        let value = |name: &&str| Some(parameters::display(name, case.get(name)?));
        let name: Vec<String> = by.iter().filter_map(value).collect();
        let name = [name.join(" "), label].map(|part| part.trim().to_owned());
        let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        format!("{workload} {name}").trim_end().to_owned()
    };
    cases.iter().zip(labels).map(name).collect()
}

/// The name of a trace without what its generator takes: what published results go by.
pub fn name_of(case: &Case) -> &str {
    let trace = case.get(parameter::TRACE).unwrap_or_default();
    trace.split(':').next().unwrap_or(trace)
}

/// What to call some cases: their traces, and where that tells two of them not apart, what does;
/// but not the parameters that are said elsewhere.
pub fn titles(entries: &[&Entry], said: &[&str]) -> Vec<String> {
    let said = [said, &["trace"]].concat();
    let names: Vec<&str> =
        entries.iter().map(|e| parameters::display_trace(e.value(parameter::TRACE))).collect();
    let rest: Vec<_> =
        entries.iter().map(|entry| parameters::without(entry.case(), &said)).collect();
    let labels = parameters::labels(&rest.iter().collect::<Vec<_>>(), "");
    let title = |(name, label): (&&str, String)| {
        let twins = names.iter().filter(|other| *other == name).count() > 1;
        if twins && !label.is_empty() { format!("{name}, {label}") } else { (*name).to_owned() }
    };
    names.iter().zip(labels).map(title).collect()
}
