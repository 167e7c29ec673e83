//! The model of all tests: single bytes in a tree.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_emu::{
    memory::page_of,
    oracle::{Bytes, Oracle},
};

/// Bytes in a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByteTree {
    bytes: BTreeMap<u64, u8>,
    pages: BTreeSet<u64>,
}

impl Bytes for ByteTree {
    fn get(&self, addr: u64) -> Option<u8> {
        let stored = self.bytes.get(&addr).copied();
        stored.or_else(|| self.pages.contains(&page_of(addr)).then_some(0))
    }

    fn set(&mut self, addr: u64, value: u8) {
        self.bytes.insert(addr, value);
        self.pages.insert(page_of(addr));
    }

    fn pages(&self) -> u64 {
        self.pages.len() as u64
    }
}

/// A memory over them.
pub(crate) type Naive = Oracle<ByteTree>;
