#![expect(unsafe_code, reason = "a buffer for bulk stores is raw memory")]
//! Buffers for the machine's own limits: clearing, copying and reading as fast as it can.

use std::ops::Range;

use crate::{
    Area, SysError, arch,
    loops::Stride,
    memory::{Advice, Backing, Layout, word_at},
};

/// How a buffer is cleared or copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// `rep stosb`, `rep movsb`.
    String,
    /// Non-temporal vector stores.
    NonTemporal,
}

/// Present, writable memory, on huge pages where the kernel gives them.
#[derive(Debug)]
pub struct Buffer(Area);

impl Area {
    /// Clears the bytes `from..to` of the windows laid end to end; both are multiples of 256.
    ///
    /// # Panics
    /// When the bytes are not all in the area.
    pub fn clear(&self, from: usize, to: usize, store: Store) {
        let layout = self.layout();
        assert!(from <= to && to <= layout.bytes(), "clearing outside the area");
        assert!(
            from.is_multiple_of(256) && to.is_multiple_of(256),
            "{from}..{to} in blocks of 256"
        );
        let base = self.base_ptr();
        let mut at = from;
        while at < to {
            let end = to.min((at / layout.window + 1) * layout.window);
            let start = base.wrapping_add(layout.offset(at));
            match store {
                // SAFETY: the bytes are one window's (asserted), which is mapped writable.
                Store::String => unsafe { arch::clear_string(start, end - at) },
                // SAFETY: as above; a window starts at a page, and `at` at a block in it.
                Store::NonTemporal => unsafe { arch::clear_nt(start, end - at) },
            }
            at = end;
        }
    }
}

impl Buffer {
    /// Maps and touches `bytes`, a multiple of 256.
    ///
    /// # Errors
    /// When memory is short.
    pub fn new(bytes: usize) -> Result<Self, SysError> {
        assert!(bytes > 0 && bytes.is_multiple_of(256), "{bytes} is no multiple of 256");
        let layout = Layout::contiguous(bytes.next_multiple_of(4096));
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20)?;
        // Where there are no transparent huge pages the buffer has base pages, and its TLB misses.
        let _ = area.advise(Advice::HugePage);
        area.touch(0, layout.bytes(), Stride { step: 4096, bytes: 8 });
        Ok(Self(area))
    }

    /// Clears these bytes, multiples of 256, `passes` times.
    pub fn clear(&mut self, part: Range<usize>, passes: u64, store: Store) {
        for _ in 0..passes {
            self.0.clear(part.start, part.end, store);
        }
    }

    /// Copies these bytes from another buffer, `passes` times.
    pub fn copy_from(&mut self, other: &Self, part: Range<usize>, passes: u64, store: Store) {
        let (to, from) = (self.at(&part), other.at(&part));
        let bytes = part.len();
        for _ in 0..passes {
            match store {
                // SAFETY: the bytes are the buffers' (asserted), two mappings, at multiples of 256.
                Store::String => unsafe { arch::copy_string(to, from, bytes) },
                // SAFETY: as above.
                Store::NonTemporal => unsafe { arch::copy_nt(to, from, bytes) },
            }
        }
    }

    /// Loads these bytes, `passes` times.
    pub fn read(&self, part: Range<usize>, passes: u64) {
        let at = self.at(&part);
        for _ in 0..passes {
            // SAFETY: the bytes are the buffer's (asserted), at a multiple of 256.
            unsafe { arch::read_all(at, part.len()) };
        }
    }

    /// Where a part of the buffer begins.
    fn at(&self, part: &Range<usize>) -> *mut u8 {
        assert!(
            part.end <= self.0.layout().bytes() && part.start <= part.end,
            "outside the buffer"
        );
        assert!(part.start.is_multiple_of(256), "{part:?} in blocks of 256");
        self.0.base_ptr().wrapping_add(part.start)
    }

    /// The word at a byte offset, for verification outside the clock.
    pub fn word(&self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.0.layout().bytes(), "outside the buffer");
        // SAFETY: inside the mapping (asserted), aligned, and written only by this thread.
        unsafe { word_at(self.0.base_ptr(), at).read_volatile() }
    }

    /// Sets the word at a byte offset.
    pub fn set_word(&mut self, at: usize, value: u64) {
        assert!(at.is_multiple_of(8) && at + 8 <= self.0.layout().bytes(), "outside the buffer");
        // SAFETY: inside the mapping (asserted), aligned, and exclusively borrowed.
        unsafe { word_at(self.0.base_ptr(), at).write_volatile(value) };
    }
}

/// `getppid`, the cheapest system call that no library answers by itself.
#[inline(never)]
pub fn cheapest_syscalls(count: u64) {
    for _ in 0..count {
        // SAFETY: getppid takes nothing and cannot fail.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_clears_and_copies_every_byte() {
        let stores: &[Store] = if arch::HAS_STRING_STORE {
            &[Store::String, Store::NonTemporal]
        } else {
            &[Store::NonTemporal]
        };
        for store in stores {
            for (from, bytes) in [(0, 256), (0, 4096), (256, 4096 + 768)] {
                let (mut a, mut b) = (Buffer::new(8192).unwrap(), Buffer::new(8192).unwrap());
                for at in (0..8192).step_by(8) {
                    a.set_word(at, at as u64 + 1);
                    b.set_word(at, 7);
                }
                b.copy_from(&a, from..from + bytes, 1, *store);
                a.clear(from..from + bytes, 2, *store);
                for at in (0..8192).step_by(8) {
                    let inside = (from..from + bytes).contains(&at);
                    assert_eq!(a.word(at), if inside { 0 } else { at as u64 + 1 }, "{store:?}");
                    assert_eq!(b.word(at), if inside { at as u64 + 1 } else { 7 }, "{store:?}");
                }
                a.read(from..from + bytes, 1);
            }
        }
    }
}
