//! The page frames behind addresses of any process.
//!
//! The one idea: `/proc/PID/pagemap` has eight bytes for each page, of which the kernel shows the
//! frame to whoever has `CAP_SYS_ADMIN`, and 0 to others.

use std::{io, ops::Range};

use super::pagemap::{FRAME, PRESENT, Pagemap};

const PAGE: u64 = 4096;

/// Hands on each present page of a range with its frame, in rising order.
///
/// # Errors
/// When there is no such process, or it may not be looked at.
pub fn frames(pid: u32, range: Range<u64>, found: &mut dyn FnMut(u64, u64)) -> io::Result<()> {
    Pagemap::of(pid)?.entries(range.start..range.end.next_multiple_of(PAGE), |address, entry| {
        if entry & PRESENT != 0 {
            found(address, entry & FRAME);
        }
    })
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
