//! What came of a program with segments, in a few lines and as JSON.

mod backed;

use std::collections::BTreeMap;

use pagelab_interpose::segment::{Backing, CODE_TOO_SMALL, Counted, Counts, Leaf, Reason, Wish};
use pagelab_record::units::display_bytes;
use pagelab_report::visible;
use pagelab_sys::time::Usage;
use serde_json::{Map, Value, json};

use super::zeroing::{self, Prices};

/// What is told of.
pub(super) struct Told<'t> {
    pub(super) wish: &'t Wish,
    pub(super) counts: &'t Counts,
    /// What the kernel counted by the end; nothing of a program that runs.
    pub(super) usage: Option<&'t Usage>,
    /// What faults take here.
    pub(super) prices: Prices,
}

fn bytes(bytes: u64) -> String {
    display_bytes(bytes as f64)
}

/// Names of programs that are listed; the others are counted.
const NAMES_MAX: usize = 8;

/// `sh ×2, gcc`: the programs that began with segments; those whose names are not known, or are too
/// many, as a number.
fn programs(names: &[(String, u64)], all: u64) -> String {
    let listed = &names[..names.len().min(NAMES_MAX)];
    let others = all.saturating_sub(listed.iter().map(|(_, count)| count).sum());
    let name = |(name, count): &(String, u64)| match count {
        1 => visible(name),
        count => format!("{} ×{count}", visible(name)),
    };
    let mut said: Vec<String> = listed.iter().map(name).collect();
    match (others, said.is_empty()) {
        (0, _) => (),
        (_, true) => said.push(many(others, "program")),
        (_, false) => said.push(many(others, "other program")),
    }
    said.join(", ")
}

