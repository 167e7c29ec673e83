//! What the text of a setting says.
//!
//! A selection (`always [madvise] never`) is written as a bare word and read as all of them with
//! the chosen one in brackets; everything else reads as it is written, or as the kernel spells it
//! (`1` into a boolean parameter reads `Y`), which is why a value is read back after writing.

/// The setting in the text of a knob: the word in brackets, without brackets the whole text.
pub fn selected(text: &str) -> &str {
    let in_brackets = |word: &'_ str| word.starts_with('[') && word.ends_with(']');
    let word = text.split_whitespace().find(|word| in_brackets(word) && word.len() > 2);
    word.map_or(text.trim(), |word| &word[1..word.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_word_is_the_one_in_brackets() {
        assert_eq!(selected("always [madvise] never\n"), "madvise");
        assert_eq!(selected("[always] inherit madvise never"), "always");
        assert_eq!(selected("always defer defer+madvise madvise [never]\n"), "never");
        assert_eq!(selected("[lzo-rle] lz4"), "lzo-rle");
    }

    #[test]
    fn a_text_without_brackets_is_its_own_setting() {
        assert_eq!(selected("512\n"), "512");
        assert_eq!(selected("4096\t131072\t6291456\n"), "4096\t131072\t6291456");
        assert_eq!(selected("\n"), "");
        assert_eq!(selected("[] x"), "[] x");
        assert_eq!(selected("[half open"), "[half open");
    }
}
