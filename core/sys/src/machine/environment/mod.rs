//! The facts about a machine that a result may depend on.
//!
//! One idea: a file of rows, each a key, a class, its effect on a result in one clause, and words
//! (`Source`) or a function for what is read of a [`Tree`] of kernel files. Nothing here fails:
//! what this machine or this user cannot read is `null`, which is itself worth recording.
//!
//! The class says what a difference between two runs means ([`Class`]); so a fact that names a
//! container or a moment is volatile, even when it looks like a setting.
//!
//! It is not a judgement, except for [`warnings()`], and changes nothing.

/// What is read of the tree, which `Value` takes, by the key of its fact.
macro_rules! own {
    (|$tree:ident| $($key:literal => $read:expr;)*) => {
        &[$(($key, |$tree| {
            let _ = $tree;
            serde_json::Value::from($read)
        })),*]
    };
}

mod identity;
mod settings;
mod source;
mod volatile;
mod warnings;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use source::Source;
pub use warnings::warnings;

use crate::machine::{
    Tree,
    thp::{HugePages, Pool},
};

/// What a difference in a fact means to a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// What the machine is: a difference means another machine.
    Identity,
    /// How it is set up: a difference may explain a result.
    Setting,
    /// What it happened to be doing: differences are normal.
    Volatile,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fact {
    /// What a difference in it means.
    pub class: Class,
    /// Its name, unique over all classes.
    pub key: &'static str,
    /// `null` where it is not available.
    pub value: Value,
    /// What it does to a result, in one clause.
    pub effect: &'static str,
}

/// A fact, as the file has it.
#[derive(Debug, Deserialize)]
struct Row {
    key: String,
    effect: String,
    /// Without it a function that is named by the key.
    #[serde(flatten)]
    source: Option<Source>,
}

impl Row {
    /// The value now, by the words of the row or by the function that `own` has for its key.
    fn read(&self, own: &[Own], tree: &Tree) -> Option<Value> {
        match &self.source {
            Some(source) => Some(source.read(tree)),
            None => own.iter().find(|(key, _)| *key == self.key).map(|(_, read)| read(tree)),
        }
    }
}

/// How a fact is found that the file has no words for, by its key.
type Own = (&'static str, fn(&Tree) -> Value);

/// `facts.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    identity: Vec<Row>,
    setting: Vec<Row>,
    volatile: Vec<Row>,
    warning: Vec<warnings::Row>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("../environment/facts.toml")).expect("a test reads it")
});

/// Every fact about this machine, now: identity first, volatile facts last.
pub fn facts() -> Vec<Fact> {
    facts_of(&Tree::machine())
}

/// Every fact that a tree tells; what needs no file (CPUID, limits) is this machine's.
pub fn facts_of(tree: &Tree) -> Vec<Fact> {
    let Table { identity, setting, volatile, .. } = &*TABLE;
    let classes = [
        (Class::Identity, identity, identity::OWN),
        (Class::Setting, setting, settings::OWN),
        (Class::Volatile, volatile, volatile::OWN),
    ];
    let fact = |class, row: &'static Row, own| Fact {
        class,
        key: &row.key,
        value: row.read(own, tree).unwrap_or_default(),
        effect: &row.effect,
    };
    let facts = classes
        .into_iter()
        .flat_map(|(class, rows, own)| rows.iter().map(move |row| fact(class, row, own)));
    facts.collect()
}

/// The settings of some keys as text, now; of all without keys. One that has parts, such as sizes
/// of pages, is a line for each: `mthp_enabled.64kB`.
pub fn settings_as_text(keys: Option<&[&str]>) -> Vec<(String, String)> {
    let tree = Tree::machine();
    let is_asked = |row: &&Row| keys.is_none_or(|keys| keys.contains(&row.key.as_str()));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let lines = |row: &Row| match row.read(settings::OWN, &tree).unwrap_or_default() {
        Value::Object(parts) => {
            parts.iter().map(|(part, v)| (format!("{}.{part}", row.key), text(v))).collect()
        }
        value => vec![(row.key.clone(), text(&value))],
    };
    TABLE.setting.iter().filter(is_asked).flat_map(lines).collect()
}

/// The kernel's random name of this boot; knobs and tick counts mean nothing across boots.
pub fn boot_id() -> String {
    let id = Tree::machine().text("proc/sys/kernel/random/boot_id");
    id.unwrap_or_else(|| "unknown".to_owned())
}

/// The machine's own name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A parameter that the kernel spells `Y`, `N`, `1` or `0`.
fn switch(tree: &Tree, path: &str) -> Value {
    tree.text(path).and_then(|text| on_or_off(&text)).into()
}

fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "1" | "Y" | "y" | "on" | "true" => Some(true),
        "0" | "N" | "n" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// The value of `name=…` on the kernel's command line, the last one as the kernel takes it; the
/// empty text for a bare `name`. Anything after `--` is init's.
fn boot_parameter(tree: &Tree, name: &str) -> Option<String> {
    let line = tree.text("proc/cmdline")?;
    let own = line.split_whitespace().take_while(|word| *word != "--");
    let value = |word: &str| match word.split_once('=') {
        Some((key, value)) => (key == name).then(|| value.to_owned()),
        None => (word == name).then(String::new),
    };
    own.filter_map(value).last()
}

/// A kilobyte field of `/proc/meminfo` in bytes.
fn meminfo_bytes(tree: &Tree, key: &str) -> Value {
    tree.field_number("proc/meminfo", key).map(|kilobytes| kilobytes << 10).into()
}

/// A map from every name in a directory to what `read` makes of it; null when nothing is there.
fn map_of(tree: &Tree, directory: &str, read: impl Fn(&str) -> Option<(String, Value)>) -> Value {
    object(tree.names(directory).iter().filter_map(|name| read(name)))
}

/// What `read` makes of each hugetlb pool, by its page size; null when there are none.
fn by_pool(tree: &Tree, read: fn(&Pool) -> u64) -> Value {
    let pools = HugePages::of(tree.clone()).pools().into_iter();
    object(pools.map(|pool| (format!("{}kB", pool.page_size >> 10), read(&pool).into())))
}

/// A map, or null when it has no member.
fn object(members: impl Iterator<Item = (String, Value)>) -> Value {
    let map: serde_json::Map<String, Value> = members.collect();
    if map.is_empty() { Value::Null } else { map.into() }
}

#[cfg(test)]
mod tests;
