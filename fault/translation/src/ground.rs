//! What a chain lies on: pages of one size, or a segment, and what proves it.
//!
//! The one idea: a segment is memory that lies together as its addresses do, so that a chain over
//! it shows what contiguity alone changes; everything else of the arm is as with pages.

use pagelab_bench::{Error, Need, Needed, PageSize, Witness, needs::Memory, words};
use pagelab_sys::{
    counts::Counters,
    loops::{bulk::Store, chase::Chain},
    memory::{Advice, Residency, Scanner},
    memtype::Segment,
};

use pagelab_mappings::{Asked, Lie, Populate, Space, page_bytes, populate::touch_all};
use pagelab_segments::fault::{Backed, Found, Frames, Place};

words! {
    /// What the memory under test is.
    pub(crate) enum Backing {
        /// A mapping of its own.
        Anon = "anon",
        /// A segment of ours that was given back, cleared and taken again.
        Segment = "segment",
        /// A segment of the kernel module.
        Module = "module",
    }
}

/// What a chain lies on.
#[derive(Debug)]
pub(crate) enum Ground {
    Pages {
        space: Space,
        /// What the kernel counted while the memory was populated.
        moved: Counters,
    },
    Segment(Place),
    Module {
        segment: Segment,
        place: Place,
    },
}

/// What the page table showed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen {
    Pages(Residency),
    Segment(Found),
    Module(Frames),
}

/// Where the segment of a case lies.
pub(crate) fn place(asked: &Asked) -> Place {
    let pooled = matches!(asked.page, PageSize::Hugetlb(_));
    let backed = if pooled { Backed::Hugetlb } else { Backed::Thp };
    let bytes = usize::try_from(asked.size).expect("addresses have 64 bits");
    let place = Place::of_segment(bytes, page_bytes(asked.page), 0, backed);
    let is_lie = asked.lie == Lie::ThpOff;
    Place { advice: if is_lie { Advice::NoHugePage } else { place.advice }, ..place }
}

/// What the memory needs of the host, beside what the case takes at its peak.
pub(crate) fn needs_of(asked: &Asked, backing: Backing, footprint: u64) -> Vec<Needed> {
    let place = || place(asked);
    match backing {
        Backing::Anon => asked.needs(footprint),
        Backing::Segment => {
            let mut needs = vec![Memory(footprint).needed()];
            needs.extend(place().needs(asked));
            needs
        }
        Backing::Module => {
            let [module, frames] = place().needs_of_module();
            vec![Memory(footprint).needed(), module, frames]
        }
    }
}

impl Ground {
    /// Makes the memory present, and lays a chain through it.
    ///
    /// # Errors
    /// When the machine refuses.
    pub(crate) fn lay(
        asked: &Asked,
        backing: Backing,
        places: &[usize],
        together: usize,
    ) -> Result<(Self, Chain), Error> {
        let place = || place(asked);
        let (ground, area) = match backing {
            Backing::Anon => {
                let folios = || Counters::read(asked.is_folio().then(|| asked.page.bytes() / 1024));
                let (space, before) = (asked.space(1), folios());
                let area = Populate::Touch.mapped(&space, None)?.area;
                touch_all(&area);
                (Self::Pages { space, moved: folios().since(&before) }, area)
            }
            Backing::Segment => {
                let place = place();
                let area = place.mapped()?;
                touch_all(&area);
                area.clear(0, place.bytes, Store::NonTemporal);
                (Self::Segment(place), area)
            }
            Backing::Module => {
                let place = place();
                let segment = place.of_module()?;
                let area = Place { backing: segment.backing(0), ..place }.opened()?;
                touch_all(&area);
                (Self::Module { segment, place }, area)
            }
        };
        Ok((ground, Chain::lay(area, places, together)))
    }

    /// Looks at the pages of the chain.
    ///
    /// # Errors
    /// When the page table cannot be read.
    pub(crate) fn look(&self, chain: &Chain, scanner: &Scanner) -> Result<Seen, Error> {
        let residency = || chain.residency(scanner);
        Ok(match self {
            Self::Pages { .. } => Seen::Pages(residency()?),
            Self::Segment(place) => {
                Seen::Segment(Found::of(&residency()?, &chain.ranges(), place)?)
            }
            Self::Module { segment, place } => {
                Seen::Module(Frames::of(segment, &chain.ranges(), place)?)
            }
        })
    }

    /// Claims what it must look like.
    pub(crate) fn testify(&self, seen: Seen, witness: &mut Witness) {
        match (self, seen) {
            (Self::Pages { space, moved }, Seen::Pages(found)) => {
                let expected = space.expectation(space.once());
                expected.testify(&found, witness);
                expected.testify_folios(space.page, moved, witness);
            }
            (Self::Segment(place), Seen::Segment(found)) => found.testify(place, witness),
            (Self::Module { .. }, Seen::Module(frames)) => frames.testify(witness),
            _ => unreachable!("a ground sees what it is"),
        }
    }
}
