//! Whether the pages of a rung came, and where not, why.
//!
//! The one idea: only what was looked at is told. Pages that did not come are an answer with a
//! reason; what nobody could see is neither.

use std::collections::BTreeSet;

use pagelab_record::{
    Clock,
    asked::{Reach, Rung},
    units::display_bytes,
    vocabulary::{knob, tried},
};

use pagelab_report::{At, Entry, Quantity, Time};

/// Whether the pages of a rung came.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Took {
    /// None were to come.
    NotAsked,
    /// They came: a look saw some, or the faults that they spare were not taken.
    Yes,
    /// None; why.
    No(String),
    /// Nobody could see; why.
    Unseen(String),
    /// It took longer than so many nanoseconds, and was ended.
    Late(f64),
    /// It was not run to an end.
    NotRun,
}

impl Took {
    /// Of the rounds in which they came; `spares` says whether it took less than half of the faults
    /// that base pages take.
    pub(super) fn of(rung: &Rung, entry: &Entry, came: &BTreeSet<u32>, spares: bool) -> Self {
        if let Some(ns) = entry.counter(tried::LATE_NS) {
            return Self::Late(ns as f64);
        }
        let rounds = super::values(entry, tried::ELAPSED, Clock::Wall).len();
        if rounds == 0 {
            return Self::NotRun;
        }
        let mut large = super::values(entry, tried::LARGE, Clock::Wall);
        large.retain(|round, _| came.is_empty() || came.contains(round));
        let large = large.into_values().reduce(f64::max);
        let is_base = [tried::PLAIN, tried::AS_SET_UP].contains(&rung.name.as_str());
        if rung.page == 0 && (is_base || entry.counter(tried::STRIPPED).unwrap_or(0) == 0) {
            return Self::NotAsked;
        }
        // What it has of its own accord is not this rung's; a chosen heap needs no call of ours.
        let is_chosen = [tried::FIT, tried::FIT_ALL].contains(&rung.name.as_str());
        let did_nothing = !is_chosen && entry.counter(tried::ASKED) == Some(0);
        match large {
            Some(bytes) if (bytes > 0.0 || spares) && !did_nothing => {
                let is_rare = !came.is_empty() && came.len() * OFTEN < rounds;
                if is_rare { Self::No(rarely(came.len(), rounds)) } else { Self::Yes }
            }
            // What nobody could look at, most of the time, may have had them.
            Some(_) if was_hidden(entry) => Self::Unseen(why_unseen(entry)),
            Some(_) => Self::No(why_not(rung, entry)),
            None => Self::Unseen(why_unseen(entry)),
        }
    }

    /// Whether its time is that of the rung.
    pub(super) fn is_compared(&self) -> bool {
        matches!(self, Self::NotAsked | Self::Yes)
    }
}

/// Pages that came in fewer rounds than one of so many did so by chance: khugepaged came by.
const OFTEN: usize = 4;

fn rarely(came: usize, rounds: usize) -> String {
    format!("its pages came in {came} of {rounds} rounds only, as where khugepaged comes by")
}

/// Whether most looks found a process that may not be looked at: one that ends just then is another
/// matter.
fn was_hidden(entry: &Entry) -> bool {
    let counter = |name: &str| entry.counter(name).unwrap_or(0);
    counter(tried::BLIND) > counter(tried::SAMPLES) / 2
}

fn why_unseen(entry: &Entry) -> String {
    let counter = |name: &str| entry.counter(name).unwrap_or(0);
    let elapsed = At { arm: tried::ARM, series: tried::ELAPSED, time: Time::Elapsed };
    if counter(tried::SAMPLES) == 0 && counter(tried::BLIND) == 0 {
        let took = entry.numbers.get(elapsed, "p50").map(Quantity::display).unwrap_or_default();
        return format!("it ended after {took}, before anybody could look");
    }
    if counter(tried::SAMPLES) == 0 || was_hidden(entry) {
        return "it belongs to another user, or came to: run as root to look at its memory"
            .to_owned();
    }
    "no look could read its page frames: root may, while it runs, and folios are not seen without"
        .to_owned()
}

