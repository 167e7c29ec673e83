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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_told_with_their_numbers() {
        let text = "\
            Node 0, zone DMA\n  pages free  30\n  min  1\n  high  10\n  protection: (0, 900, 7)\n\
            Node 12, zone   Normal\n  pages free     500\n        high     20\n  pagesets\n    \
            cpu: 0\n              high:  63\n";
        let told = |zone: Zone<'_>| {
            let Zone { node, name, .. } = zone;
            (node, name.to_owned(), zone.pages("pages free"), zone.pages("high"), zone.kept())
        };
        let expected = [(0, "DMA".to_owned(), 30, 10, 901), (12, "Normal".to_owned(), 500, 20, 0)];
        assert_eq!(zones(text).map(told).collect::<Vec<_>>(), expected);
        let blocks = "Node 0, zone      DMA      0      3\nNode 1, zone   Normal    100";
        let found: Vec<Vec<u64>> = zones(blocks).map(|zone| zone.blocks().collect()).collect();
        assert_eq!(found, [vec![0, 3], vec![100]]);
    }
}
