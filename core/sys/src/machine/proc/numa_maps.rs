//! `/proc/PID/numa_maps`: a line for each mapping, with its policy and its pages on each node.

/// Where the pages of a mapping are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement<'t> {
    /// First address of the mapping.
    pub start: u64,
    /// The policy for it, such as `default` and `bind:1`.
    pub policy: &'t str,
    words: &'t str,
}

/// The mappings in a text, `7f00 bind:1 anon=3 N0=3 kernelpagesize_kB=4` for each.
pub fn placements(text: &str) -> impl Iterator<Item = Placement<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let start = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(Placement { start, policy: words.next()?, words: words.next().unwrap_or_default() })
    })
}

impl<'t> Placement<'t> {
    /// Whether it is of hugetlb pages.
    pub fn is_hugetlb(&self) -> bool {
        self.words.split(' ').any(|word| word == "huge")
    }

    /// Nodes that have pages of it, with their bytes.
    pub fn bytes(&self) -> impl Iterator<Item = (usize, u64)> + use<'t> {
        let words = self.words;
        let pairs = move || words.split(' ').filter_map(|word| word.split_once('='));
        let size = pairs().find(|(name, _)| *name == "kernelpagesize_kB");
        let kib: u64 = size.and_then(|(_, kib)| kib.parse().ok()).unwrap_or(4);
        pairs().filter_map(move |(name, pages)| {
            let pages: u64 = pages.parse().ok()?;
            let node = name.strip_prefix('N')?.parse().ok()?;
            Some((node, pages.saturating_mul(kib.saturating_mul(1024))))
        })
    }

    /// Whether its policy keeps it where it is: what is spread over nodes is to stay spread.
    pub fn is_bound(&self) -> bool {
        ["bind", "interleave", "weighted"].iter().any(|one| self.policy.starts_with(one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_pages_of_each_node_are_read() {
        let text = "7f00 default heap anon=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    7f10 bind:1 file=/a\\040N0\\0759 huge N1=1 kernelpagesize_kB=2048\nbad\n\
                    7f20 weighted interleave:0-1 anon=1 N12=1\n\
                    7f30 prefer=x:0";
        let found: Vec<_> = placements(text).collect();
        let told = found.iter().map(|one| (one.policy, one.is_bound(), one.is_hugetlb()));
        let expected = [
            ("default", false, false),
            ("bind:1", true, true),
            ("weighted", true, false),
            ("prefer=x:0", false, false),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let bytes = found.iter().map(|one| one.bytes().collect());
        let expected = [vec![(0, 4096), (1, 8192)], vec![(1, 2 << 20)], vec![(12, 4096)], vec![]];
        assert_eq!(bytes.collect::<Vec<Vec<_>>>(), expected);
    }
}
