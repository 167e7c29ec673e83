//! Zstandard as streams: the library reads single frames and compresses whole slices.
//!
//! The one idea: a file is a sequence of frames, as the format allows. [`Frames`] reads any number
//! of them, skips those that are to be skipped, and compares checksums; [`FrameWriter`] writes one
//! for every few MiB.

use std::io::{self, BufRead, Read, Write};

use ruzstd::{
    decoding::{
        BlockDecodingStrategy, FrameDecoder,
        errors::{FrameDecoderError, ReadFrameHeaderError},
    },
    encoding::{CompressionLevel, compress_to_vec},
};

/// Uncompressed bytes of a frame that is written.
const FRAME_BYTES: usize = 4 << 20;

/// The decompressed bytes of a sequence of frames.
pub(super) struct Frames<R> {
    packed: R,
    decoder: FrameDecoder,
    /// Whether the decoder is inside a frame.
    inside: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(packed: R, window_bytes_max: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window_bytes_max);
        Self { packed, decoder, inside: false }
    }

    /// Goes to the next frame with content; false at the end of the file.
    fn enter(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.packed) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.packed).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(false)
    }

    /// Ends a frame whose bytes are all gone.
    fn leave(&mut self) -> io::Result<()> {
        self.inside = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(invalid("the checksum of a frame does not match"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.enter()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.packed, one).map_err(invalid)?;
            }
            let read = self.decoder.read(to)?;
            if read > 0 {
                return Ok(read);
            }
            self.leave()?;
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Compresses into frames.
pub(super) struct FrameWriter<W> {
    packed: W,
    frame: Vec<u8>,
    /// Whether there is a frame already: a file has at least one.
    begun: bool,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(packed: W) -> Self {
        Self { packed, frame: Vec::with_capacity(FRAME_BYTES), begun: false }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.begun = true;
        let packed = compress_to_vec(self.frame.as_slice(), CompressionLevel::Fastest);
        self.frame.clear();
        self.packed.write_all(&packed)
    }

    /// Writes what is left, and returns what it wrote to.
    ///
    /// # Errors
    /// When writing fails.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if !self.frame.is_empty() || !self.begun {
            self.end_frame()?;
        }
        Ok(self.packed)
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(FRAME_BYTES - self.frame.len());
        self.frame.extend_from_slice(&bytes[..length]);
        if self.frame.len() == FRAME_BYTES {
            self.end_frame()?;
        }
        Ok(length)
    }

    /// Frames stay whole: what is not a frame yet is written by [`Self::finish`].
    fn flush(&mut self) -> io::Result<()> {
        self.packed.flush()
    }
}
