//! What came of a program with segments, in a few lines and as JSON.

mod backed;

use pagelab_record::units::display_bytes;
use pagelab_sys::{
    process::segment::{Backing, CODE_TOO_SMALL, Counted, Counts, Leaf, Reason, Wish},
    time::Usage,
};
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
            let why = "none ended by itself, so nobody told what was in them at the end";
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
        let programs = self.count(Counted::Programs);
        let mut line = match programs {
            0 => "segments: no program had any".to_owned(),
            _ => format!("segments of {}", many(programs, "program")),
        };
        let leaf = match leaf {
            Leaf::Base => "pages of 4 KiB",
            Leaf::Pmd => "leaves of 2 MiB",
            // One that is anonymous is split no further up.
            Leaf::Pud if self.wish.backing == Backing::Thp => {
                "leaves of 1 GiB, which transparent huge pages fill by 2 MiB"
            }
            Leaf::Pud => "leaves of 1 GiB",
        };
        line.push_str(&format!(": heap {}, maps {}, {leaf}", bytes(heap), bytes(mmap)));
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
            format!("{what} {whole}, {} of it in huge pages", bytes(large))
        };
        let heap = of("heap", Counted::HeapLarge, Counted::HeapSmall);
        let maps = of("maps", Counted::MmapLarge, Counted::MmapSmall);
        let outside = bytes(self.count(Counted::Outside));
        let told = self.count(Counted::Told);
        let of = if told == 1 { String::new() } else { format!(" ({told} processes, added up)") };
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
            lines.push(format!("  stack       {line} at the end"));
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
            "asked": count(Counted::Asked),
            "minor_faults": self.usage.map(|usage| usage.minor_faults),
            "major_faults": self.usage.map(|usage| usage.major_faults),
            "user_ns": self.usage.map(|usage| usage.user_ns),
            "system_ns": self.usage.map(|usage| usage.system_ns),
        });
        format!("{told:#}\n")
    }
}
