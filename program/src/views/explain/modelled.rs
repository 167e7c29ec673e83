//! What page walks of a captured program come to, in a TLB that is modelled.
//!
//! The one idea: the record says after how many other pages each page was used again; a fully
//! associative LRU TLB of `n` entries walks where those were `n` or more. A real TLB is neither, so
//! its walks lie between those of one twice and of one half as large. What a walk costs is as of a
//! program that was looked at: the prices, and the ends, are those of [`super::priced`].

use pagelab_record::{
    units::whole,
    walks::{Captured, Pages, Uses},
};

use super::priced::{By, ENTRIES, LARGE, Model, Place, Seen, Size, Sum, Walks};
use pagelab_report::{Quantity, Unit};

const BASE: u64 = 4096;

/// Entries of the last TLB for pages of a size, and whether the processor names it. Where it names
/// none for the size, a page has an entry of those for base pages.
fn last(levels: &dyn Fn(u64) -> Vec<u64>, bytes: u64) -> (u64, bool) {
    const LEAST: u64 = whole(ENTRIES);
    let named = levels(bytes);
    match (named.get(1..).and_then(<[u64]>::last), bytes) {
        (Some(entries), _) => (*entries, true),
        (None, BASE) => (LEAST, false),
        (None, LARGE) if !named.is_empty() => (named[0], true),
        (None, _) => last(levels, BASE),
    }
}

/// The misses of some places in a TLB of so many entries.
fn misses(pages: &Pages, places: std::ops::Range<usize>, entries: u64) -> f64 {
    places.map(|place| pages.misses(place, entries).all as f64).sum()
}

fn size(pages: &Pages, data: usize, levels: &dyn Fn(u64) -> Vec<u64>) -> Size {
    let (entries, _) = last(levels, pages.bytes);
    let of = |entries: u64| misses(pages, 0..data, entries);
    let value = of(entries);
    let walks = Quantity {
        low: of(entries.saturating_mul(2)),
        high: of(entries / 2),
        coverage: 0.0,
        processes: 1,
        ..Quantity::exact(value, Unit::Count)
    };
    let first = levels(pages.bytes).first().copied().filter(|first| *first < entries);
    let near = first.map(|first| (first, of(first) - value));
    let fetches = misses(pages, data..data + 1, entries);
    Size { bytes: pages.bytes, entries, near, walks, fetches }
}

/// What a capture comes to; `levels` are the entries of TLBs for pages of so many bytes, the
/// nearest to the processor first.
pub(super) fn seen(
    captured: &Captured,
    has_children: bool,
    levels: &dyn Fn(u64) -> Vec<u64>,
    busy_ns: f64,
    walks: &Walks,
) -> Seen {
    // The last place is what was executed.
    let data = captured.places.len().saturating_sub(1);
    let (entries, is_named) = last(levels, BASE);
    let mut sums = vec![Sum::default(); data];
    let base = captured.pages(BASE);
    for (distance, uses) in base.iter().flat_map(|pages| &pages.again) {
        let within = |bound: u64, count: f64| if *distance >= bound { count } else { 0.0 };
        for (sum, Uses { all, .. }) in sums.iter_mut().zip(uses) {
            let bounds = [entries.saturating_mul(2), entries, entries / 2];
            let rates = bounds.map(|bound| within(bound, *all as f64));
            if rates[2] > 0.0 {
                sum.add(rates, walks, [*distance as f64; 3]);
            }
        }
    }
    let Captured { end, ops, .. } = *captured;
    let sizes = captured.sizes.iter().map(|pages| size(pages, data, levels)).collect();
    let model = Model { end, ops, is_named, has_children, sizes };
    let by = By::Model(model);
    let mut seen = Seen::priced(by, &captured.places[..data], &sums, busy_ns, walks);
    for place in &mut seen.places {
        let at = captured.places.iter().position(|name| *name == place.name).unwrap_or(data);
        larger(place, at, captured, levels);
        place.cost = place.cost.map(|cost| {
            // Whatever the TLB, walks took no longer than the program.
            let high = cost.high.min(busy_ns.max(cost.value));
            Quantity { high, ..cost }
        });
    }
    seen.places.retain(|place| place.walks.high > 0.0);
    seen
}

