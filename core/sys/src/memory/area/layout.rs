//! How the bytes of an area lie in address space: windows, and the way from one to the other.
//!
//! It is arithmetic and touches no memory.

/// How the bytes of an area lie in address space: equal windows at equal distances.
///
/// One window is an ordinary mapping. Many windows of 1 MiB every 2 MiB keep the kernel from
/// serving a range with a PMD-sized page when a smaller folio is under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one window.
    pub window: usize,
    /// Distance between the starts of two windows.
    pub stride: usize,
    /// Number of windows.
    pub windows: usize,
}

impl Layout {
    /// One window.
    pub fn contiguous(bytes: usize) -> Self {
        Self { window: bytes, stride: bytes, windows: 1 }
    }

    /// A window for each of `shares` equal parts, each at a boundary of `align`, with at least
    /// `align` of unmapped addresses between two.
    pub fn shared(bytes: usize, shares: usize, align: usize) -> Self {
        let window = bytes / shares;
        Self { window, stride: (window + align).next_multiple_of(align), windows: shares }
    }

    /// Windows of 1 MiB, one in each 2 MiB; the last may not be shorter, so `bytes` must divide.
    pub fn windowed(bytes: usize) -> Self {
        let window = bytes.min(1 << 20);
        Self { window, stride: 2 << 20, windows: bytes.div_ceil(window) }
    }

    /// Bytes of all windows together.
    pub fn bytes(&self) -> usize {
        self.window * self.windows
    }

    /// Bytes from the start of the first window to the end of the last.
    pub(crate) fn extent(&self) -> usize {
        self.stride * (self.windows - 1) + self.window
    }

    /// The reverse of [`Layout::offset`]: which byte of the windows laid end to end is at `offset`.
    pub fn position(&self, offset: usize) -> usize {
        offset / self.stride * self.window + offset % self.stride
    }

    /// Distance from the base of the byte `at` of the windows laid end to end.
    pub fn offset(&self, at: usize) -> usize {
        at / self.window * self.stride + at % self.window
    }
}
