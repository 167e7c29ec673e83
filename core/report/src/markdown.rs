//! The report for a mail to a kernel list or a pull request.
//!
//! The one idea: cells are padded, so that the tables also read as plain text, which is how a
//! mailing list shows them.

use std::fmt::Write as _;

use crate::{Block, Column, Document, Found, Note, Table};

/// The document as markdown.
pub(crate) fn render(document: &Document) -> String {
    let mut text = format!("# pagelab: {}\n\n", escaped(&document.title));
    for (name, fact) in &document.facts {
        let _ = writeln!(text, "- {name}: {}", escaped(fact));
    }
    text.push('\n');
    document.alerts.iter().for_each(|alert| note(&mut text, alert));
    for headline in &document.headlines {
        let _ = writeln!(text, "- **{}** {}", escaped(&headline.value), escaped(&headline.told()));
    }
    for section in document.sections.iter().filter(|section| !section.page_only) {
        text.truncate(text.trim_end().len());
        let _ = writeln!(text, "\n\n## {}\n", escaped(&section.title));
        for block in &section.blocks {
            match block {
                Block::Heading(heading) => {
                    let _ = writeln!(text, "### {}\n", escaped(heading));
                }
                Block::Text(paragraph) => {
                    let _ = writeln!(text, "{}\n", escaped(paragraph));
                }
                Block::Note(said) => note(&mut text, said),
                Block::Found(Found { sentence, detail }) => {
                    let _ = writeln!(text, "- {}\n  ({})", escaped(sentence), escaped(detail));
                }
                Block::Table(rows) => table(&mut text, rows),
                Block::Frame(frame) => {
                    let fence = "`".repeat(backticks(frame).max(2) + 1);
                    let _ = writeln!(text, "{fence}\n{}\n{fence}\n", frame.trim_end());
                }
                Block::Plane(_) | Block::Lanes(_) | Block::Flame(_) => {}
            }
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn note(text: &mut String, note: &Note) {
    let _ = writeln!(text, "- **{}** {}", note.tag, escaped(&note.text));
    if !note.cure.is_empty() {
        let _ = writeln!(text, "  - cure: {}", code(&note.cure));
    }
}

fn table(text: &mut String, table: &Table) {
    let heading: Vec<String> = table.columns.iter().map(|column| escaped(&column.name)).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| escaped(&cell.text)).collect()).collect();
    let length = |cell: &String| cell.chars().count();
    let widths: Vec<usize> = (0..heading.len())
        .map(|index| {
            let cells = rows.iter().chain([&heading]).filter_map(|row| row.get(index));
            cells.map(length).max().unwrap_or_default().max(3)
        })
        .collect();
    let mut line = |cells: &[String]| {
        for ((cell, column), width) in cells.iter().zip(&table.columns).zip(&widths) {
            let _ = if column.words {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
    };
    line(&heading);
    let rule = |(column, width): (&Column, &usize)| {
        if column.words { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
    };
    line(&table.columns.iter().zip(&widths).map(rule).collect::<Vec<_>>());
    for row in &rows {
        line(row);
    }
    text.push('\n');
}

/// Words in which a table, a page, a link and code cannot begin.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '|' | '`' | '[' | ']' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A command as code that nothing in it ends.
fn code(command: &str) -> String {
    match backticks(command) {
        0 => format!("`{command}`"),
        most => {
            let fence = "`".repeat(most + 1);
            format!("{fence} {command} {fence}")
        }
    }
}

/// The most backticks in a row.
fn backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