/// What remains of the walks of a place over larger pages, where such could lie.
fn larger(place: &mut Place, at: usize, captured: &Captured, levels: &dyn Fn(u64) -> Vec<u64>) {
    let walks = |pages: &Pages| pages.misses(at, last(levels, pages.bytes).0);
    let Some(base) = captured.pages(BASE).map(walks).filter(|base| base.all > 0) else { return };
    place.whole = base.whole as f64 / base.all as f64;
    let larger = captured.sizes.iter().filter(|pages| pages.bytes > BASE);
    let left = |pages: &Pages| {
        let part = walks(pages).whole as f64 / (base.whole as f64).max(1.0);
        (pages.bytes, part.min(1.0))
    };
    place.left = larger.map(left).collect();
}

#[cfg(test)]
mod tests {
    use pagelab_record::walks::End;

    use super::*;

    fn uses(all: u64, whole: u64) -> Uses {
        Uses { all, whole }
    }

    /// Walks of two places at some distances, and fetches.
    fn captured() -> Captured {
        let pages = |bytes, rows: &[(u64, [u64; 3])]| Pages {
            bytes,
            first: vec![uses(0, 0); 3],
            again: rows
                .iter()
                .map(|(d, n)| (*d, vec![uses(n[0], n[0] / 2), uses(n[1], 0), uses(n[2], 0)]))
                .collect(),
        };
        Captured {
            end: End::Whole,
            ops: 1_000_000,
            places: ["anonymous", "stack", "instructions"].map(str::to_owned).to_vec(),
            sizes: vec![
                pages(
                    4096,
                    &[(0, [9, 9, 9]), (1024, [40, 0, 0]), (2048, [100, 0, 7]), (4096, [60, 0, 0])],
                ),
                pages(65536, &[(2048, [80, 0, 0])]),
                pages(LARGE, &[(8, [160, 0, 0])]),
            ],
        }
    }

    fn levels(bytes: u64) -> Vec<u64> {
        match bytes {
            BASE => vec![64, 2048],
            LARGE => vec![32],
            _ => Vec::new(),
        }
    }

    #[test]
    fn walks_lie_between_those_of_a_tlb_twice_and_of_one_half_as_large() {
        let seen = seen(&captured(), false, &levels, 1e9, &Walks::default());
        assert_eq!(seen.places.len(), 1, "the stack walked nowhere");
        let place = &seen.places[0];
        let Quantity { low, value, high, .. } = place.walks;
        assert_eq!(format!("{low} {value} {high}"), "60 160 200");
        assert!(place.cost.is_none() && seen.cost().is_none(), "nothing has a price");
        let By::Model(model) = &seen.by else { panic!("{seen:?}") };
        let entries: Vec<u64> = model.sizes.iter().map(|size| size.entries).collect();
        assert_eq!(entries, [2048, 2048, 32], "of 64k the entries for base pages");
        assert_eq!(model.sizes[0].near, Some((64, 40.0)));
        assert!((model.sizes[0].fetches - 7.0).abs() < 1e-9 && model.is_named);
    }

    #[test]
    fn larger_pages_take_away_what_no_longer_misses_where_they_could_lie() {
        let seen = seen(&captured(), false, &levels, 1e9, &Walks::default());
        let place = &seen.places[0];
        // Half of its walks lie where a large page could; of them half remain with 64k.
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(place.gone(65536), 0.25) && near(place.gone(LARGE), 0.5), "{place:?}");
        assert!(near(place.gone(16384), 0.25), "what the next size would");
    }

    #[test]
    fn where_the_processor_names_no_second_tlb_one_is_taken_and_it_is_said() {
        let seen = seen(&captured(), true, &|_| Vec::new(), 1e9, &Walks::default());
        let By::Model(model) = &seen.by else { panic!("{seen:?}") };
        assert!(!model.is_named && model.has_children);
        assert!(model.sizes.iter().all(|size| size.entries == 1024 && size.near.is_none()));
    }
}
