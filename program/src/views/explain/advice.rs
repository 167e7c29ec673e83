//! What would help a program, for programs: each piece of advice with its settings, what undoes
//! them, and what it comes to.

use pagelab_record::{
    Host,
    advice::{Setting, THP, Target},
    vocabulary::knob::HELD_BY,
};
use serde_json::{Value, json};

use super::{WORKLOAD, groups, knobs, prices::Prices, section::title};
use pagelab_report::Run;

/// The advice for every program of a run, the one that saves most first; `None` where no program
/// was watched.
pub(crate) fn value(run: &Run) -> Option<Value> {
    let entries = run.valid(WORKLOAD);
    (!entries.is_empty()).then_some(())?;
    let prices = Prices::of(&run.entries);
    let mut all = Vec::new();
    for entry in entries {
        let Some(measured) = entry.measured() else { continue };
        let host = &entry.record.host;
        let holder = entry.counter(HELD_BY);
        for knob in knobs::knobs(measured, &groups(measured, &prices), &prices) {
            let way = |way: &Vec<Setting>| {
                let undo: Vec<Setting> = way.iter().rev().map(|set| undo(set, host)).collect();
                json!({"setting": way, "undo": undo})
            };
            let mut value = knob.advice.ways.first().map_or_else(|| way(&Vec::new()), way);
            let others: Vec<Value> = knob.advice.ways.iter().skip(1).map(way).collect();
            let is_held = knob.advice.ways.iter().flatten().any(Setting::is_of_machine);
            let more = json!({
                "program": title(entry),
                "id": knob.advice.id,
                "series": knob.name,
                "how": knob.advice.how(),
                "what": knob.change,
                "or": others,
                "outcome": knob.outcome().name(),
                "saved": knob.saved,
                "saved_given_back": knob.given_back,
                "saved_translation": knob.translation,
                "saved_in_all": knob.in_all(),
                "at_most": knob.at_most,
                "extra_bytes": knob.bytes,
                "held_by": holder.filter(|_| is_held),
            });
            if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
                value.extend(more);
            }
            all.push(value);
        }
    }
    Some(all.into())
}

/// What undoes a setting on a machine as it was when the program was watched.
fn undo(setting: &Setting, host: &Host) -> Setting {
    setting.undo(match &setting.target {
        Target::File(path) => before(path, host),
        Target::Environment(_) | Target::Call(_) | Target::Command(_) => None,
    })
}

/// What a file of transparent huge pages held, where the record has that.
fn before(path: &str, host: &Host) -> Option<String> {
    let file = path.strip_prefix(THP)?.strip_prefix('/')?;
    let of = |key: &str| host.settings.get(key);
    let value = match file.rsplit_once('/') {
        None => of(&format!("thp_{file}")),
        Some(("khugepaged", file)) => {
            of(&format!("khugepaged_{}", file.replace("millisecs", "ms")))
        }
        Some((size, _)) => of("mthp_enabled")?.get(size.strip_prefix("hugepages-")?),
    }?;
    match value {
        Value::Null => None,
        Value::String(word) => Some(word.clone()),
        number => Some(number.to_string()),
    }
}
