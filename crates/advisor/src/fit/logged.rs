//! The log that a preloaded library writes: a file in our memory.
//!
//! The one idea: it has no name that could be left behind; whoever runs under the same user opens
//! it by our own descriptor.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

use pagelab_sys::{
    memory::memfd,
    process::preload::log::{ENTRIES, ENTRY_WORDS, Entry, LOG, LOG_BYTES, Module, Site},
};

use crate::explain::symbols::Symbols;

/// Bytes of an entry.
const ENTRY_BYTES: usize = ENTRY_WORDS * 8;
/// Callers that are told of a site.
const TOLD: usize = 4;

/// A log for one run.
#[derive(Debug)]
pub(crate) struct Log(File);

/// What was noted in a run.
#[derive(Debug, Clone, Default)]
pub struct Logged {
    /// The entries, as they came.
    pub entries: Vec<Entry>,
    /// Entries for which there was no room.
    pub lost: u64,
}

impl Log {
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd::create("pagelab-log").map_err(io::Error::other)?;
        file.set_len(LOG_BYTES as u64)?;
        Ok(Self(file))
    }

    /// The variable that leads to it.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        (LOG, format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// What was noted; what cannot be read was not.
    pub(crate) fn read(&self) -> Logged {
        let mut bytes = [0; ENTRY_BYTES];
        let mut words = |nth: usize| {
            let read = self.0.read_exact_at(&mut bytes, (nth * ENTRY_BYTES) as u64);
            let mut words = [0; ENTRY_WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_ne_bytes(*bytes);
            }
            read.is_ok().then_some(words)
        };
        let count = words(0).map_or(0, |words| words[0]);
        let kept = usize::try_from(count).unwrap_or(ENTRIES).min(ENTRIES);
        let entries = (1..=kept).filter_map(|nth| Entry::of(&words(nth)?)).collect();
        Logged { entries, lost: count.saturating_sub(kept as u64) }
    }
}

impl Logged {
    /// The files of code that were met.
    fn modules(&self) -> HashMap<Module, String> {
        let module = |entry: &Entry| {
            let Entry::Module { id, path } = entry else { return None };
            let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
            Some((*id, String::from_utf8_lossy(path).into_owned()))
        };
        self.entries.iter().filter_map(module).collect()
    }

    /// Sites by name: `fill+0x1c (prog) < work < main`.
    pub fn names<'l>(&self, sites: impl Iterator<Item = &'l Site>) -> Vec<String> {
        let modules = self.modules();
        let mut symbols = Symbols::default();
        let mut name = |site: &Site| {
            let told = site.frames().iter().take(TOLD).enumerate().map(|(nth, (module, at))| {
                let path = modules.get(module).map_or("", String::as_str);
                let whole = symbols.name_at(path, *at);
                match whole.split_once("+0x") {
                    // Of callers the function says enough.
                    Some((function, rest)) if nth > 0 && rest.contains('(') => function.to_owned(),
                    _ => whole,
                }
            });
            told.collect::<Vec<_>>().join(" < ")
        };
        sites.map(&mut name).collect()
    }
}
