//! The report in a terminal.
//!
//! The one idea: a table too wide for the terminal loses its most dispensable columns and says so,
//! rather than breaking its rows; commands are never broken, so that they can be pasted.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{Block, Document, Found, Note, Table, Tone};

/// How a terminal looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences are understood and wanted.
    pub color: bool,
    /// Columns of text.
    pub width: usize,
}

/// The document for a terminal.
pub(crate) fn render(document: &Document, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.head(document);
    for section in document.sections.iter().filter(|section| !section.page_only) {
        page.line("");
        page.toned(&section.title, Tone::Strong);
        let mut before = None;
        for block in &section.blocks {
            let kind = std::mem::discriminant(block);
            if before == Some(kind) && matches!(block, Block::Table(_) | Block::Frame(_)) {
                page.line("");
            }
            before = Some(kind);
            match block {
                Block::Heading(heading) => {
                    page.line("");
                    page.toned(heading, Tone::Strong);
                }
                Block::Text(text) => page.wrapped(text, ""),
                Block::Note(note) => page.note(note),
                Block::Found(found) => page.found(found),
                Block::Table(table) => page.table(table),
                Block::Frame(frame) => frame.lines().for_each(|line| page.line(line)),
                Block::Plane(_) | Block::Lanes(_) | Block::Flame(_) => {}
            }
        }
    }
    page.text
}

struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn head(&mut self, document: &Document) {
        self.toned(&document.title, Tone::Strong);
        let width = document.facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, fact) in &document.facts {
            self.line(&format!("{name:width$}  {fact}"));
        }
        document.alerts.iter().for_each(|alert| self.note(alert));
        self.line("");
        let width =
            document.headlines.iter().map(|h| h.value.chars().count()).max().unwrap_or_default();
        for headline in &document.headlines {
            let value = self.painted(&format!("{:>width$}", headline.value), headline.tone);
            self.line(&format!("{value}  {}", headline.told()));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn toned(&mut self, line: &str, tone: Tone) {
        let line = self.painted(line, tone);
        self.line(&line);
    }

    fn note(&mut self, note: &Note) {
        let tag = self.painted(note.tag, note.tone);
        let indent = " ".repeat(note.tag.chars().count() + 2);
        if note.text.trim().is_empty() {
            // A foreign journal gives no reason.
            self.line(&format!("{tag}:"));
        } else {
            let start = self.text.len();
            self.wrapped(&note.text, &indent);
            self.text.replace_range(start..start + indent.len(), &format!("{tag}: "));
        }
        if !note.cure.is_empty() {
            self.line(&format!("{indent}cure: {}", note.cure));
        }
    }

    /// A sentence, and below it what it rests on.
    fn found(&mut self, Found { sentence, detail }: &Found) {
        const INDENT: &str = "    ";
        self.wrapped(sentence, "");
        let start = self.text.len();
        self.wrapped(detail, INDENT);
        let said = self.text.split_off(start);
        said.lines().for_each(|line| self.toned(line, Tone::Quiet));
    }

    /// A paragraph, broken between words at the width of the terminal.
    fn wrapped(&mut self, text: &str, indent: &str) {
        let mut line = indent.to_owned();
        for word in text.split_whitespace() {
            let long = line.chars().count() + word.chars().count() >= self.style.width;
            if long && line.len() > indent.len() {
                self.line(&line);
                indent.clone_into(&mut line);
            }
            line.push_str(word);
            line.push(' ');
        }
        self.line(&line);
    }

    fn table(&mut self, table: &Table) {
        let mut table = table.clone();
        let mut widths = widths(&table);
        let mut dropped = Vec::new();
        while least(&table, &widths) > self.style.width {
            let ranks = table.columns.iter().map(|column| column.rank).enumerate();
            let Some((index, _)) = ranks.filter(|(_, rank)| *rank > 0).max_by_key(|(_, r)| *r)
            else {
                break;
            };
            dropped.push(table.columns.remove(index).name);
            table.rows.iter_mut().for_each(|row| drop(row.remove(index)));
            widths.remove(index);
        }
        // What explains a row is broken at the width that is left for it.
        let over = full(&widths).saturating_sub(self.style.width);
        for (width, column) in widths.iter_mut().zip(&table.columns) {
            *width = if column.explains { width.saturating_sub(over).max(1) } else { *width };
        }
        self.row(&table, &widths, table.columns.iter().map(|column| (&*column.name, HEADING)));
        for row in &table.rows {
            self.row(&table, &widths, row.iter().map(|cell| (&*cell.text, code(cell.tone))));
        }
        if !dropped.is_empty() {
            dropped.reverse();
            dropped.dedup();
            let note = format!("(too wide for this terminal: {})", dropped.join(", "));
            self.toned(&note, Tone::Quiet);
        }
    }

    /// Texts and how they are painted, each in its column.
    fn row<'t>(
        &mut self,
        table: &Table,
        widths: &[usize],
        cells: impl Iterator<Item = (&'t str, &'t str)>,
    ) {
        let cells = cells.zip(widths).map(|((text, code), width)| (broken(text, *width), code));
        let cells: Vec<_> = cells.collect();
        let height = cells.iter().map(|(lines, _)| lines.len()).max().unwrap_or_default();
        for at in 0..height {
            let mut row = String::new();
            for (((lines, code), width), column) in cells.iter().zip(widths).zip(&table.columns) {
                let text = lines.get(at).map_or("", String::as_str);
                let space = " ".repeat(width.saturating_sub(text.width()));
                let text = self.inked(text, code);
                row += &if column.words { text + &space } else { space + &text };
                row += GAP;
            }
            self.line(&row);
        }
    }

    fn painted(&self, text: &str, tone: Tone) -> String {
        self.inked(text, code(tone))
    }

    fn inked(&self, text: &str, code: &str) -> String {
        if self.style.color && !code.is_empty() && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The numbers of the escape sequence for a tone.
const fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Strong => "1",
        Tone::Quiet => "90",
        Tone::Good => "32",
        Tone::Warn => "33",
        Tone::Bad => "1;31",
    }
}

