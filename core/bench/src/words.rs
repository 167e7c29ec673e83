//! A case as its workload reads it: closed sets of words, and what else a value stands for.
//!
//! The one idea: [`words!`](crate::words!) writes an enum and its spellings side by side, so that a
//! parameter's choices, what is read of a case and what is printed are one list. A case is
//! canonical before it is read ([`crate::plan::complete`]): what does not read is our mistake.

use std::str::FromStr;

use pagelab_record::{Case, units::parse_bytes};
use pagelab_sys::machine::parse_list;

use crate::count::parse_count;

/// A closed set, each value with its spelling.
pub trait Words: Copy + PartialEq + 'static {
    /// Every value, in the order that help shows them; the first is meant where nothing is said.
    const ALL: &'static [(&'static str, Self)];
}

/// Enums whose values are words: `WORDS` for a parameter's choices, [`Words`] to read them,
/// `Display` to write them.
#[macro_export]
macro_rules! words {
    ($($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $value:ident = $word:literal,)+
    })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// The words, in the order that help shows them.
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl $crate::words::Words for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}

/// The words of a table, for a parameter's choices.
pub const fn words_of<T, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = table[at].0;
        at += 1;
    }
    words
}

/// Reads values of a case.
pub trait Read {
    /// The text, where the workload has such a parameter.
    fn text(&self, name: &str) -> Option<&str>;

    /// Whether it is this word.
    fn is(&self, name: &str, word: &str) -> bool {
        self.text(name) == Some(word)
    }

    /// The value that the word stands for; the first of all where the workload has no such
    /// parameter.
    ///
    /// # Panics
    /// When the word is none of them; a case is checked before it is read.
    fn word<W: Words>(&self, name: &str) -> W {
        self.one_of(name, W::ALL)
    }

    /// The same of a table.
    ///
    /// # Panics
    /// When the word is none of them; a case is checked before it is read.
    fn one_of<T: Copy>(&self, name: &str, table: &[(&str, T)]) -> T {
        let Some(text) = self.text(name) else { return table[0].1 };
        let found = table.iter().find(|(word, _)| *word == text);
        found.unwrap_or_else(|| panic!("{name}={text} is not canonical")).1
    }

    /// The value that the word stands for; `None` where another one, as `auto`, leaves it open.
    fn said<W: Words>(&self, name: &str) -> Option<W> {
        let text = self.text(name)?;
        W::ALL.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
    }

    /// Those that a list names, in the order of the set.
    fn words<W: Words>(&self, name: &str) -> Vec<W> {
        self.some_of(name, W::ALL).map(|(_, value)| value).collect()
    }

    /// Those of a table that a list names, in the order of the table.
    fn some_of<'t, T: Copy + 't>(
        &self,
        name: &str,
        table: &'t [(&'static str, T)],
    ) -> impl Iterator<Item = (&'static str, T)> {
        let text = self.text(name).unwrap_or(table[0].0);
        let is_named = move |word: &str| text.split(',').any(|named| named == word);
        table.iter().copied().filter(move |(word, _)| is_named(word))
    }

    /// The number; `None` where there is a word in its place, such as `auto`.
    fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.text(name)?.parse().ok()
    }

    /// The count of operations, such as `20m`; `None` where there is a word in its place.
    fn count(&self, name: &str) -> Option<u64> {
        parse_count(self.text(name)?).ok()
    }

    /// The size in bytes; `None` where there is a word in its place.
    fn bytes(&self, name: &str) -> Option<u64> {
        parse_bytes(self.text(name)?).ok()
    }

    /// The CPUs that are named; `None` where there is a word in their place.
    fn cpus(&self, name: &str) -> Option<Vec<usize>> {
        parse_list(self.text(name)?)
    }
}

impl Read for Case {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    words! {
        enum Order {
            Ascending = "ascending",
            Random = "random",
        }
    }

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for (word, value) in Order::ALL {
            assert_eq!(value.to_string(), *word);
            assert_eq!(Case::default().with("order", word).word::<Order>("order"), *value);
        }
        assert_eq!(Order::WORDS, ["ascending", "random"]);
        assert_eq!(Case::default().word::<Order>("order"), Order::Ascending);
    }

    #[test]
    fn a_list_is_read_in_the_order_of_its_set() {
        let case = Case::default().with("order", "random,ascending");
        assert_eq!(case.words::<Order>("order"), [Order::Ascending, Order::Random]);
        assert_eq!(Case::default().words::<Order>("order"), [Order::Ascending]);
    }

    #[test]
    fn where_a_word_stands_for_a_number_there_is_none() {
        let case = Case::default().with("rounds", "auto").with("size", "1m").with("cpu", "0-1");
        assert_eq!((case.number::<u32>("rounds"), case.bytes("size")), (None, Some(1 << 20)));
        assert_eq!(case.cpus("cpu"), Some(vec![0, 1]));
    }
}
