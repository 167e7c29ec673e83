//! What another process's page table has at some addresses.
//!
//! The one idea: `PAGEMAP_SCAN` (Linux 6.7) tells the zero page, anonymous memory and pages of
//! files apart for whoever may read the process's `/proc/PID/pagemap`, which needs no privilege
//! for processes of one's own.

use std::collections::{HashMap, hash_map::Entry};

use linux_raw_sys::general as uapi;
use pagelab_interpose::scan::{NOWHERE, Question, regions};

use super::pagemap::Pagemap;

const PAGE: u64 = 4096;
/// Pages that are looked at together lie no farther apart than so many bytes.
const GAP: u64 = 16 * PAGE;

/// What a present page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The zero page, of either size.
    Zero,
    /// Anonymous memory.
    Anonymous,
    /// A page of a file or of shared memory.
    File,
}

/// A present page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// What it is.
    pub page: Page,
    /// Whether one entry of the page table maps 2 MiB or more.
    pub huge: bool,
}

/// The page tables of processes.
#[derive(Debug, Default)]
pub struct States {
    tables: HashMap<u32, Pagemap>,
}

impl States {
    /// Hands on the state of each of these pages of a process that is present; addresses rise.
    /// Nothing where the process has ended, may not be looked at, or the kernel is older than 6.7.
    pub fn of(&mut self, pid: u32, addresses: &[u64], mut found: impl FnMut(u64, State)) {
        let Some(table) = self.table(pid) else { return };
        let mut rest = addresses;
        while let Some(first) = rest.first() {
            let near = rest.windows(2).take_while(|pair| pair[1] - pair[0] <= GAP).count() + 1;
            let (part, others) = rest.split_at(near);
            rest = others;
            let (start, end) = (first / PAGE * PAGE, part[near - 1] / PAGE * PAGE + PAGE);
            let question = Question {
                bits: u64::from(uapi::PAGE_IS_FILE | uapi::PAGE_IS_PFNZERO | uapi::PAGE_IS_HUGE),
                flags: 0,
            };
            let mut part = part.iter().peekable();
            let told = regions(&table.0, start..end, question, &mut [NOWHERE; 256], |region| {
                while part.next_if(|address| **address < region.start).is_some() {}
                while let Some(address) = part.next_if(|address| **address < region.end) {
                    found(*address, state(region.categories));
                }
            });
            if told.is_err() {
                self.tables.remove(&pid);
                return;
            }
        }
    }

    /// Forgets a process that ended, or became another program.
    pub fn end(&mut self, pid: u32) {
        self.tables.remove(&pid);
    }

    fn table(&mut self, pid: u32) -> Option<&Pagemap> {
        match self.tables.entry(pid) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) => Some(new.insert(Pagemap::of(pid).ok()?)),
        }
    }
}

fn state(bits: u64) -> State {
    let has = |bit: u32| bits & u64::from(bit) != 0;
    let page = match () {
        () if has(uapi::PAGE_IS_PFNZERO) => Page::Zero,
        () if has(uapi::PAGE_IS_FILE) => Page::File,
        () => Page::Anonymous,
    };
    State { page, huge: has(uapi::PAGE_IS_HUGE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn what_a_process_touched_is_told_apart() {
        // Fresh memory of the kernel, untouched.
        let mut memory = std::hint::black_box(vec![0_u8; 64 << 20]);
        let at = |page: usize| std::ptr::from_ref(&memory[page * 4096]) as u64;
        let [loaded, stored, untouched] = [at(100), at(200), at(300)];
        let code = states_of as *const () as u64;
        std::hint::black_box(memory[100 * 4096]);
        memory[200 * 4096] = 1;
        std::hint::black_box(&memory);
        let mut all = [loaded, stored, untouched, code];
        all.sort_unstable();
        let found = states_of(&all);
        if found.is_empty() {
            return eprintln!("skipped: no PAGEMAP_SCAN; to run it: Linux 6.7");
        }
        let page = |address: u64| found.get(&address).map(|state| state.page);
        assert_eq!([page(loaded), page(stored)], [Some(Page::Zero), Some(Page::Anonymous)]);
        assert_eq!([page(untouched), page(code)], [None, Some(Page::File)]);
    }

    fn states_of(addresses: &[u64]) -> HashMap<u64, State> {
        let mut found = HashMap::new();
        let mut states = States::default();
        states.of(std::process::id(), addresses, |address, state| {
            found.insert(address, state);
        });
        states.of(u32::MAX, addresses, |_, _| panic!("no such process"));
        found
    }
}
