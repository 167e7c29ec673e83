//! Text of others made harmless for whoever reads it: program names, paths, names of threads.
//!
//! The one idea: what a terminal would obey, and what makes text look like other text, is written
//! out as JSON writes it (`\u001b`), so that a JSON document stays what it was. It is done where
//! text leaves, for all of it: nobody has to remember which words came from elsewhere.

use std::fmt::Write as _;

/// The text with every control character but line ends and tabs, and every character that turns the
/// direction of text or hides it, written out.
pub fn visible(text: &str) -> String {
    shown(text, |c| c == '\n' || c == '\t')
}

/// The same for what must stay on one line.
pub(crate) fn visible_line(text: &str) -> String {
    shown(text, |_| false)
}

fn shown(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if keeps(c) || !is_treacherous(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Control characters (C0, DEL, C1), marks and overrides of direction (UAX #9), separators of
/// lines, what has no width, and tags.
fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        assert_eq!(visible("a\u{1b}[2Jb\r\u{9b}\u{7f}"), "a\\u001b[2Jb\\u000d\\u009b\\u007f");
        assert_eq!(visible("a\n\tb"), "a\n\tb");
        assert_eq!(visible_line("a\n\tb"), "a\\u000a\\u0009b");
    }

    #[test]
    fn what_turns_or_hides_text_is_written_out_and_letters_are_not() {
        assert_eq!(visible("\u{202e}exe.\u{2066}\u{feff}"), "\\u202eexe.\\u2066\\ufeff");
        assert_eq!(visible("\u{e0041}"), "\\udb40\\udc41");
        let plain = "µs – ×, “ü”, 日本, مرحبا, 👩\u{200d}🔬";
        assert_eq!(visible(plain), plain);
    }

    #[test]
    fn a_json_document_says_the_same_afterwards() {
        let value = serde_json::json!({"name": "\u{202e}\u{9b}\u{e0041}\n"});
        let safe = visible(&value.to_string());
        assert!(!safe.contains('\u{202e}'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
