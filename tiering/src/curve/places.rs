//! A placement: which pages lie on the slow node, and how they get there.
//!
//! The one idea: a page is on the slow node where the share's count rises with it, so that any
//! stretch of memory has the share that all of it has. Pages are moved by the kernel's own call,
//! those alone that lie elsewhere, and asked for afterwards.

use pagelab_bench::Error;
use pagelab_sys::{
    Area, SysError,
    memory::{move_pages, nodes_of},
};

const PAGE: usize = 4096;
/// Pages of a call.
const BATCH: usize = 4096;

/// Whether a page is on the slow node, with so many percent there.
fn is_slow(page: u64, percent: u64) -> bool {
    (page + 1) * percent / 100 > page * percent / 100
}

/// Pages on the slow node, of so many.
pub(super) fn slow_pages(pages: u32, percent: u64) -> u64 {
    u64::from(pages) * percent / 100
}

fn addresses(area: &Area) -> Vec<usize> {
    (0..area.layout().bytes() / PAGE).map(|page| area.base() + page * PAGE).collect()
}

fn nodes(area: &Area) -> Result<Vec<i32>, SysError> {
    let addresses = addresses(area);
    let mut nodes = vec![-1; addresses.len()];
    for (addresses, nodes) in addresses.chunks(BATCH).zip(nodes.chunks_mut(BATCH)) {
        nodes_of(addresses, nodes)?;
    }
    Ok(nodes)
}

/// Moves pages so that this share is on the slow node; nothing where there is none.
///
/// # Errors
/// When the kernel does not move, or says not where pages are.
pub(super) fn lay(
    area: &Area,
    near: usize,
    slow: Option<usize>,
    percent: u64,
) -> Result<(), Error> {
    let Some(slow) = slow else { return Ok(()) };
    let number = |node: usize| i32::try_from(node).unwrap_or(-1);
    let (near, slow) = (number(near), number(slow));
    let mut wrong: Vec<(u64, i32)> = Vec::new();
    for ((page, node), address) in (0_u64..).zip(nodes(area)?).zip(addresses(area)) {
        let wanted = if is_slow(page, percent) { slow } else { near };
        if node != wanted {
            wrong.push((address as u64, wanted));
        }
    }
    for some in wrong.chunks(BATCH) {
        let (addresses, nodes): (Vec<u64>, Vec<i32>) = some.iter().copied().unzip();
        let mut status = vec![0; some.len()];
        move_pages(std::process::id(), &addresses, &nodes, &mut status)
            .map_err(|why| Error::Case(format!("move_pages: {why}")))?;
    }
    Ok(())
}

/// Pages on the slow node now; 0 where there is none.
///
/// # Errors
/// When the kernel was built without NUMA.
pub(super) fn on_slow(area: &Area, slow: Option<usize>) -> Result<u64, Error> {
    let Some(slow) = slow.and_then(|slow| i32::try_from(slow).ok()) else { return Ok(0) };
    Ok(nodes(area)?.into_iter().filter(|node| *node == slow).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_has_the_share_that_all_of_it_has() {
        for percent in (0..=100).step_by(10) {
            let slow: Vec<bool> = (0..1024).map(|page| is_slow(page, percent)).collect();
            let count = slow.iter().filter(|slow| **slow).count() as u64;
            assert_eq!(count, slow_pages(1024, percent), "{percent} %");
            for stretch in slow.chunks_exact(10) {
                let count = stretch.iter().filter(|slow| **slow).count() as u64;
                assert_eq!(count, percent / 10, "{percent} %: {stretch:?}");
            }
        }
    }
}