/// `1 map`, `2 maps`.
fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Told<'_> {
    fn count(&self, counted: Counted) -> u64 {
        self.counts.get(counted)
    }

    /// The lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.begun()];
        if self.count(Counted::Told) > 0 {
            lines.push(self.ended());
        } else if self.count(Counted::Programs) > 0 {
            let why = "no process has ended by itself, which is when it tells what it has";
            lines.push(format!("  at the end  {why}"));
        }
        lines.extend(self.leaves());
        lines.push(format!("  served      {}", self.served()));
        lines.extend(self.fallbacks());
        lines.extend(self.stack_and_code());
        let zeroing = zeroing::lines(self.counts, self.prices);
        lines.extend(zeroing.iter().map(|line| format!("  zeroing     {line}")));
        if let Some(usage) = self.usage {
            let Usage { minor_faults, major_faults, user_ns, system_ns, .. } = *usage;
            let [user, system] = [user_ns, system_ns].map(|ns| ns as f64 / 1e9);
            lines.push(format!(
                "  faults      {minor_faults} minor, {major_faults} major; {user:.2} s in user \
                 space, {system:.2} s in the kernel, of which zeroing is a part"
            ));
            lines.push(self.witness());
        }
        lines
    }

    /// Who had segments, and what they are.
    fn begun(&self) -> String {
        let Wish { heap, mmap, leaf, .. } = *self.wish;
        let count = self.count(Counted::Programs);
        let mut line = match count {
            0 => "segments: no program had any".to_owned(),
            _ => format!("segments of {}", programs(&self.counts.names(), count)),
        };
        let reserved = if count > 1 { "reserved in each" } else { "reserved" };
        let leaf = match leaf {
            Leaf::Base => "pages of 4 KiB",
            Leaf::Pmd => "leaves of 2 MiB",
            // One that is anonymous is split no further up.
            Leaf::Pud if self.wish.backing == Backing::Thp => {
                "leaves of 1 GiB, which transparent huge pages fill by 2 MiB"
            }
            Leaf::Pud => "leaves of 1 GiB",
        };
        let [heap, mmap] = [heap, mmap].map(bytes);
        line.push_str(&format!(": heap {heap}, maps {mmap} {reserved}, {leaf}"));
        let others = self.count(Counted::Others);
        if others > 0 {
            line.push_str(&format!("; {} had none", many(others, "other program")));
        }
        let emptied = self.count(Counted::Emptied);
        if emptied > 0 {
            let programs = many(emptied, "program");
            line.push_str(&format!("; {programs} had none: started with an emptied environment"));
        }
        let unreserved = self.count(Counted::Unreserved);
        if unreserved > 0 {
            let errno = i32::try_from(self.count(Counted::Errno)).unwrap_or(0);
            let why = std::io::Error::from_raw_os_error(errno);
            line.push_str(&format!("; {} not reserved: {why}", many(unreserved, "segment")));
        }
        line
    }

    /// What was there at the end.
    fn ended(&self) -> String {
        let of = |what: &str, large, small| {
            let (large, small) = (self.count(large), self.count(small));
            let whole = bytes(large + small);
            format!("{what} {whole} touched, {} of it in huge pages", bytes(large))
        };
        let heap = of("heap", Counted::HeapLarge, Counted::HeapSmall);
        let maps = of("maps", Counted::MmapLarge, Counted::MmapSmall);
        let outside = bytes(self.count(Counted::Outside));
        let told = self.count(Counted::Told);
        // Each process reports its own mappings, and a forked one has its parent's pages in them.
        let of = match told {
            0 | 1 => "",
            _ => " (all processes added up; a page that forked ones share counts in each)",
        };
        let when = if self.usage.is_some() { "at the end" } else { "so far    " };
        format!("  {when}  {heap}; {maps}; private memory outside {outside}{of}")
    }

    fn served(&self) -> String {
        let maps = self.count(Counted::Maps);
        let mut line = format!("{}, {} in all", many(maps, "map"), bytes(self.map_bytes()));
        let ignored = self.count(Counted::Ignored);
        if ignored > 0 {
            let asked = many(ignored, "call");
            line.push_str(&format!("; {asked} for pages of another size had no effect"));
        }
        line
    }

    fn map_bytes(&self) -> u64 {
        self.count(Counted::MapBytes)
    }

    /// What came from the kernel instead, a line for each reason.
    fn fallbacks(&self) -> Vec<String> {
        let of = |reason: Reason| {
            let (calls, sum) = self.counts.fallback(reason);
            let size = if sum > 0 { format!(", {}", bytes(sum)) } else { String::new() };
            let line = format!("{}{size}: {}", many(calls, "call"), reason.because());
            (calls > 0).then(|| format!("  kernel      {line}"))
        };
        Reason::ALL.into_iter().filter_map(of).collect()
    }

    fn stack_and_code(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let stack = self.count(Counted::Stack);
        if stack > 0 {
            let large = bytes(self.count(Counted::StackLarge));
            let line = format!("{} touched ahead, {large} of it in huge pages", bytes(stack));
            lines.push(format!("  stack       {line} at the end of each program"));
        }
        let code = self.count(Counted::Code);
        if self.wish.code > 0 {
            let line = match self.count(Counted::CodeErrno) {
                _ if code > 0 => format!("{} collapsed into huge pages", bytes(code)),
                CODE_TOO_SMALL => "no whole huge page lies in the program's code".to_owned(),
                errno => {
                    let errno = i32::try_from(errno).unwrap_or(0);
                    let why = std::io::Error::from_raw_os_error(errno);
                    format!(
                        "not collapsed: {why}; it takes Linux 6.1 with \
                         CONFIG_READ_ONLY_THP_FOR_FS, or a file system of large folios"
                    )
                }
            };
            lines.push(format!("  code        {line}"));
        }
        lines
    }

    /// All of it for a program to read, in bytes and calls.
    pub(super) fn json(&self) -> String {
        let count = |counted| Value::from(self.count(counted));
        let mut fallbacks = Map::new();
        for reason in Reason::ALL {
            let (calls, bytes) = self.counts.fallback(reason);
            fallbacks.insert(reason.name().to_owned(), json!({ "calls": calls, "bytes": bytes }));
        }
        let told = json!({
            "schema": "pagelab.segment/1",
            "heap": self.wish.heap,
            "mmap": self.wish.mmap,
            "leaf": self.wish.leaf.bytes(),
            "backing": self.wish.backing.name(),
            "programs": count(Counted::Programs),
            "names": self.counts.names().into_iter().collect::<BTreeMap<_, _>>(),
            "others": count(Counted::Others),
            "emptied": count(Counted::Emptied),
            "unreserved": count(Counted::Unreserved),
            "served": { "maps": count(Counted::Maps), "bytes": count(Counted::MapBytes) },
            "ignored": count(Counted::Ignored),
            "fallbacks": fallbacks,
            "end": {
                "processes": count(Counted::Told),
                "heap": { "huge": count(Counted::HeapLarge), "base": count(Counted::HeapSmall) },
                "mmap": { "huge": count(Counted::MmapLarge), "base": count(Counted::MmapSmall) },
                "outside": count(Counted::Outside),
            },
            "stack": { "touched": count(Counted::Stack), "huge": count(Counted::StackLarge) },
            "code": count(Counted::Code),
            "leaves": self.leaves_json(),
            "witness": self.claims().iter().map(backed::Claim::json).collect::<Vec<_>>(),
            "proven": self.unseen() == 0,
            "zero": self.wish.zero.name(),
            "zeroing": zeroing::json(self.counts, self.prices),
            "filtered": count(Counted::Filtered),
            "minor_faults": self.usage.map(|usage| usage.minor_faults),
            "major_faults": self.usage.map(|usage| usage.major_faults),
            "user_ns": self.usage.map(|usage| usage.user_ns),
            "system_ns": self.usage.map(|usage| usage.system_ns),
        });
        format!("{told:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use pagelab_interpose::segment::{ALL_WORDS, NAME_BYTES, WORDS, count_name};

    use super::*;

    /// What a run says of these counts and names.
    fn lines(counts: &[(Counted, u64)], names: &[&str]) -> Vec<String> {
        let words = [const { AtomicU64::new(0) }; ALL_WORDS];
        for (counted, count) in counts {
            words[*counted as usize].store(*count, Ordering::Relaxed);
        }
        for name in names {
            let mut padded = [0; NAME_BYTES];
            padded[..name.len()].copy_from_slice(name.as_bytes());
            count_name(&words[WORDS..], padded);
        }
        let wish = Wish { heap: 1 << 30, mmap: 1 << 30, leaf: Leaf::Pmd, ..Wish::default() };
        let (counts, prices) = (&Counts(words.map(AtomicU64::into_inner)), Prices::default());
        Told { wish: &wish, counts, usage: Some(&Usage::default()), prices }.lines()
    }

    #[test]
    fn programs_are_named_and_how_often_each_began() {
        let said = lines(&[(Counted::Programs, 3)], &["sh", "gcc", "sh"]);
        let begun = "segments of sh ×2, gcc: heap 1.00 GiB, maps 1.00 GiB reserved in each, leaves \
                     of 2 MiB";
        assert_eq!(said[0], begun);
        let said = lines(&[(Counted::Programs, 1)], &["python3"]);
        assert!(said[0].starts_with("segments of python3: "), "{}", said[0]);
        assert!(said[0].contains("maps 1.00 GiB reserved, leaves"), "{}", said[0]);
        let names: Vec<String> = (0..10).map(|nth| format!("p{nth}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let said = lines(&[(Counted::Programs, 12)], &names);
        assert!(said[0].contains(" p7, 4 other programs: heap"), "{}", said[0]);
    }

    #[test]
    fn what_is_in_huge_pages_is_a_part_of_what_was_touched() {
        let counts = [
            (Counted::Programs, 1),
            (Counted::Told, 1),
            (Counted::HeapLarge, 14 << 20),
            (Counted::HeapSmall, 1 << 20),
            (Counted::MmapSmall, 2 << 20),
            (Counted::Outside, 3 << 20),
        ];
        let ended = "  at the end  heap 15.0 MiB touched, 14.0 MiB of it in huge pages; maps \
                     2.00 MiB touched, 0 B of it in huge pages; private memory outside 3.00 MiB";
        assert_eq!(lines(&counts, &["a"])[1], ended);
    }
}
