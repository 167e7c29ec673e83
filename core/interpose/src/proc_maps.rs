//! `/proc/PID/maps` and `smaps`: a line for each mapping, followed in `smaps` by its fields.

use std::{borrow::Cow, iter, ops::Range};

/// A mapping, with its fields where the text is that of `smaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping<'t> {
    /// Its addresses, of which there is at least one.
    pub range: Range<u64>,
    /// `rwx` and `s` (shared) or `p` (private), with `-` for what is not allowed.
    pub rights: &'t str,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// 0 for memory of no file.
    pub inode: u64,
    /// The file, or what the kernel calls it, as the kernel writes it; empty for other memory.
    pub name: &'t str,
    fields: &'t str,
}

/// The mappings in a text of either file. The fields of a line that is no mapping are skipped with
/// it.
pub fn mappings(text: &str) -> impl Iterator<Item = Mapping<'_>> {
    let mut rest = text;
    let block = iter::from_fn(move || {
        let (line, behind) = rest.split_once('\n').or((!rest.is_empty()).then_some((rest, "")))?;
        let mut end = 0;
        // Fields have a name, addresses are in small letters.
        while behind[end..].starts_with(|first: char| first.is_ascii_uppercase()) {
            end += behind[end..].find('\n').map_or(behind.len() - end, |line| line + 1);
        }
        let (fields, other) = behind.split_at(end);
        rest = other;
        Some((line, fields))
    });
    block.filter_map(|(line, fields)| Some(Mapping { fields, ..Mapping::of_line(line)? }))
}

impl<'t> Mapping<'t> {
    /// A mapping without fields by its line: `7f00-7f10 rw-p 00000000 fe:00 12   /a file`.
    pub fn of_line(line: &'t str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word| u64::from_str_radix(word, 16).ok();
        let range = hexadecimal(start)?..hexadecimal(end)?;
        let rights = words.next().filter(|word| word.len() == 4)?;
        let offset = hexadecimal(words.next()?)?;
        let inode = words.nth(1)?.parse().ok()?;
        let name = words.next().unwrap_or_default().trim_start_matches(' ');
        let mapping = Self { range, rights, offset, inode, name, fields: "" };
        (!mapping.range.is_empty()).then_some(mapping)
    }

    /// The name as it is: the kernel escapes line ends, and nothing else (`seq_file_path` in
    /// `fs/proc/task_mmu.c`).
    pub fn path(&self) -> Cow<'t, str> {
        if self.name.contains("\\012") {
            self.name.replace("\\012", "\n").into()
        } else {
            self.name.into()
        }
    }

    /// Its addresses, where it is of this process.
    #[expect(clippy::cast_possible_truncation, reason = "they are addresses of this process")]
    pub fn addresses(&self) -> Range<usize> {
        self.range.start as usize..self.range.end as usize
    }

    /// Whether it has a right: a letter of [`Mapping::rights`].
    pub fn may(&self, right: char) -> bool {
        self.rights.contains(right)
    }

    /// The fields that are sizes, in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = (&'t str, u64)> + use<'t> {
        sizes(self.fields)
    }

    /// Whether a field has a word: `THPeligible` a `1`, `VmFlags` an `nh`.
    pub fn has(&self, name: &str, word: &str) -> bool {
        field(self.fields, name).is_some_and(|value| value.split(' ').any(|one| one == word))
    }
}

/// The value of the first line of exactly this name, in a text of `name: value` or `name value`
/// lines.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(name)?;
        match rest.trim_start().strip_prefix(':') {
            Some(value) => Some(value.trim()),
            None => rest.starts_with(char::is_whitespace).then(|| rest.trim()),
        }
    })
}

