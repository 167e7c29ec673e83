//! Which memory a program asked for, and where: the log that a preloaded library writes.
//!
//! The one idea: memory is known again in another run of the same program by who asked for it: the
//! callers of the call, each a file and an address in it, which no randomization of addresses
//! changes; and by how large it is, as a power of two. That is a *unit*; its [`key`](Site::key) is
//! what both sides call it. An entry is whole once its first word is not 0: who is killed while
//! writing one leaves nothing to read.

use std::str;

/// The variable that names the file of the log.
pub const LOG: &str = "PAGELAB_PRELOAD_LOG";
/// The variable that lists units, by key, in hexadecimal with commas.
pub const UNITS: &str = "PAGELAB_PRELOAD_UNITS";
/// Units that can be listed.
pub const UNITS_MAX: usize = 256;
/// Callers that tell sites apart.
pub const FRAMES: usize = 6;
/// Words of an entry.
pub const ENTRY_WORDS: usize = 24;
/// Entries of a log behind the first, whose first word counts them; further ones are only counted.
pub const ENTRIES: usize = 1 << 16;
/// Bytes of the file.
pub const LOG_BYTES: usize = (ENTRIES + 1) * ENTRY_WORDS * size_of::<u64>();

/// The words of an entry.
pub type Words = [u64; ENTRY_WORDS];

/// How memory was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// By `mmap`.
    Map,
    /// Of malloc or one of its kin.
    Malloc,
}

/// A file of code that was met, by the hash of its path.
pub type Module = u64;

/// Callers, the innermost first: the file of each and the address that it has there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    frames: [(Module, u64); FRAMES],
    count: usize,
}

impl Site {
    /// Adds a caller; whether there is room for more.
    pub fn push(&mut self, module: Module, at: u64) -> bool {
        if let Some(frame) = self.frames.get_mut(self.count) {
            *frame = (module, at);
            self.count += 1;
        }
        self.count < FRAMES
    }

    /// The callers.
    pub fn frames(&self) -> &[(Module, u64)] {
        &self.frames[..self.count.min(FRAMES)]
    }

    /// What memory of so many bytes is called that was asked for here: 52 bits, which every reader
    /// of JSON holds.
    pub fn key(&self, way: Way, bytes: u64) -> u64 {
        let begun = mix(mix(0, way as u64), class(bytes).into());
        let all = self.frames().iter().fold(begun, |key, (module, at)| mix(mix(key, *module), *at));
        all >> 12
    }
}

/// How large memory is, as a power of two.
pub const fn class(bytes: u64) -> u32 {
    (bytes | 1).ilog2()
}

/// One more word of a hash.
const fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// What a file is called by, from its path.
pub fn module(path: &[u8]) -> Module {
    path.iter().fold(0, |hash, byte| mix(hash, (*byte).into()))
}

/// What was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A process has become another program.
    Program {
        /// When, nanoseconds of `CLOCK_MONOTONIC_RAW`.
        time_ns: u64,
        /// Which process.
        pid: u64,
    },
    /// A file of code.
    Module {
        /// What it is called by.
        id: Module,
        /// Where it lies; what is longer is cut.
        path: [u8; PATH_BYTES],
    },
    /// Memory was had.
    Begin {
        /// When.
        time_ns: u64,
        /// By which process.
        pid: u64,
        /// Where it begins.
        address: u64,
        /// Its bytes.
        bytes: u64,
        /// How.
        way: Way,
        /// By whom.
        site: Site,
    },
    /// Memory that begins there was given back.
    End {
        /// When.
        time_ns: u64,
        /// By which process.
        pid: u64,
        /// Where it began.
        address: u64,
    },
}

/// Bytes of a path.
pub const PATH_BYTES: usize = (ENTRY_WORDS - 2) * size_of::<u64>();

const PROGRAM: u64 = 1;
const MODULE: u64 = 2;
const MAPPED: u64 = 3;
const ALLOCATED: u64 = 4;
const END: u64 = 5;

