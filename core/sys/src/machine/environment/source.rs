//! What a row of `facts.toml` says of how its value is found, where a few words say it.

use serde::Deserialize;
use serde_json::Value;

use super::{boot_parameter, map_of, meminfo_bytes, on_or_off, switch};
use crate::machine::{Tree, proc::counts};

const THP: &str = "sys/kernel/mm/transparent_hugepage";

/// Where a value is found, and what it is there.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// The text of a file.
    Text(String),
    /// The number in a file.
    Number(String),
    /// A parameter that the kernel spells `Y`, `N`, `1` or `0`.
    Switch(String),
    /// The word in brackets.
    Choice(String),
    /// In a file of `key: value` lines, the text of a key.
    Field(String, String),
    /// In such a file, the number of a key.
    FieldNumber(String, String),
    /// A kilobyte field of `/proc/meminfo`, in bytes.
    Meminfo(String),
    /// The event counters of `/proc/vmstat` with this prefix.
    Vmstat(String),
    /// The flags, of the hundred that a processor has, that are among these.
    CpuFlags(Vec<String>),
    /// `init_on_alloc=1`; null when the command line leaves it to the kernel's configuration.
    BootSwitch(String),
    /// The parameters, of these, that are on the command line.
    BootParameters(Vec<String>),
    /// This file of every transparent size that has it.
    ByThpSize(String),
    /// One of the three load averages.
    Load(usize),
    /// `some avg10` of a resource.
    Pressure(String),
}

impl Source {
    /// The value now; null where there is none.
    pub(super) fn read(&self, tree: &Tree) -> Value {
        match self {
            Self::Text(path) => tree.text(path).into(),
            Self::Number(path) => tree.number::<i64>(path).into(),
            Self::Switch(path) => switch(tree, path),
            Self::Choice(path) => tree.choice(path).into(),
            Self::Field(path, key) => tree.field(path, key).into(),
            Self::FieldNumber(path, key) => tree.field_number(path, key).into(),
            Self::Meminfo(key) => meminfo_bytes(tree, key),
            Self::Vmstat(prefix) => counters(tree, prefix),
            Self::CpuFlags(of_interest) => {
                let flags = tree.field("proc/cpuinfo", "flags");
                flags.map(|flags| listed(&flags, of_interest)).into()
            }
            Self::BootSwitch(name) => {
                boot_parameter(tree, name).and_then(|value| on_or_off(&value)).into()
            }
            Self::BootParameters(names) => {
                let set = |name: &String| Some((name.clone(), boot_parameter(tree, name)?.into()));
                let line = tree.text("proc/cmdline");
                line.map_or(Value::Null, |_| Value::Object(names.iter().filter_map(set).collect()))
            }
            Self::ByThpSize(file) => map_of(tree, THP, |name| {
                let size = name.strip_prefix("hugepages-")?;
                Some((size.to_owned(), tree.choice(format!("{THP}/{name}/{file}"))?.into()))
            }),
            Self::Load(index) => {
                let text = tree.text("proc/loadavg").unwrap_or_default();
                let load = text.split_whitespace().nth(*index);
                load.and_then(|load| load.parse::<f64>().ok()).into()
            }
            Self::Pressure(resource) => {
                // `some avg10=7.26 avg60=…`
                let line = tree.field(format!("proc/pressure/{resource}"), "some");
                let first = line.as_deref().and_then(|line| line.split_whitespace().next());
                let share =
                    first.and_then(|first| first.strip_prefix("avg10=")?.parse::<f64>().ok());
                share.into()
            }
        }
    }
}

/// The words of a text that are among these, in the order of these.
fn listed(text: &str, these: &[String]) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    these.iter().filter(|word| words.contains(&word.as_str())).cloned().collect()
}

fn counters(tree: &Tree, prefix: &str) -> Value {
    let Some(text) = tree.text("proc/vmstat") else { return Value::Null };
    let ours =
        |(name, count): (&str, u64)| Some((name.strip_prefix(prefix)?.to_owned(), count.into()));
    Value::Object(counts(&text).filter_map(ours).collect())
}