/// The same for the name of a column.
const HEADING: &str = "1;90";
/// What stands between two columns.
const GAP: &str = "  ";
/// What is left at least of a column that may be broken into lines.
const EXPLAINS_MIN: usize = 24;

/// The widest line of each column.
fn widths(table: &Table) -> Vec<usize> {
    let widest = |text: &str| text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0);
    let columns = table.columns.iter().enumerate().map(|(at, column)| {
        let cells = table.rows.iter().filter_map(|row| row.get(at)).map(|cell| widest(&cell.text));
        cells.max().unwrap_or(0).max(widest(&column.name))
    });
    columns.collect()
}

/// The least that a table takes.
fn least(table: &Table, widths: &[usize]) -> usize {
    let least = widths.iter().zip(&table.columns);
    let least = least.map(|(w, column)| if column.explains { EXPLAINS_MIN.min(*w) } else { *w });
    full(&least.collect::<Vec<_>>())
}

fn full(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.len().saturating_sub(1) * GAP.len()
}

/// A text in lines of at most this width, broken between words, or in one that is longer.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if paragraph.width() <= width {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        for (at, word) in paragraph.split(' ').enumerate() {
            if at > 0 && line.width() + 1 + word.width() <= width {
                line.push(' ');
            } else if at > 0 {
                lines.push(std::mem::take(&mut line));
            }
            for letter in word.chars() {
                if !line.is_empty() && line.width() + letter.width().unwrap_or(0) > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(letter);
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Section;

    #[test]
    fn a_text_is_broken_between_words_or_in_one_that_is_longer() {
        for (text, expected) in [
            ("", &[""][..]),
            ("a\nb c", &["a", "b c"]),
            ("four five six", &["four", "five", "six"]),
            ("a bc de", &["a bc", "de"]),
            ("a  longer", &["a ", "longe", "r"]),
            ("日本語", &["日本", "語"]),
        ] {
            assert_eq!(broken(text, 5), expected, "{text:?}");
        }
    }

    #[test]
    fn a_note_without_words_is_its_tag() {
        for (text, expected) in [("", "FAILED:\n"), (" \n", "FAILED:\n"), ("why", "FAILED: why\n")]
        {
            let text = text.to_owned();
            let note = Note { tone: Tone::Bad, tag: "FAILED", text, cure: String::new() };
            let sections = vec![Section::new("failed", "Failed").with(note)];
            let document = Document { sections, ..Document::default() };
            let said = render(&document, Style { color: false, width: 80 });
            assert!(said.ends_with(expected), "{said}");
        }
    }
}