impl Entry {
    /// Its words.
    pub fn words(&self) -> Words {
        let mut words = [0; ENTRY_WORDS];
        match self {
            Self::Program { time_ns, pid } => {
                words[..3].copy_from_slice(&[PROGRAM, *time_ns, *pid]);
            }
            Self::Module { id, path } => {
                words[..2].copy_from_slice(&[MODULE, *id]);
                for (word, bytes) in words[2..].iter_mut().zip(path.as_chunks().0) {
                    *word = u64::from_ne_bytes(*bytes);
                }
            }
            Self::Begin { time_ns, pid, address, bytes, way, site } => {
                let what = if *way == Way::Map { MAPPED } else { ALLOCATED };
                let count = site.frames().len() as u64;
                words[..6].copy_from_slice(&[what, *time_ns, *pid, *address, *bytes, count]);
                for (pair, (module, at)) in words[6..].chunks_mut(2).zip(site.frames()) {
                    pair.copy_from_slice(&[*module, *at]);
                }
            }
            Self::End { time_ns, pid, address } => {
                words[..4].copy_from_slice(&[END, *time_ns, *pid, *address]);
            }
        }
        words
    }

    /// The entry of some words; `None` where it is not whole.
    pub fn of(words: &Words) -> Option<Self> {
        let [what, time_ns, pid, address, bytes, count, ..] = *words;
        Some(match what {
            PROGRAM => Self::Program { time_ns, pid },
            MODULE => {
                let mut path = [0; PATH_BYTES];
                for (bytes, word) in path.as_chunks_mut().0.iter_mut().zip(&words[2..]) {
                    *bytes = word.to_ne_bytes();
                }
                Self::Module { id: time_ns, path }
            }
            MAPPED | ALLOCATED => {
                let mut site = Site::default();
                let frames = words[6..].as_chunks().0.iter();
                for [module, at] in frames.take(usize::try_from(count).unwrap_or(0)) {
                    site.push(*module, *at);
                }
                let way = if what == MAPPED { Way::Map } else { Way::Malloc };
                Self::Begin { time_ns, pid, address, bytes, way, site }
            }
            END => Self::End { time_ns, pid, address },
            _ => return None,
        })
    }
}

/// The keys of a list; what is no key is left out.
pub fn listed(text: &[u8]) -> impl Iterator<Item = u64> {
    let key = |word: &[u8]| u64::from_str_radix(str::from_utf8(word).ok()?, 16).ok();
    text.split(|byte| *byte == b',').filter_map(key).take(UNITS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn site(frames: &[(u64, u64)]) -> Site {
        let mut site = Site::default();
        for (module, at) in frames {
            site.push(*module, *at);
        }
        site
    }

    #[test]
    fn a_unit_is_told_apart_by_way_size_and_callers() {
        let here = site(&[(1, 2), (3, 4)]);
        let key = here.key(Way::Malloc, 5 << 20);
        assert_eq!(key, here.key(Way::Malloc, 7 << 20), "the same power of two");
        assert_ne!(key, here.key(Way::Malloc, 9 << 20));
        assert_ne!(key, here.key(Way::Map, 5 << 20));
        assert_ne!(key, site(&[(1, 2), (3, 5)]).key(Way::Malloc, 5 << 20));
        assert_ne!(key, site(&[(1, 2)]).key(Way::Malloc, 5 << 20));
        assert!(key < 1 << 52);
    }

    #[test]
    fn a_list_of_keys_is_read_as_far_as_it_is_one() {
        assert_eq!(listed(b"1f,,x,ff").collect::<Vec<_>>(), [0x1f, 0xff]);
        assert_eq!(listed(b"").count(), 0);
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(
            [time_ns, pid, address, bytes, id] in any::<[u64; 5]>(),
            frames in proptest::collection::vec(any::<(u64, u64)>(), 0..9),
            path in any::<[u8; 32]>(),
            mapped: bool,
        ) {
            let way = if mapped { Way::Map } else { Way::Malloc };
            let mut whole = [0; PATH_BYTES];
            whole[..32].copy_from_slice(&path);
            for entry in [
                Entry::Program { time_ns, pid },
                Entry::Module { id, path: whole },
                Entry::Begin { time_ns, pid, address, bytes, way, site: site(&frames) },
                Entry::End { time_ns, pid, address },
            ] {
                prop_assert_eq!(Entry::of(&entry.words()), Some(entry));
            }
            prop_assert_eq!(Entry::of(&[0; ENTRY_WORDS]), None);
        }
    }
}
