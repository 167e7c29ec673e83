//! The yard as whoever watches has it: which programs stand in it, and what they said.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::atomic::{Ordering, fence},
};

use pagelab_interpose::heat::{
    ENTRY_WORDS, HEAT, HEAT_BYTES, Head, Kind, Of, RING, RING_AT, ROW_WORDS, ROWS, ROWS_AT,
};
use pagelab_sys::process::CounterPage;

/// An entry that is not whole while so many later ones are there is nobody's any more.
const LATE: u64 = 4096;

const PAGE: u64 = 4096;

/// A program that was loaded with the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// The process.
    pub pid: u32,
    /// Its row: another program of the same process has another.
    pub row: usize,
    /// Its descriptor of faults, or why it has none.
    pub descriptor: Result<i32, i32>,
    /// The last sweep that it has done.
    pub swept: u64,
    /// Places that it leaves out.
    pub left_out: u64,
}

/// What was said of pages of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Ranges that were looked at.
    pub looked: Vec<Range<u64>>,
    /// Pages that were accessed, by address.
    pub seen: Vec<u64>,
}

/// The yard, as whoever watches has it.
#[derive(Debug)]
pub struct Yard {
    file: CounterPage,
    taken: u64,
    asked: u64,
    said: BTreeMap<u32, Said>,
}

impl Yard {
    /// A new one, of programs that look for loads in memory of so many bytes and more, if anywhere.
    ///
    /// # Errors
    /// When there can be no file in memory.
    pub fn new(sampled: Option<u64>) -> io::Result<Self> {
        let file = CounterPage::new("pagelab-heat", HEAT, HEAT_BYTES)?;
        let yard = Self { file, taken: 0, asked: 0, said: BTreeMap::new() };
        yard.set(Head::Sampled, sampled.unwrap_or(0))?;
        Ok(yard)
    }

    /// The variable that leads to it, for as long as it is there.
    pub fn variable(&self) -> (&'static str, String) {
        self.file.variable()
    }

    /// The last program of each process.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn programs(&self) -> io::Result<Vec<Program>> {
        let count = usize::try_from(self.head(Head::Programs)?).unwrap_or(ROWS).min(ROWS);
        let words = self.file.words(ROWS_AT, count * ROW_WORDS)?;
        let mut last: BTreeMap<u32, Program> = BTreeMap::new();
        for (row, words) in words.chunks_exact(ROW_WORDS).enumerate() {
            let of = |which: Of| words.get(which as usize).copied().unwrap_or(0);
            let Some(pid) = u32::try_from(of(Of::Pid)).ok().filter(|pid| *pid != 0) else {
                continue;
            };
            let number = |word: u64| i32::try_from(word).unwrap_or(i32::MAX);
            let descriptor = match of(Of::Descriptor) {
                0 => Err(number(of(Of::Errno))),
                above => Ok(number(above - 1)),
            };
            let (swept, left_out) = (of(Of::Swept), of(Of::LeftOut));
            last.insert(pid, Program { pid, row, descriptor, swept, left_out });
        }
        Ok(last.into_values().collect())
    }

    /// Registers a mapping of the program of a row, unless that makes a call now which would fail
    /// on it; `None` where it does.
    ///
    /// # Errors
    /// When the yard cannot be read or written.
    pub fn between_calls<T>(
        &self,
        row: usize,
        register: impl FnOnce() -> T,
    ) -> io::Result<Option<T>> {
        let word = |of: Of| ROWS_AT + row * ROW_WORDS + of as usize;
        let registering = |is: u64| self.file.set(word(Of::Registering), &[is]);
        registering(1)?;
        // The program counts its call first and looks at this word then: one of both is seen.
        fence(Ordering::SeqCst);
        let calls = self.file.words(word(Of::Calls), 1)?[0];
        let done = (calls == 0).then(register);
        registering(0)?;
        Ok(done)
    }

    /// Programs that found no row.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn without_row(&self) -> io::Result<u64> {
        Ok(self.head(Head::Programs)?.saturating_sub(ROWS as u64))
    }

    /// Entries that there was no room for.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn lost(&self) -> io::Result<u64> {
        self.head(Head::Lost)
    }

    /// Asks all programs for one more sweep; its number.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn ask(&mut self) -> io::Result<u64> {
        self.asked += 1;
        self.set(Head::Asked, self.asked)?;
        Ok(self.asked)
    }

    /// Takes what was said of a process since this was last asked.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn take(&mut self, pid: u32) -> io::Result<Said> {
        self.drain()?;
        Ok(self.said.remove(&pid).unwrap_or_default())
    }

    /// Takes out all that is whole.
    fn drain(&mut self) -> io::Result<()> {
        let begun = self.head(Head::Begun)?;
        // No more than there is room for, whatever stands there.
        let most = begun.saturating_sub(self.taken).min(RING as u64);
        let mut left = most;
        while left > 0 {
            let slot = usize::try_from(self.taken % RING as u64).unwrap_or(0);
            let count = usize::try_from(left).unwrap_or(RING).min(RING - slot).min(1 << 14);
            let at = RING_AT + slot * ENTRY_WORDS;
            let words = self.file.words(at, count * ENTRY_WORDS)?;
            let mut whole = 0;
            for words in words.chunks_exact(ENTRY_WORDS) {
                let later = left - whole as u64;
                if words[0] == 0 && later < LATE {
                    break;
                }
                whole += 1;
                self.note([words[0], words[1]]);
            }
            self.file.set(at, &vec![0; whole * ENTRY_WORDS])?;
            self.taken += whole as u64;
            left -= whole as u64;
            self.set(Head::Taken, self.taken)?;
            if whole < count {
                break;
            }
        }
        Ok(())
    }

    fn note(&mut self, [first, second]: [u64; ENTRY_WORDS]) {
        let (address, kind) = (first / PAGE * PAGE, first % PAGE);
        let (pages, pid) = (second >> 32, u32::try_from(second & u64::from(u32::MAX)));
        let Some(end) = address.checked_add(pages * PAGE) else { return };
        let said = self.said.entry(pid.unwrap_or(0)).or_default();
        if kind == Kind::Looked as u64 && pages > 0 {
            said.looked.push(address..end);
        } else if kind == Kind::Seen as u64 {
            said.seen.push(address);
        }
    }

    fn head(&self, which: Head) -> io::Result<u64> {
        Ok(self.file.words(which as usize, 1)?[0])
    }

    fn set(&self, which: Head, value: u64) -> io::Result<()> {
        self.file.set(which as usize, &[value])
    }
}

