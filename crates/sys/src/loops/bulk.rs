#![expect(unsafe_code, reason = "a buffer for bulk stores is raw memory")]
//! Buffers for the machine's own limits: clearing, copying and reading as fast as it can.

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

    /// Clears the first `bytes`, `passes` times.
    pub fn clear(&mut self, bytes: usize, passes: u64, store: Store) {
        for _ in 0..passes {
            self.0.clear(0, bytes, store);
        }
    }

    /// Copies the first `bytes` from another buffer, `passes` times.
    pub fn copy_from(&mut self, other: &Self, bytes: usize, passes: u64, store: Store) {
        assert!(bytes <= self.0.layout().bytes(), "outside the buffer");
        assert!(bytes <= other.0.layout().bytes(), "outside the other buffer");
        let (to, from) = (self.0.base_ptr(), other.0.base_ptr());
        for _ in 0..passes {
            match store {
                // SAFETY: the bytes are the buffers' (asserted), two mappings at a page each.
                Store::String => unsafe { arch::copy_string(to, from, bytes) },
                // SAFETY: as above.
                Store::NonTemporal => unsafe { arch::copy_nt(to, from, bytes) },
            }
        }
    }

    /// Loads the first `bytes`, `passes` times.
    pub fn read(&self, bytes: usize, passes: u64) {
        assert!(bytes <= self.0.layout().bytes(), "outside the buffer");
        for _ in 0..passes {
            // SAFETY: the bytes are the buffer's (asserted), which is mapped at a page.
            unsafe { arch::read_all(self.0.base_ptr(), bytes) };
        }
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
            for bytes in [256, 4096, 4096 + 768] {
                let (mut a, mut b) = (Buffer::new(8192).unwrap(), Buffer::new(8192).unwrap());
                for at in (0..8192).step_by(8) {
                    a.set_word(at, at as u64 + 1);
                    b.set_word(at, 7);
                }
                b.copy_from(&a, bytes, 1, *store);
                a.clear(bytes, 2, *store);
                for at in (0..8192).step_by(8) {
                    let inside = at < bytes;
                    assert_eq!(a.word(at), if inside { 0 } else { at as u64 + 1 }, "{store:?}");
                    assert_eq!(b.word(at), if inside { at as u64 + 1 } else { 7 }, "{store:?}");
                }
                a.read(bytes, 1);
            }
        }
    }
}
