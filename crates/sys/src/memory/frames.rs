//! The page frames behind addresses of any process.
//!
//! The one idea: `/proc/PID/pagemap` has eight bytes for each page, of which the kernel shows the
//! frame to whoever has `CAP_SYS_ADMIN`, and 0 to others.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use super::pagemap::{FRAME, PRESENT};

const PAGE: u64 = 4096;
/// Entries that are read at a time.
const ENTRIES: u64 = 4096;

/// Hands on each present page of a range with its frame, in rising order.
///
/// # Errors
/// When there is no such process, or it may not be looked at.
pub fn frames(pid: u32, range: Range<u64>, found: &mut dyn FnMut(u64, u64)) -> io::Result<()> {
    let pagemap = File::open(format!("/proc/{pid}/pagemap"))?;
    let mut at = range.start / PAGE;
    let end = range.end.div_ceil(PAGE);
    while at < end {
        let count = ENTRIES.min(end - at);
        let mut bytes = vec![0; usize::try_from(count * 8).map_err(io::Error::other)?];
        pagemap.read_exact_at(&mut bytes, at * 8)?;
        for (page, word) in (at..).zip(bytes.as_chunks().0) {
            let word = u64::from_ne_bytes(*word);
            if word & PRESENT != 0 {
                found(page * PAGE, word & FRAME);
            }
        }
        at += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::rights::is_root;

    #[test]
    fn pages_of_this_process_have_frames_of_their_own() {
        let memory = std::hint::black_box(vec![7_u8; 9 << 12]);
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let mut pages = Vec::new();
        crate::counted(8, || {
            pages.clear();
            frames(std::process::id(), start..start + 8 * PAGE, &mut |address, frame| {
                pages.push((address, frame));
            })
            .unwrap();
            pages.len()
        });
        assert_eq!(pages[3].0, start + 3 * PAGE);
        assert_eq!(pages.iter().all(|(_, frame)| *frame != 0), is_root());
        assert!(frames(u32::MAX, 0..PAGE, &mut |_, _| ()).is_err());
    }
}
