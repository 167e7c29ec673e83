//! What a report, a comparison and a fleet can be written as.
//!
//! The one idea: each says what stands in a document, which values its numbers are, and its rows;
//! every form follows from those, and none can be had of one and not of another.

use serde_json::Value;

use crate::{
    document::Document,
    html, markdown,
    terminal::{self, Style},
    visible::visible,
};

/// What has forms.
pub trait Forms {
    /// What the data of its page is.
    const ABOUT: &'static str;

    /// What it says.
    fn document(&self) -> Document;

    /// The same with what only a page shows.
    fn page(&self) -> Document {
        self.document()
    }

    /// Every number, as one JSON value.
    fn value(&self) -> Value;

    /// One row for each number, after one with the names of the fields.
    fn rows(&self) -> Vec<Vec<String>>;

    /// For a terminal, or a log where `style` has no colour.
    fn terminal(&self, style: Style) -> String {
        terminal::render(&self.document().harmless(), style)
    }

    /// Tables for a pull request.
    fn markdown(&self) -> String {
        markdown::render(&self.document().harmless())
    }

    /// The value as a document.
    fn json(&self) -> String {
        json(&self.value())
    }

    /// The rows, as a spreadsheet reads them.
    fn csv(&self) -> String {
        let line = |row: Vec<String>| {
            let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
            fields.join(",") + "\n"
        };
        visible(&self.rows().into_iter().map(line).collect::<String>())
    }

    /// One file that opens offline and asks nothing of any network.
    fn html(&self) -> String {
        html::page(&self.page().harmless(), &self.value(), Self::ABOUT)
    }

    /// The form of that name; that of a terminal where it is none.
    fn form(&self, name: &str, style: Style) -> String {
        match name {
            "markdown" => self.markdown(),
            "json" => self.json(),
            "csv" => self.csv(),
            "html" => self.html(),
            _ => self.terminal(style),
        }
    }
}

/// A value as a JSON document.
pub(crate) fn json(value: &Value) -> String {
    visible(&format!("{value:#}\n"))
}

/// Quoted by RFC 4180 where it must be.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
