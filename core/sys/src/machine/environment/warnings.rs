//! What about this machine makes results worse, and what to do about it.
//!
//! One idea: a warning is a function of recorded facts and ends in its cure, so that a report can
//! be made anywhere from the record alone. A fact that is not available warns of nothing.

use serde::Deserialize;
use serde_json::Value;

use super::{Fact, TABLE};

/// The share of stolen time above which times are not to be trusted.
const STEAL_MAX: f64 = 0.01;

/// The facts by key.
struct Facts<'facts>(&'facts [Fact]);

impl Facts<'_> {
    fn value(&self, key: &str) -> &Value {
        self.0.iter().find(|fact| fact.key == key).map_or(&Value::Null, |fact| &fact.value)
    }

    fn text(&self, key: &str) -> &str {
        self.value(key).as_str().unwrap_or("")
    }

    fn number(&self, key: &str) -> f64 {
        self.value(key).as_f64().unwrap_or(0.0)
    }

    fn members(&self, key: &str) -> usize {
        match self.value(key) {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }
}

/// A warning, as the file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The fact that is its cause.
    of: String,
    /// The value that is a cause; without it [`cause`] tells.
    is: Option<Value>,
    /// The sentence, with `{}` for what the cause fills in.
    says: String,
}

impl Row {
    fn sentence(&self, facts: &Facts) -> Option<String> {
        let cause = match &self.is {
            Some(is) => (facts.value(&self.of) == is).then(String::new),
            None => cause(&self.of, facts),
        };
        Some(self.says.replace("{}", &cause?))
    }
}

/// What a warning of this fact fills in, where there is one.
fn cause(of: &str, facts: &Facts) -> Option<String> {
    let number = facts.number(of);
    let told = |is_so: bool, told: String| is_so.then_some(told);
    match of {
        "governor" => {
            let governor = facts.text(of);
            told(!matches!(governor, "" | "performance"), governor.to_owned())
        }
        "numa_balancing" => told(number != 0.0 && facts.members("numa_nodes") > 1, String::new()),
        "swap_devices" => told(facts.members(of) > 0, String::new()),
        "load_1m" => {
            let cpus = facts.number("cpu_count");
            told(cpus > 0.0 && number >= cpus, format!("{number} on {cpus} CPUs"))
        }
        "steal_share" => told(number > STEAL_MAX, format!("{:.1}", number * 100.0)),
        "debug_parameters" => {
            let is_on = |value: &Value| !matches!(value.as_str(), Some("0" | "off" | "N" | "n"));
            let set = facts.value(of).as_object()?.iter();
            let on: Vec<&str> =
                set.filter(|(_, value)| is_on(value)).map(|(name, _)| name.as_str()).collect();
            told(!on.is_empty(), on.join(", "))
        }
        "page_reporting_kib" => told(number > 0.0, String::new()),
        "clocksource" => {
            let source = facts.text(of);
            // kvm-clock is read off the counter, which the host vouches for.
            let trusted = matches!(source, "" | "tsc" | "kvm-clock");
            told(facts.text("architecture") == "x86_64" && !trusted, source.to_owned())
        }
        "cgroup_cpu_limit" => facts.value(of).as_f64().map(|limit| limit.to_string()),
        _ => None,
    }
}

/// One sentence for every fact that is known to spoil results; empty for a quiet machine.
pub fn warnings(facts: &[Fact]) -> Vec<String> {
    let facts = Facts(facts);
    TABLE.warning.iter().filter_map(|row| row.sentence(&facts)).collect()
}
