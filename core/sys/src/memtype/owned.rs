//! A segment of the module: memory of one program that is faulted by adding an offset.
//!
//! The one idea: it is the file that owns the frames, and an [`Area`](crate::Area) of that file is
//! a mapping of them; what was mapped can be asked for, and what is in it forgotten, so that the
//! next touch faults and finds zeroes.

use std::{fs::File, os::fd::AsRawFd};

use super::device::{self, Device, DeviceError, Leaf, Request};
use crate::memory::Backing;

/// The frames of a segment, kept until it is dropped and nothing maps them.
#[derive(Debug)]
pub struct Segment(File);

impl Device {
    /// Allocates a segment, which nothing maps yet.
    ///
    /// # Errors
    /// When the module refuses.
    pub fn segment(self, request: &Request) -> Result<Segment, DeviceError> {
        self.claim(&Request { segment: true, eager: false, ..*request }).map(Segment)
    }
}

impl Segment {
    /// What an area is backed by that begins so many bytes into the segment.
    pub fn backing(&self, from: usize) -> Backing {
        Backing::File { fd: self.0.as_raw_fd(), shared: true, from }
    }

    /// What the page table says of an address where it is mapped.
    ///
    /// # Errors
    /// When nothing of it is mapped there.
    pub fn leaf(&self, address: usize) -> Result<Leaf, DeviceError> {
        device::query(&self.0, address)
    }

    /// Forgets what is in a part: leaves go, and the next touches find zeroes.
    ///
    /// # Errors
    /// When the part is not of whole pages of the segment.
    pub fn forget(&self, offset: u64, bytes: u64) -> Result<(), DeviceError> {
        device::forget(&self.0, offset, bytes)
    }
}
