//! Replays a trace into a memory, and keeps a digest of what every load returned.
//!
//! The one idea: [`Replay`] is the object-safe door, called once for a piece of trace; behind it
//! everything is generic, so that no operation pays for dispatch.

use pagelab_trace::{Halt, Visit, decode, op::wide, raw};

use crate::{
    Fault, Memory,
    looked::Looked,
    verify::{Checked, Verifier},
};

/// How the raw format is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Decoder {
    /// [`pagelab_trace::decode`]: a 16-bit key and no bounds checks.
    #[default]
    Fast,
    /// [`pagelab_trace::raw`]: bounds-checked slices, as fast-mem does it.
    Safe,
}

/// A memory that a trace is replayed into.
pub trait Replay: Send {
    /// Replays every complete record of `bytes`, which start at `offset` of the trace; returns
    /// the bytes that they take.
    ///
    /// # Errors
    /// At the first record that makes no sense, and at the first access that faults.
    fn replay(&mut self, bytes: &[u8], offset: u64, decoder: Decoder)
    -> Result<usize, Halt<Fault>>;

    /// The same, with every access compared with what a naive memory does; `verifier` keeps it,
    /// and what it found. These loads count in the digest, too.
    ///
    /// # Errors
    /// As [`Replay::replay`].
    fn verify(
        &mut self,
        bytes: &[u8],
        offset: u64,
        decoder: Decoder,
        verifier: &mut Verifier,
    ) -> Result<usize, Halt<Fault>>;

    /// Digest of the values of all loads so far, in order: equal digests mean equal loads.
    fn digest(&self) -> u64;

    /// How often a cache of pages knew one, where the memory counts.
    fn looked(&self) -> Option<Looked>;

    /// Writes bytes, as if the program had been loaded before the trace starts.
    ///
    /// # Errors
    /// As the memory's policies say.
    fn preload(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// The bytes at `addr`, as a load would see them.
    ///
    /// # Errors
    /// As the memory's policies say.
    fn peek(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault>;
}

/// What a digest is before the first load; not 0, so that loads of zeros count too.
const DIGEST_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Adds the value of one load to a digest; the order of loads matters.
#[inline(always)]
pub fn digest_step(digest: u64, value: u64) -> u64 {
    digest.rotate_left(5).wrapping_add(value)
}

/// A [`Memory`] with the digest of its loads.
#[derive(Debug)]
pub struct Player<M> {
    memory: M,
    digest: u64,
}

impl<M: Memory> Player<M> {
    /// A player of this memory.
    pub fn new(memory: M) -> Self {
        Self { memory, digest: DIGEST_SEED }
    }
}

impl<M: Memory> Replay for Player<M> {
    fn replay(
        &mut self,
        bytes: &[u8],
        offset: u64,
        decoder: Decoder,
    ) -> Result<usize, Halt<Fault>> {
        play(&mut self.memory, &mut self.digest, bytes, offset, decoder)
    }

    fn verify(
        &mut self,
        bytes: &[u8],
        offset: u64,
        decoder: Decoder,
        verifier: &mut Verifier,
    ) -> Result<usize, Halt<Fault>> {
        let mut checked = Checked::new(&mut self.memory, verifier);
        play(&mut checked, &mut self.digest, bytes, offset, decoder)
    }

    fn digest(&self) -> u64 {
        self.digest
    }

    fn looked(&self) -> Option<Looked> {
        self.memory.looked()
    }

    fn preload(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.memory.write(addr, bytes)
    }

    fn peek(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(addr, to)
    }
}

#[inline]
fn play<M: Memory>(
    memory: &mut M,
    digest: &mut u64,
    bytes: &[u8],
    offset: u64,
    decoder: Decoder,
) -> Result<usize, Halt<Fault>> {
    // The digest lives outside the memory, so that it can stay in a register.
    let mut pass = Pass { memory, digest: *digest };
    let done = match decoder {
        Decoder::Fast => decode::visit(bytes, offset, &mut pass),
        Decoder::Safe => raw::visit(bytes, offset, &mut pass),
    };
    *digest = pass.digest;
    done
}

/// One call of [`Replay::replay`].
struct Pass<'m, M> {
    memory: &'m mut M,
    digest: u64,
}

impl<M: Memory> Visit for Pass<'_, M> {
    type Stop = Fault;

    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Fault> {
        // The raw format does not tell fetches from loads; halfwords are what fetches are made of.
        let fetches = N == 2;
        let value: [u8; N] =
            if fetches { self.memory.fetch(addr)? } else { self.memory.load(addr)? };
        self.digest = digest_step(self.digest, wide(value));
        Ok(())
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        self.memory.store(addr, value)
    }
}
