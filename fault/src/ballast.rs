//! `host=cold`: memory that the host still backs, taken out of the way.
//!
//! The one idea: free page reporting hands back blocks of 2 MiB and more, and puts them at the
//! tail of the kernel's free lists. What was freed lately or lies in smaller pieces is warm and
//! comes first, gigabytes of it on a machine that has been busy. So memory is taken, piece by
//! piece, until a piece turns out to be cold, and kept while the case runs: what is mapped next
//! comes from the tail as well.

use pagelab_sys::{Area, SysError, machine::Topology, time::monotonic_raw_ns};

use pagelab_mappings::{Populate, Space, populate::EACH};

/// A piece is cold when it takes this many times as long as a warm one: the fault of a host was
/// measured to cost four to twenty-six times that of the guest.
const COLDER: u64 = 3;
/// Bytes that are timed together.
const CHUNK: usize = 2 << 20;
/// The part of the memory that may be taken is one in so many.
const SHARE: u64 = 2;

/// Memory that is held so that it is not handed out.
#[derive(Debug, Default)]
pub(super) struct Ballast {
    held: Vec<Area>,
    /// Nanoseconds of a warm chunk, when it is known.
    warm_ns: Option<u64>,
}

impl Ballast {
    /// Takes warm memory until there is none, or until half of what was available is held.
    ///
    /// # Errors
    /// When the machine refuses a mapping.
    pub(super) fn take(&mut self, space: &Space) -> Result<(), SysError> {
        let piece = || -> Result<(Area, u64), SysError> {
            let area = Populate::Touch.mapped(space, None)?.area;
            let took_ns = typical_chunk(&area);
            Ok((area, took_ns))
        };
        let warm_ns = if let Some(known) = self.warm_ns {
            known
        } else {
            // What was freed a moment ago comes again, and is warm.
            drop(piece()?);
            piece()?.1.min(piece()?.1)
        };
        self.warm_ns = Some(warm_ns);
        let held = self.held.len() as u64 * space.bytes();
        let available = Topology::machine().memory_budget().bytes + held;
        for _ in 0..(available / SHARE).saturating_sub(held) / space.bytes() {
            let (area, took_ns) = piece()?;
            self.held.push(area);
            if took_ns > warm_ns * COLDER {
                break;
            }
        }
        Ok(())
    }
}

/// Makes an area present; the median nanoseconds of its chunks, which a lone stall does not move.
fn typical_chunk(area: &Area) -> u64 {
    let mut times: Vec<u64> = (0..area.layout().bytes())
        .step_by(CHUNK)
        .map(|from| {
            let begun = monotonic_raw_ns();
            let to = (from + CHUNK).min(area.layout().bytes());
            area.touch(from, to, EACH);
            monotonic_raw_ns() - begun
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