#[cfg(test)]
mod tests {
    use pagelab_interpose::heat::entry;
    use proptest::prelude::*;

    use super::*;

    /// What a library does.
    fn add(yard: &Yard, words: [u64; 2]) {
        let nth = yard.head(Head::Begun).unwrap();
        yard.set(Head::Begun, nth + 1).unwrap();
        let at = RING_AT + usize::try_from(nth).unwrap() % RING * ENTRY_WORDS;
        yard.file.set(at, &words).unwrap();
    }

    #[test]
    fn what_each_process_said_is_taken_once() {
        let mut yard = Yard::new(None).unwrap();
        add(&yard, entry(Kind::Looked, 0x7000, 3, 9));
        add(&yard, entry(Kind::Seen, 0x8123, 1, 9));
        add(&yard, entry(Kind::Seen, 0x5000, 1, 8));
        add(&yard, [0; 2]);
        add(&yard, entry(Kind::Seen, 0x9000, 1, 9));
        let Said { looked, seen } = yard.take(9).unwrap();
        assert_eq!(
            looked.iter().map(|one| (one.start, one.end)).collect::<Vec<_>>(),
            [(0x7000, 0xa000)]
        );
        assert_eq!(seen, [0x8000]);
        assert_eq!(yard.take(9).unwrap(), Said::default(), "one before it is not whole yet");
        assert_eq!(yard.take(8).unwrap().seen, [0x5000]);
        yard.file.set(RING_AT + 3 * ENTRY_WORDS, &[0xb000 | 2, 9]).unwrap();
        assert_eq!(yard.take(9).unwrap().seen, [0xb000, 0x9000]);
    }

    #[test]
    fn a_process_is_what_its_last_row_says() {
        let mut yard = Yard::new(None).unwrap();
        let row = |nth: usize, of: Of, value: u64| {
            yard.file.set(ROWS_AT + nth * ROW_WORDS + of as usize, &[value]).unwrap();
        };
        row(0, Of::Pid, 7);
        row(0, Of::Descriptor, 701);
        row(1, Of::Errno, 22);
        row(2, Of::Pid, 7);
        row(2, Of::Errno, 22);
        yard.set(Head::Programs, 5000).unwrap();
        let programs = yard.programs().unwrap();
        assert_eq!(programs.len(), 1);
        assert_eq!((programs[0].row, programs[0].descriptor), (2, Err(22)));
        assert_eq!(yard.without_row().unwrap(), 5000 - 1024);
        assert_eq!(yard.ask().unwrap(), 1);
    }

    proptest! {
        // Each case may read a whole ring.
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn no_words_of_a_program_make_a_yard_panic(
            words in prop::collection::vec(any::<u64>(), 0..64),
            head in any::<[u64; 8]>(),
        ) {
            let mut yard = Yard::new(None).unwrap();
            for (at, words) in [(0, &head[..]), (ROWS_AT, &words), (RING_AT, &words)] {
                yard.file.set(at, words).unwrap();
            }
            yard.programs().unwrap();
            yard.take(1).unwrap();
        }
    }
}
