//! What a memory must do, written as simply as possible: the model of all tests, and of `verify`.
//!
//! The one idea: everything is done byte by byte, in the order of the addresses, and a page is
//! nothing but the fact that one of its bytes was stored. [`Quick`] keeps the bytes in pages,
//! for long traces; the tests hold it to one that keeps them in a tree, one by one.
//!
//! Nothing here is fast, and nothing here is shared with the memories that it judges.

use std::fmt::Debug;

use rustc_hash::FxHashMap;

use crate::{
    Absent, Edge, Fault, Kind, Memory, Policy,
    memory::{PAGE_BYTES, page_of},
};

/// Single bytes, and which pages exist.
pub trait Bytes: Debug + Default + Clone + Send {
    /// The byte at `addr`; `None` when its page does not exist.
    fn get(&self, addr: u64) -> Option<u8>;

    /// Sets the byte at `addr`; from then on its page exists.
    fn set(&mut self, addr: u64, value: u8);

    /// How many pages exist.
    fn pages(&self) -> u64;
}

/// Bytes in pages.
#[derive(Debug, Clone, Default)]
pub struct BytePages(FxHashMap<u64, Vec<u8>>);

/// Where `addr` is in its page.
fn offset_of(addr: u64) -> usize {
    usize::try_from(addr % PAGE_BYTES as u64).expect("below the bytes of a page")
}

impl Bytes for BytePages {
    fn get(&self, addr: u64) -> Option<u8> {
        self.0.get(&page_of(addr)).map(|page| page[offset_of(addr)])
    }

    fn set(&mut self, addr: u64, value: u8) {
        let page = self.0.entry(page_of(addr)).or_insert_with(|| vec![0; PAGE_BYTES]);
        page[offset_of(addr)] = value;
    }

    fn pages(&self) -> u64 {
        self.0.len() as u64
    }
}

/// A memory that does one byte after the other.
#[derive(Debug, Clone)]
pub struct Oracle<B> {
    bytes: B,
    policy: Policy,
}

/// The model of `verify`.
pub type Quick = Oracle<BytePages>;

impl<B: Bytes> Oracle<B> {
    /// An empty memory.
    pub fn new(policy: &Policy) -> Self {
        Self { bytes: B::default(), policy: *policy }
    }

    fn get(&self, addr: u64, kind: Kind) -> Result<u8, Fault> {
        match (self.bytes.get(addr), self.policy.absent) {
            (Some(byte), _) => Ok(byte),
            (None, Absent::Zero | Absent::Make) => Ok(0),
            (None, Absent::Fault) => Err(Fault::Absent { addr, kind }),
        }
    }

    fn get_all<const N: usize>(&self, addr: u64, kind: Kind) -> Result<[u8; N], Fault> {
        self.check_range(addr, N as u64, kind)?;
        let mut value = [0; N];
        for (at, byte) in (0..).zip(&mut value) {
            *byte = self.get(addr.wrapping_add(at), kind)?;
        }
        Ok(value)
    }

    /// Refuses a store of so many bytes when the pages that it would make are too many.
    fn room(&self, addr: u64, bytes: u64) -> Result<(), Fault> {
        let limit = self.policy.page_limit;
        let mut pages = self.bytes.pages();
        let mut seen = None;
        for addr in (0..bytes).map(|at| addr.wrapping_add(at)) {
            if seen != Some(page_of(addr)) && self.bytes.get(addr).is_none() {
                pages += 1;
                if pages * PAGE_BYTES as u64 > limit {
                    return Err(Fault::PageLimit { addr, limit });
                }
            }
            seen = Some(page_of(addr));
        }
        Ok(())
    }
}

impl<B: Bytes> Memory for Oracle<B> {
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.get_all(addr, Kind::Load)
    }

    fn fetch<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.get_all(addr, Kind::Fetch)
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        self.check_range(addr, N as u64, Kind::Store)?;
        self.room(addr, N as u64)?;
        for (at, byte) in (0..).zip(value) {
            self.bytes.set(addr.wrapping_add(at), byte);
        }
        Ok(())
    }

    fn check_range(&self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        let room = u128::from(u64::MAX) + 1 - u128::from(addr);
        if self.policy.edge == Edge::Trap && u128::from(bytes) > room {
            return Err(Fault::OutOfRange { addr, bytes, kind });
        }
        Ok(())
    }
}
