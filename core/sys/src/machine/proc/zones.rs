//! `/proc/zoneinfo` and `/proc/buddyinfo`: the zones of every node.

use super::field;

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone<'t> {
    /// Its node.
    pub node: usize,
    /// Its name, such as `Normal`.
    pub name: &'t str,
    numbers: &'t str,
    fields: &'t str,
}

/// The zones in a text of either file.
pub fn zones(text: &str) -> impl Iterator<Item = Zone<'_>> {
    text.split("Node ").filter_map(|zone| {
        let (head, fields) = zone.split_once('\n').unwrap_or((zone, ""));
        let (node, name) = head.split_once(", zone")?;
        let (name, numbers) = name.trim().split_once(' ').unwrap_or((name.trim(), ""));
        Some(Zone { node: node.parse().ok()?, name, numbers, fields })
    })
}

impl<'t> Zone<'t> {
    /// Free blocks of each order, by `buddyinfo`.
    pub fn blocks(&self) -> impl Iterator<Item = u64> + use<'t> {
        self.numbers.split_whitespace().filter_map(|count| count.parse().ok())
    }

    /// A number of pages, by `zoneinfo`: `pages free`, `min`, `high`. 0 without it.
    pub fn pages(&self, name: &str) -> u64 {
        // The first of that name: `high:` further down is of the lists of one CPU.
        field(self.fields, name).and_then(|pages| pages.parse().ok()).unwrap_or(0)
    }

    /// Pages that an allocation of user memory leaves, by `zoneinfo`.
    pub fn kept(&self) -> u64 {
        let list = field(self.fields, "protection").unwrap_or_default();
        // Grows from zone to zone; user memory asks as the highest of them.
        let pages = list.split(['(', ',', ')']).filter_map(|word| word.trim().parse::<u64>().ok());
        self.pages("min") + pages.max().unwrap_or(0)
    }
}
