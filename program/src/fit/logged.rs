//! The log that a preloaded library writes: a file in our memory.
//!
//! The one idea: an entry says by which files of code memory was asked for, which symbols name.

use std::{collections::HashMap, io};

use pagelab_interpose::preload::log::{ENTRIES, ENTRY_WORDS, Entry, LOG, LOG_BYTES, Module, Site};
use pagelab_sys::process::CounterPage;

use crate::explain::symbols::Symbols;

/// Callers that are told of a site.
const TOLD: usize = 4;

/// A log for one run.
#[derive(Debug)]
pub(crate) struct Log(CounterPage);

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
        CounterPage::new("pagelab-log", LOG, LOG_BYTES).map(Self)
    }

    /// The variable that leads to it.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        self.0.variable()
    }

    /// What was noted; what cannot be read was not.
    pub(crate) fn read(&self) -> Logged {
        let [count] = self.0.first();
        let kept = usize::try_from(count).unwrap_or(ENTRIES).min(ENTRIES);
        let words = self.0.words(ENTRY_WORDS, kept * ENTRY_WORDS).unwrap_or_default();
        let entries = words.as_chunks().0.iter().filter_map(Entry::of).collect();
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
