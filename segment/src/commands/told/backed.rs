//! What is told of the memory behind segments: by which leaves it came, and what the witness saw.

use pagelab_interpose::segment::{Backed, Backing, Counted, Reason};
use serde_json::{Value, json};

use super::{Told, bytes};

/// Something that must be so, and what was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// What, by a name for programs.
    name: &'static str,
    /// What, for people, where it is so.
    says: String,
    expected: u64,
    observed: u64,
}

impl Claim {
    fn holds(&self) -> bool {
        self.expected == self.observed
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "claim": self.name,
            "expected": self.expected,
            "observed": self.observed,
            "holds": self.holds(),
        })
    }
}

impl Told<'_> {
    /// Segments whose frames nobody may see here.
    pub(super) fn unseen(&self) -> u64 {
        self.counts.get(Backed::Unseen)
    }

    /// By which leaves the memory came, where it was set aside; and what became of them.
    pub(super) fn leaves(&self) -> Vec<String> {
        let [giant, large, small, short] =
            [Backed::Giant, Backed::Large, Backed::Small, Backed::Short]
                .map(|of| self.counts.get(of));
        let mut lines = Vec::new();
        if self.wish.backing != Backing::Thp {
            let name = self.wish.backing.name();
            let [giant, large, small] = [giant, large, small].map(bytes);
            let mut line = format!("{giant} by 1 GiB, {large} by 2 MiB, {small} by 4 KiB");
            if short > 0 {
                let short = bytes(short);
                line.push_str(&format!(
                    "; {name} had {short} too little for all programs: ordinary memory"
                ));
            }
            lines.push(format!("  {name:<11} {line}"));
        }
        for (of, what) in [
            (Backed::Demoted, "leaf became ordinary memory, as a change was smaller"),
            (
                Backed::Unsplit,
                "change refused that was smaller than a leaf: nothing holds writers here",
            ),
            (Backed::Bounded, "change refused, as the process has too many mappings"),
            (Backed::Lost, "child of fork ended for want of memory"),
            (Backed::Torn, "fork while others could write, as nothing holds writers here"),
            (Backed::Left, "page of the heap left in children, as a thread was taking it over"),
        ] {
            let count = self.counts.get(of);
            if count > 0 {
                lines.push(format!("  {:<11} {}", "changes", plural(count, what)));
            }
        }
        let copied = self.counts.get(Backed::Copied);
        if copied > 0 {
            lines.push(format!("  {:<11} {} copied for children", "fork", bytes(copied)));
        }
        lines
    }

    /// The same for a program to read.
    pub(super) fn leaves_json(&self) -> Value {
        let of = |backed| Value::from(self.counts.get(backed));
        json!({
            "reserved": {
                "1g": of(Backed::Giant), "2m": of(Backed::Large), "4k": of(Backed::Small),
                "short": of(Backed::Short),
            },
            "present": {
                "1g": of(Backed::GiantSeen), "2m": of(Backed::LargeSeen),
                "4k": of(Backed::BaseSeen),
            },
            "demoted": of(Backed::Demoted),
            "unsplit": of(Backed::Unsplit),
            "bounded": of(Backed::Bounded),
            "fork": {
                "copied": of(Backed::Copied), "lost": of(Backed::Lost), "torn": of(Backed::Torn),
                "left": of(Backed::Left),
            },
        })
    }

    /// What must be so.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        let mut leaves = |name, expected, observed, size: &str, says: &str| {
            let (expected, observed) = (self.counts.get(expected), self.counts.get(observed));
            if expected > 0 {
                let says = format!("{} {says}", plural(expected, size));
                claims.push(Claim { name, says, expected, observed });
            }
        };
        let says = "contiguous, virtual = physical modulo the leaf";
        let (seen, right) = (Backed::GiantSeen, Backed::GiantRight);
        leaves("leaves-1g", seen, right, "leaf of 1 GiB", says);
        let (seen, right) = (Backed::LargeSeen, Backed::LargeRight);
        leaves("leaves-2m", seen, right, "leaf of 2 MiB", says);
        let (seen, right) = (Backed::FramesSeen, Backed::FramesRight);
        leaves("frames", seen, right, "page", "at base + offset");
        // What malloc lacked, and what moved, is not asked for by `mmap`.
        let others = [Reason::HeapFull, Reason::Aligned, Reason::Break, Reason::Moved];
        let fallbacks = Reason::ALL.into_iter().filter(|reason| !others.contains(reason));
        let fallbacks: u64 = fallbacks.map(|reason| self.counts.fallback(reason).1).sum();
        let observed = self.counts.get(Backed::Believed);
        let says = format!("{} of maps = served + fallbacks", bytes(observed));
        let expected = self.count(Counted::MapBytes) + fallbacks;
        claims.push(Claim { name: "map-bytes", says, expected, observed });
        claims
    }

    /// The same in a line.
    pub(super) fn witness(&self) -> String {
        let claims = self.claims();
        let broken = claims.iter().filter(|claim| !claim.holds()).map(|claim| {
            format!(
                "DOES NOT HOLD: {}: expected {}, observed {}",
                claim.name, claim.expected, claim.observed
            )
        });
        let right = claims.iter().filter(|claim| claim.holds()).map(|claim| claim.says.clone());
        let mut said: Vec<_> = broken.chain(right).collect();
        if self.unseen() > 0 {
            said.push(
                "leaves not proven (frames are for root to see, by Linux 6.7 or newer)".to_owned(),
            );
        }
        format!("  witness     {}", said.join("; "))
    }
}

/// A sentence of one thing, of several: its first word is the thing.
fn plural(count: u64, what: &str) -> String {
    let (thing, rest) = what.split_once(' ').unwrap_or((what, ""));
    let things = match (count, thing) {
        (1, thing) => thing.to_owned(),
        (_, "leaf") => "leaves".to_owned(),
        (_, "child") => "children".to_owned(),
        (_, thing) => format!("{thing}s"),
    };
    format!("{count} {things} {rest}")
}
