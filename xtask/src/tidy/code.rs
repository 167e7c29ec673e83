//! Rust text as the checks of structure need it: without comments, contents of literals, or tests.
//!
//! The one idea: every byte keeps its place, so that a line or an offset found here is one of the
//! file. It is lexical: it knows comments, literals and braces, and no grammar.

/// A word, a literal, `::` or one character of punctuation, and where it begins.
pub(crate) type Token<'t> = (usize, &'t str);

/// The text with comments blanked, and with underscores for what stands in literals.
pub(crate) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let raw = raw_string(rest, out.chars().next_back());
        let (length, fill) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), ' ')
        } else if rest.starts_with("/*") {
            (block_comment(rest), ' ')
        } else if let Some(length) = raw {
            (length, '_')
        } else if first == '"' {
            (string(rest), '_')
        } else if first == '\'' {
            (character(rest), '_')
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let (gone, left) = rest.split_at(length);
        let quoted = fill == '_' && first != '\'' || length > 1 && first == '\'';
        for (at, c) in gone.char_indices() {
            let edge = quoted && (at == 0 || at + c.len_utf8() == length);
            match c {
                '\n' => out.push('\n'),
                _ if edge => out.push('"'),
                _ if first == '\'' && length == 1 => out.push('\''),
                _ => (0..c.len_utf8()).for_each(|_| out.push(fill)),
            }
        }
        rest = left;
    }
    out
}

/// Length of a comment that begins here; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Length of a string that begins with the quote here.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a raw string, when one begins here: `r"…"`, `br#"…"#`.
fn raw_string(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let after = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let body = after.trim_start_matches('#');
    let hashes = &after[..after.len() - body.len()];
    let inside = body.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let start = text.len() - inside.len();
    Some(inside.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// Length of a character literal that begins with the quote here; 1 where it is a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            text[escaped + 1..].find('\'').map_or(text.len(), |at| escaped + at + 2)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// [`bare`] text with the items below `#[cfg(test)]` blanked too.
pub(crate) fn without_tests(bare: &str) -> String {
    if bare.contains("#![cfg(test)]") {
        return String::new();
    }
    let mut out = bare.to_owned();
    for start in ["#[cfg(test)]", "#[cfg(all(test"] {
        while let Some(at) = out.find(start) {
            let end = at + item(&out[at..]);
            let blank: String =
                out[at..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            out.replace_range(at..end, &blank);
        }
    }
    out
}

/// Length of an item with its attributes.
fn item(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut was_block = false;
    for (at, c) in text.char_indices() {
        match c {
            ';' | ',' if depth == 0 => return at + 1,
            _ if was_block && !c.is_whitespace() => return at,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                if depth == 0 {
                    return at;
                }
                depth -= 1;
                was_block = c == '}' && depth == 0;
            }
            _ => {}
        }
    }
    text.len()
}

/// Words and punctuation of [`bare`] text.
pub(crate) fn tokens(bare: &str) -> Vec<Token<'_>> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = bare[at..].chars().next() {
        let rest = &bare[at..];
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push((at, &rest[..length]));
        }
        at += length;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_everything_keeps_its_place() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("a { \" b", 'x', '\'', '"')"#, r#"f("________", "_", "__", "_")"#),
            (r##"r#"a " b"# + 1"##, r#""________" + 1"#),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("\"µ\"", "\"__\""),
        ];
        for (text, expected) in cases {
            assert_eq!(bare(text), expected);
            assert_eq!(bare(text).len(), text.len());
        }
    }

    #[test]
    fn what_only_tests_see_is_gone() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nfn b(c: [u8; 2]) { d }\nfn e() {}\n\
                    #[cfg(test)]\nuse f::{g, h};\n#[cfg(all(test, unix))]\nmod tests { i }\n";
        let left = without_tests(&bare(text));
        let words: Vec<_> = left.split_whitespace().collect();
        assert_eq!(words, ["fn", "a()", "{}", "fn", "e()", "{}"]);
        assert_eq!(left.lines().count(), text.lines().count());
        assert_eq!(without_tests("#![cfg(test)]\nfn a() {}"), "");
    }

    #[test]
    fn paths_are_words_and_double_colons() {
        let found: Vec<_> = tokens("use a::b_c;").into_iter().map(|(_, token)| token).collect();
        assert_eq!(found, ["use", "a", "::", "b_c", ";"]);
    }
}
