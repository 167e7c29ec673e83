#![expect(unsafe_code, reason = "throws away what programs gave back; the rules are in lib.rs")]
//! The back ends: what lies behind the addresses of a segment, and what follows from it.
//!
//! The one idea: a back end lays what leaves it has, the largest first; the rest is ordinary
//! memory. From then on an address says what is behind it ([`Ground`]), and the few things that a
//! segment does to its memory are done as that kind of memory needs it:
//!
//! | | ordinary | a pool | the module |
//! | --- | --- | --- | --- |
//! | given back | the kernel takes it | stays, and is zeroed here | stays; the module forgets it |
//! | an edge within a leaf | the kernel splits it | becomes ordinary | the module splits it |
//! | a fork | copied on a write | copied, before it returns | the same |

use std::ops::Range;

use pagelab_interpose::segment::{Backed, Backing, Wish};
use pagelab_interpose::{Errno, kernel};

use crate::{
    area::{self, Area, Grows, Lay},
    count,
    ground::Ground,
    module, orders, pool,
};

/// The table.
const BACK_ENDS: [(Backing, Lay); 3] = [
    (Backing::Thp, |_, range, _, _| Ok(range.clone())),
    (Backing::Hugetlb, pool::lay),
    (Backing::Module, module::lay),
];

/// Lays what the back end has; the rest of the addresses.
pub(crate) fn lay(
    area: &Area,
    range: &Range<usize>,
    wish: &Wish,
    grows: Grows,
) -> Result<Range<usize>, Errno> {
    let row = BACK_ENDS.iter().find(|(backing, _)| *backing == wish.backing);
    let Some((backing, lay)) = row else { return Ok(range.clone()) };
    let rest = lay(area, range, wish, grows)?;
    if *backing != Backing::Thp {
        count::add(Backed::Small, rest.len());
    }
    Ok(rest)
}

/// Throws away what is in some pages: they are zero when they are read again.
pub(crate) fn zero(area: &Area, part: &Range<usize>) -> Result<(), Errno> {
    area.runs(part, |ground, run| match ground {
        Ground::Ordinary => {
            // SAFETY: whoever gives memory back needs nothing of it.
            unsafe { kernel::advise(run.start, run.len(), libc::MADV_DONTNEED) }
        }
        Ground::Pool(_) => {
            pool::zero(run);
            Ok(())
        }
        Ground::Module => {
            module::forget(area, run);
            Ok(())
        }
    })
}

/// Makes some pages what they were when they were reserved, and zero.
pub(crate) fn renew(area: &Area, part: &Range<usize>) -> Result<(), Errno> {
    area.runs(part, |ground, run| match ground {
        Ground::Ordinary => area::ordinary(run, orders::leaf()),
        // Nobody changes one that has not become ordinary before.
        Ground::Pool(_) => {
            pool::zero(run);
            Ok(())
        }
        Ground::Module => module::renew(area, run),
    })
}

/// Makes sure that the kernel can do whatever a program asks of some pages.
pub(crate) fn loosen(area: &Area, part: &Range<usize>) -> Result<(), Errno> {
    if area.has_pool() {
        area.runs(part, |ground, run| match ground {
            Ground::Pool(leaf) => pool::demote(area, leaf, run),
            Ground::Ordinary | Ground::Module => Ok(()),
        })?;
    } else if area.file().is_some() {
        // The module takes a leaf out that is split, with what is in it.
        area.mark(part);
    }
    Ok(())
}