fn why_not(rung: &Rung, entry: &Entry) -> String {
    let counter = |name: &str| entry.counter(name).unwrap_or(0);
    let page = display_bytes(rung.page as f64);
    if let Some(programs) = entry.counter(tried::PRELOADED)
        && let Some(why) = why_not_preloaded(rung, programs, entry)
    {
        return why;
    }
    if counter(tried::REFUSED) > 0 {
        let why = match counter(tried::REFUSAL) {
            EINVAL => "it cannot collapse such memory (code needs READ_ONLY_THP_FOR_FS, or a file \
                       system with large folios)"
                .to_owned(),
            ENOMEM => "no huge page was free".to_owned(),
            errno => format!("error {errno}"),
        };
        let refused = counter(tried::REFUSED);
        let plural = if refused == 1 { "" } else { "s" };
        return format!("the kernel refused {refused} block{plural}: {why}");
    }
    // No record of a rung that works from outside says otherwise.
    if rung.reach == Reach::Privileged {
        return format!("nothing of {page} was dense while it was looked at");
    }
    if counter(tried::STRIPPED) > 0 {
        return "what is put into its environment did not reach its processes".to_owned();
    }
    let [fallbacks, uncharged] = [tried::FALLBACKS, tried::UNCHARGED].map(counter);
    if fallbacks > 0 {
        let why = if uncharged * 2 > fallbacks {
            format!("a memory cgroup had no room for {page}")
        } else {
            "no free block was found".to_owned()
        };
        return format!("{why}: {fallbacks} faults of the machine fell back");
    }
    if rung.name == knob::KHUGEPAGED {
        let joined = counter(tried::JOINED);
        return format!(
            "khugepaged joined {joined} pages of {page} on this machine meanwhile, and none of \
             them was seen in it: nothing was there to join, or no pass came before the last look"
        );
    }
    if counter(tried::ELIGIBLE) == 0 {
        return format!("no mapping of it may have {page}: they are too small, or it did not ask");
    }
    format!("no block of {page} was whole when it was touched: its mappings grew in small steps")
}

/// The same of a library of ours that was to be in so many of its programs.
fn why_not_preloaded(rung: &Rung, programs: u64, entry: &Entry) -> Option<String> {
    let counter = |name: &str| entry.counter(name).unwrap_or(0);
    let [asked, without] = [tried::ASKED, tried::UNLOADED].map(counter);
    if programs == 0 || (asked == 0 && without > 0) {
        let whose = if programs == 0 { "any".to_owned() } else { format!("{without}") };
        return Some(format!(
            "the library was not among the mappings of {whose} of its processes: their \
             environment was cleaned, or their loader takes none (static, setuid, another C \
             library)"
        ));
    }
    if asked == 0 {
        return Some(
            "it asked for no such memory itself: what malloc maps, and a raw system call, nobody \
             stands between; what is small is left alone"
                .to_owned(),
        );
    }
    let refused = counter(tried::REFUSED);
    let why = match counter(tried::REFUSAL) {
        _ if refused == 0 => return None,
        EPERM => "its user may have no pages of the pool (vm.hugetlb_shm_group)".to_owned(),
        ENOMEM if rung.reach == Reach::Machine => "the pool had not so many pages".to_owned(),
        ENOMEM => "there is no memory for it".to_owned(),
        EINVAL => "it does not know such advice".to_owned(),
        errno => format!("error {errno}"),
    };
    Some(format!("the kernel refused {refused} of {asked} calls: {why}"))
}

/// What the kernel answers to who may not, to what cannot be done, and where it finds no page.
const EPERM: u64 = 1;
const EINVAL: u64 = 22;
const ENOMEM: u64 = 12;