/// The fields of a text that are in kB, such as `status` and `smaps` have, in bytes.
pub fn sizes(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.split('\n').filter_map(|line| {
        let (name, value) = line.strip_suffix(" kB")?.split_once(':')?;
        Some((name, value.trim_start().parse::<u64>().ok()?.checked_mul(1024)?))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMAPS: &str = "\
00400000-00401000 r-xp 00001000 fe:00 12                         /usr/bin/a name (deleted)
Size:                  4 kB
Rss:                   4 kB
VmFlags: rd ex mr nh
1000-2000 rw-p 00000000 00:00 0
Rss:                   8 kB
THPeligible:           1
10000000000000000-10000000000001000 rw-p 00000000 00:00 0
Rss:                  99 kB
2000-3000 rw-s 00000000 00:01 7 /memfd:x\\012Rss: 5 kB
Rss:                  16 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn a_field_is_matched_whole() {
        let text = "MemTotalX: 7 kB\nMemTotal:   42 kB\npgfault 9\nmm->scan  :   3\nempty:\n";
        assert_eq!(field(text, "MemTotal"), Some("42 kB"));
        assert_eq!(field(text, "pgfault"), Some("9"));
        assert_eq!(field(text, "mm->scan"), Some("3"));
        assert_eq!((field(text, "Mem"), field(text, "empty")), (None, Some("")));
    }

    #[test]
    fn sizes_are_numbers_of_kilobytes_with_a_name() {
        let text = "Name:\tRss: 4 kB\nRss:   4 kB\nhuge: 18446744073709551615 kB\nThreads: 2\n";
        assert_eq!(sizes(text).collect::<Vec<_>>(), [("Rss", 4096)]);
    }

    #[test]
    fn mappings_are_read_with_their_fields_and_no_others() {
        let found: Vec<_> = mappings(SMAPS).collect();
        let rss = |mapping: &Mapping<'_>| {
            let rss = mapping.sizes().filter(|(name, _)| *name == "Rss").map(|(_, bytes)| bytes);
            (mapping.range.start, mapping.rights.to_owned(), rss.sum::<u64>() >> 10)
        };
        let expected = [
            (0x40_0000, "r-xp".to_owned(), 4),
            (0x1000, "rw-p".to_owned(), 8),
            (0x2000, "rw-s".to_owned(), 16),
            (0xffff_ffff_ff60_0000, "--xp".to_owned(), 0),
        ];
        assert_eq!(found.iter().map(rss).collect::<Vec<_>>(), expected);
        assert_eq!((found[0].offset, found[0].inode), (0x1000, 12));
        assert!(found[0].has("VmFlags", "nh") && !found[0].has("VmFlags", "n"));
        assert!(found[1].has("THPeligible", "1") && !found[2].has("THPeligible", "1"));
    }

    #[test]
    fn names_are_whole_and_line_ends_in_them_are_escaped() {
        let names: Vec<_> = mappings(SMAPS).map(|mapping| mapping.name).collect();
        let expected = ["/usr/bin/a name (deleted)", "", "/memfd:x\\012Rss: 5 kB", "[vsyscall]"];
        assert_eq!(names, expected);
        let paths: Vec<_> = mappings(SMAPS).map(|mapping| mapping.path()).collect();
        assert_eq!((&*paths[0], &*paths[2]), (expected[0], "/memfd:x\nRss: 5 kB"));
        let of = |line| Mapping::of_line(line).unwrap().name;
        assert_eq!(
            of("1-2 rw-p 0 00:00 9  /1-2 rw-p 0 00:00 0 [heap]"),
            "/1-2 rw-p 0 00:00 0 [heap]"
        );
        assert_eq!(of("1-2 rw-p 0 00:0f 9 /a  b "), "/a  b ");
        assert_eq!(of("1-2 rw-p 0 00:0f 9 anon_inode:[perf_event]"), "anon_inode:[perf_event]");
    }

    #[test]
    fn what_makes_no_sense_is_no_mapping() {
        for line in [
            "",
            "Rss: 4 kB",
            "x-y rw-p 0 00:00 0",
            "1000-2000",
            "1000-2000 rw 0 00:00 0",
            "1000-2000 rw-p 0 00:00",
            "2000-1000 rw-p 0 00:00 0",
            "1000-1000 rw-p 0 00:00 0",
            "0-10000000000000000 rw-p 0 00:00 0",
        ] {
            assert_eq!(Mapping::of_line(line), None, "{line}");
        }
        assert_eq!(mappings("\n\nA\n1-2 rw-p 0 00:00 0").count(), 1);
    }

    proptest! {
        #[test]
        fn no_text_panics_the_reader(
            lines in prop::collection::vec(
                "([0-9a-f]{1,17}-[0-9a-f]{1,17} rw-p 0 00:00 0|\
                 (Rss|Referenced|AnonHugePages): [0-9]{1,22} kB|VmFlags: nh|.{0,20})",
                0..30,
            ),
        ) {
            let text = lines.join("\n");
            let sizes = mappings(&text).flat_map(|mapping| mapping.sizes());
            prop_assert!(sizes.count() <= lines.len());
        }
    }
}
