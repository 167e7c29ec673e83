//! The three compressions, by pure Rust libraries: how they are told apart, and read.

use std::{
    fmt,
    io::{self, BufRead, Read},
    path::Path,
};

/// Largest window or dictionary that a file may ask for: that of `xz -9` and `zstd -22` twice over.
pub const WINDOW_BYTES_MAX: u64 = 128 << 20;
/// What the decoder of xz needs beside its dictionary, in KiB, amply.
#[cfg(feature = "xz")]
const XZ_EXTRA_KIB: u64 = 1 << 10;

/// How a trace is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one member or several.
    Gz,
    /// xz, one stream or several.
    Xz,
    /// Zstandard, one frame or several.
    Zst,
}

/// Bytes that are enough for [`Compression::of_magic`].
pub(super) const MAGIC_BYTES: usize = 6;

impl Compression {
    /// What the first bytes of a file say.
    pub fn of_magic(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gz,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            // A frame, or a frame to skip.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zst,
            _ => Self::None,
        }
    }

    /// What the name of a file asks for: `.gz`, `.xz`, `.zst`, or none.
    pub fn of_path(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("gz") => Self::Gz,
            Some("xz") => Self::Xz,
            Some("zst") => Self::Zst,
            _ => Self::None,
        }
    }

    /// Decompresses; nothing is read before the first read.
    ///
    /// # Errors
    /// When this build cannot.
    #[cfg_attr(
        all(feature = "gz", feature = "xz", feature = "zst"),
        expect(clippy::unnecessary_wraps, reason = "a leaner build lacks some")
    )]
    pub(super) fn reader(
        self,
        packed: impl BufRead + Send + 'static,
    ) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => Box::new(packed),
            #[cfg(feature = "gz")]
            Self::Gz => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            #[cfg(feature = "xz")]
            Self::Xz => {
                let kib = WINDOW_BYTES_MAX / 1024 + XZ_EXTRA_KIB;
                let kib = u32::try_from(kib).unwrap_or(u32::MAX);
                Box::new(lzma_rust2::XzReader::new_mem_limit(packed, true, kib))
            }
            #[cfg(feature = "zst")]
            Self::Zst => Box::new(super::zst::Frames::new(packed, WINDOW_BYTES_MAX)),
            #[cfg(not(all(feature = "gz", feature = "xz", feature = "zst")))]
            missing => return Err(missing.unsupported()),
        })
    }

    /// That this build was made without it.
    #[cfg(not(all(feature = "gz", feature = "xz", feature = "zst")))]
    pub(super) fn unsupported(self) -> io::Error {
        let why = format!("this build has no {self}: pagelab-trace needs its feature `{self}`");
        io::Error::new(io::ErrorKind::Unsupported, why)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Gz => "gz",
            Self::Xz => "xz",
            Self::Zst => "zst",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ask_for_a_compression() {
        for (name, compression) in [
            ("a.bin", Compression::None),
            ("a", Compression::None),
            (".gz", Compression::None),
            ("a.bin.gz", Compression::Gz),
            ("a.XZ", Compression::Xz),
            ("dir.gz/a.zst", Compression::Zst),
        ] {
            assert_eq!(Compression::of_path(Path::new(name)), compression, "{name}");
        }
    }

    #[test]
    fn a_record_is_no_magic() {
        for op in [1, 2] {
            for width in [1, 2, 4, 8] {
                assert_eq!(Compression::of_magic(&[op, width, 0, 0]), Compression::None);
            }
        }
        assert_eq!(Compression::of_magic(&[0x1f]), Compression::None);
    }
}
