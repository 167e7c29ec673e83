//! Which event belongs to which touch, and what lies between them.
//!
//! The one idea: touches and events are stamped by one clock, and one thread takes one fault after
//! the other, so an event belongs to the touch whose stamps enclose it. Its address is not needed
//! for that and so can be held against it. A fault is then a list of times, and a stage is the
//! distance of two that follow each other.
//!
//! Pure arithmetic: it opens nothing and knows no kernel.

use pagelab_sys::loops::Stamps;

/// An event as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Its place among the marks of a fault, in the order in which a fault passes them.
    pub(super) mark: usize,
    /// When.
    pub(super) time: u64,
    /// The faulting address, where the event has one.
    pub(super) address: Option<u64>,
}

/// The events of every touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tied {
    /// For each touch the time of each mark: the last one told between its stamps, 0 without.
    pub(super) times: Vec<Vec<u64>>,
    /// For each mark, the events told between stamps.
    pub(super) told: Vec<u64>,
    /// Events between the stamps of one touch with an address in another page.
    pub(super) elsewhere: u64,
    /// Events between no stamps: the thread's own faults before and after the loop.
    pub(super) outside: u64,
}

/// Ties events, which come in order of time, to touches, which are in order too. `pages` holds the
/// address of the page of each touch.
pub(super) fn tie(stamps: &[Stamps], pages: &[u64], events: &[Told], marks: usize) -> Tied {
    let mut tied =
        Tied { times: vec![vec![0; marks]; stamps.len()], told: vec![0; marks], ..Tied::default() };
    let mut touch = 0;
    for event in events {
        while stamps.get(touch).is_some_and(|stamp| stamp.end < event.time) {
            touch += 1;
        }
        match stamps.get(touch) {
            Some(stamp) if stamp.start <= event.time => {
                tied.times[touch][event.mark] = event.time;
                tied.told[event.mark] += 1;
                let is_here = event.address.is_none_or(|address| address & !4095 == pages[touch]);
                tied.elsewhere += u64::from(!is_here);
            }
            _ => tied.outside += 1,
        }
    }
    tied
}

/// The time of each stage of the faults that are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Split {
    /// For each mark that is used, the time from the one before (the first: from the stamp before
    /// the touch); at last the time from the last mark to the stamp after it.
    pub(super) stages: Vec<Vec<u64>>,
    /// From stamp to stamp.
    pub(super) whole: Vec<u64>,
    /// Touches that lack a mark, or passed two in another order.
    pub(super) broken: u64,
}

/// Splits each touch for which `counts` says so at the marks that are used.
pub(super) fn split(
    stamps: &[Stamps],
    tied: &Tied,
    used: &[usize],
    counts: impl Fn(usize) -> bool,
) -> Split {
    let mut split = Split { stages: vec![Vec::new(); used.len() + 1], ..Split::default() };
    for (touch, stamp) in stamps.iter().enumerate().filter(|(touch, _)| counts(*touch)) {
        let mut times = vec![stamp.start];
        times.extend(used.iter().map(|mark| tied.times[touch][*mark]));
        times.push(stamp.end);
        if !times.is_sorted() || times[1..].contains(&0) {
            split.broken += 1;
            continue;
        }
        for (stage, pair) in split.stages.iter_mut().zip(times.windows(2)) {
            stage.push(pair[1] - pair[0]);
        }
        split.whole.push(stamp.end - stamp.start);
    }
    split
}

/// The marks that every touch passed.
pub(super) fn passed_by_all(tied: &Tied) -> Vec<usize> {
    let passed = |mark: &usize| tied.times.iter().all(|times| times[*mark] != 0);
    (0..tied.told.len()).filter(passed).collect()
}

/// The middle of some values, 0 of none.
pub(super) fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGES: [u64; 3] = [0x1000, 0x2000, 0x3000];

    fn stamps() -> Vec<Stamps> {
        [(100, 200), (210, 300), (310, 400)].map(|(start, end)| Stamps { start, end }).to_vec()
    }

    fn told(mark: usize, time: u64, address: u64) -> Told {
        Told { mark, time, address: Some(address) }
    }

    fn honest() -> Vec<Told> {
        PAGES
            .iter()
            .zip(stamps())
            .flat_map(|(page, stamp)| {
                [told(0, stamp.start + 20, *page), told(1, stamp.start + 70, page + 64)]
            })
            .collect()
    }

    #[test]
    fn a_fault_is_split_where_the_kernel_told_of_it() {
        let tied = tie(&stamps(), &PAGES, &honest(), 2);
        assert_eq!((tied.elsewhere, tied.outside, tied.told.as_slice()), (0, 0, &[3, 3][..]));
        assert_eq!(passed_by_all(&tied), [0, 1]);
        let split = split(&stamps(), &tied, &[0, 1], |touch| touch > 0);
        assert_eq!(split.stages, [vec![20, 20], vec![50, 50], vec![20, 20]]);
        assert_eq!((split.whole, split.broken), (vec![90, 90], 0));
    }

    #[test]
    fn an_event_that_is_missing_or_out_of_order_breaks_its_touch() {
        let mut events = honest();
        events.remove(2);
        let tied = tie(&stamps(), &PAGES, &events, 2);
        assert_eq!(split(&stamps(), &tied, &[0, 1], |_| true).broken, 1);
        assert_eq!(passed_by_all(&tied), [1]);
        let mut events = honest();
        events[0].mark = 1;
        events[1].mark = 0;
        let tied = tie(&stamps(), &PAGES, &events, 2);
        assert_eq!(split(&stamps(), &tied, &[0, 1], |_| true).broken, 1);
    }

    #[test]
    fn events_of_other_memory_and_of_other_times_are_noticed() {
        let mut events = honest();
        events[4].address = Some(0x9000);
        events.insert(0, told(0, 50, 0x9000));
        events.insert(3, told(0, 205, 0x9000));
        events.push(told(1, 500, 0x3000));
        let tied = tie(&stamps(), &PAGES, &events, 2);
        assert_eq!((tied.elsewhere, tied.outside), (1, 3));
    }

    #[test]
    fn another_clock_is_noticed() {
        let late: Vec<Told> =
            honest().into_iter().map(|event| Told { time: event.time + 1_000, ..event }).collect();
        let tied = tie(&stamps(), &PAGES, &late, 2);
        assert_eq!((tied.outside, tied.told[0]), (6, 0));
    }

    proptest! {
        #[test]
        fn stages_add_up_to_the_whole(
            steps in prop::collection::vec((1_u64..50, 1_u64..900, 1_u64..900, 1_u64..900), 1..40),
        ) {
            let (mut now, mut stamps, mut events, mut pages) = (0, vec![], vec![], vec![]);
            for (index, (gap, a, b, c)) in steps.iter().enumerate() {
                let (start, page) = (now + gap, index as u64 * 4096);
                now = start + a + b + c;
                stamps.push(Stamps { start, end: now });
                pages.push(page);
                events.extend([told(0, start + a, page), told(1, start + a + b, page)]);
            }
            let tied = tie(&stamps, &pages, &events, 2);
            let split = split(&stamps, &tied, &[0, 1], |_| true);
            prop_assert_eq!((split.broken, tied.outside, tied.elsewhere), (0, 0, 0));
            for (touch, (_, a, b, c)) in steps.iter().enumerate() {
                let found: Vec<u64> = split.stages.iter().map(|stage| stage[touch]).collect();
                prop_assert_eq!(&found, &[*a, *b, *c]);
                prop_assert_eq!(found.iter().sum::<u64>(), split.whole[touch]);
            }
        }
    }
}
