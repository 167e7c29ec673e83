//! Visitors that encode what they see in the raw format.

use std::{
    convert::Infallible,
    io::{self, Write},
};

use crate::{
    op::Visit,
    raw::{HEAD_BYTES, LOAD, STORE},
};

/// Appends records to bytes in memory.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Appends to these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// What there is.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What there is, for good.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets what there is.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The part of a record that loads and stores share.
    #[inline(always)]
    fn head(&mut self, op: u8, width: u8, addr: u64) {
        let mut head = [op, width, 0, 0, 0, 0, 0, 0, 0, 0];
        head[HEAD_BYTES - 8..].copy_from_slice(&addr.to_le_bytes());
        self.bytes.extend_from_slice(&head);
    }
}

/// The second byte of a record.
const fn width<const N: usize>() -> u8 {
    assert!(N == 1 || N == 2 || N == 4 || N == 8);
    1 << N.trailing_zeros()
}

impl Visit for Encoder {
    type Stop = Infallible;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.head(LOAD, const { width::<N>() }, addr);
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Infallible> {
        self.head(STORE, const { width::<N>() }, addr);
        self.bytes.extend_from_slice(&value);
        Ok(())
    }
}

/// Writes records, some thousand at a time; [`Writer::finish`] writes the last ones.
#[derive(Debug)]
pub struct Writer<W> {
    encoder: Encoder,
    to: W,
}

/// Bytes that are written at once.
const PIECE_BYTES: usize = 1 << 18;

impl<W: Write> Writer<W> {
    /// Writes records to this.
    pub fn new(to: W) -> Self {
        Self { encoder: Encoder::new(Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8)), to }
    }

    /// Writes what is left, and returns what it wrote to.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(self.encoder.bytes())?;
        Ok(self.to)
    }

    #[inline(always)]
    fn written(&mut self) -> io::Result<()> {
        if self.encoder.bytes().len() < PIECE_BYTES {
            return Ok(());
        }
        self.write_piece()
    }

    #[cold]
    fn write_piece(&mut self) -> io::Result<()> {
        self.to.write_all(self.encoder.bytes())?;
        self.encoder.clear();
        Ok(())
    }
}

impl<W: Write> Visit for Writer<W> {
    type Stop = io::Error;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> io::Result<()> {
        match self.encoder.load::<N>(addr) {
            Ok(()) => self.written(),
            Err(never) => match never {},
        }
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> io::Result<()> {
        match self.encoder.store(addr, value) {
            Ok(()) => self.written(),
            Err(never) => match never {},
        }
    }
}
