//! The report in a terminal.
//!
//! The one idea: a table too wide for the terminal loses its most dispensable columns and says so,
//! rather than breaking its rows; commands are never broken, so that they can be pasted.

use comfy_table::{
    Attribute, Cell as TableCell, CellAlignment, Color, ColumnConstraint, ContentArrangement,
    Table as Grid, Width, presets::NOTHING,
};

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
        let mut dropped = Vec::new();
        let mut grid = self.grid(&table);
        while width_of(&grid, &table) > self.style.width {
            let ranks = table.columns.iter().map(|column| column.rank).enumerate();
            let Some((index, _)) = ranks.filter(|(_, rank)| *rank > 0).max_by_key(|(_, r)| *r)
            else {
                break;
            };
            dropped.push(table.columns.remove(index).name);
            table.rows.iter_mut().for_each(|row| drop(row.remove(index)));
            grid = self.grid(&table);
        }
        self.break_lines(&mut grid, &table);
        let text = grid.trim_fmt();
        text.lines().for_each(|line| self.line(line));
        if !dropped.is_empty() {
            dropped.reverse();
            dropped.dedup();
            let note = format!("(too wide for this terminal: {})", dropped.join(", "));
            self.toned(&note, Tone::Quiet);
        }
    }

    /// Breaks what explains a row at the width that is left for it.
    fn break_lines(&self, grid: &mut Grid, table: &Table) {
        let widths = grid.column_max_content_widths();
        let over = full_width(&widths).saturating_sub(self.style.width);
        let last = widths.len().saturating_sub(1);
        for (at, column) in grid.column_iter_mut().enumerate() {
            let gap = if at == last { 0 } else { GAP };
            let width = usize::from(widths[at] + gap);
            let width = if table.columns[at].explains { width.saturating_sub(over) } else { width };
            let width = Width::Fixed(u16::try_from(width).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::Absolute(width));
        }
        if over > 0 && table.columns.iter().any(|column| column.explains) {
            grid.set_content_arrangement(ContentArrangement::Dynamic);
            grid.set_width(u16::try_from(self.style.width).unwrap_or(u16::MAX));
        }
    }

    fn grid(&self, table: &Table) -> Grid {
        let mut grid = Grid::new();
        grid.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.style.color {
            grid.enforce_styling();
            grid.style_text_only();
        } else {
            grid.force_no_tty();
        }
        let heading =
            |name: &String| TableCell::new(name).fg(Color::DarkGrey).add_attribute(Attribute::Bold);
        grid.set_header(table.columns.iter().map(|column| heading(&column.name)));
        for row in &table.rows {
            grid.add_row(row.iter().map(|cell| painted_cell(&cell.text, cell.tone)));
        }
        let last = table.columns.len().saturating_sub(1);
        for (index, (column, model)) in grid.column_iter_mut().zip(&table.columns).enumerate() {
            column.set_padding((0, if index == last { 0 } else { GAP }));
            if !model.words {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid
    }

    fn painted(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Quiet => "90",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "1;31",
        };
        if self.style.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn painted_cell(text: &str, tone: Tone) -> TableCell {
    let cell = TableCell::new(text);
    match tone {
        Tone::Plain => cell,
        Tone::Strong => cell.add_attribute(Attribute::Bold),
        Tone::Quiet => cell.fg(Color::DarkGrey),
        Tone::Good => cell.fg(Color::DarkGreen),
        Tone::Warn => cell.fg(Color::DarkYellow),
        Tone::Bad => cell.fg(Color::DarkRed).add_attribute(Attribute::Bold),
    }
}

/// Spaces between two columns.
const GAP: u16 = 2;
/// What is left at least of a column that may be broken into lines.
const EXPLAINS_MIN: u16 = 24;

/// The least that a grid takes.
fn width_of(grid: &Grid, table: &Table) -> usize {
    let widths = grid.column_max_content_widths();
    let least = widths
        .iter()
        .zip(&table.columns)
        .map(|(width, column)| if column.explains { (*width).min(EXPLAINS_MIN) } else { *width });
    full_width(&least.collect::<Vec<_>>())
}

fn full_width(widths: &[u16]) -> usize {
    let gaps = widths.len().saturating_sub(1) * usize::from(GAP);
    widths.iter().map(|width| usize::from(*width)).sum::<usize>() + gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Section;

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
