//! What a report says, before it is decided how it looks.
//!
//! The one idea: sections hold paragraphs, tables and frames of text whose cells are already
//! words; the terminal, markdown and HTML forms only arrange them. A cell carries a tone, never a
//! colour, and a column says how dispensable it is, so that a narrow terminal knows what to drop.
//!
//! It is no layout language: what no report needs is not here.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    Lanes, Plane, Quantity,
    flame::Flame,
    visible::{visible, visible_line},
};

/// A whole report.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Document {
    /// The run's name.
    pub title: String,
    /// Name and value of what a reader must know first: host, kernel, date, command.
    pub facts: Vec<(String, String)>,
    /// What went wrong with the run as a whole.
    pub alerts: Vec<Note>,
    /// The main numbers.
    pub headlines: Vec<Headline>,
    /// Everything else.
    pub sections: Vec<Section>,
}

impl Document {
    /// The document as it may be shown: no text in it can be obeyed by a terminal or break a line.
    #[must_use]
    pub fn harmless(mut self) -> Self {
        let line = |text: &mut String| *text = visible_line(text);
        let note = |note: &mut Note| {
            line(&mut note.text);
            line(&mut note.cure);
        };
        line(&mut self.title);
        for (name, fact) in &mut self.facts {
            line(name);
            line(fact);
        }
        self.alerts.iter_mut().for_each(note);
        for headline in &mut self.headlines {
            line(&mut headline.value);
            line(&mut headline.label);
            line(&mut headline.detail);
        }
        for section in &mut self.sections {
            line(&mut section.title);
            for block in &mut section.blocks {
                match block {
                    Block::Heading(text) | Block::Text(text) => line(text),
                    Block::Note(said) => note(said),
                    Block::Found(found) => {
                        line(&mut found.sentence);
                        line(&mut found.detail);
                    }
                    Block::Table(table) => {
                        table.columns.iter_mut().for_each(|column| line(&mut column.name));
                        table.rows.iter_mut().flatten().for_each(|cell| line(&mut cell.text));
                    }
                    Block::Frame(text) => *text = visible(text),
                    // The page alone shows them, and is made harmless as a whole.
                    Block::Plane(_) | Block::Lanes(_) | Block::Flame(_) => {}
                }
            }
        }
        self
    }
}

/// One of the main numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Headline {
    /// The number with its unit.
    pub value: String,
    /// What it is.
    pub label: String,
    /// Its interval, and what to set it against.
    pub detail: String,
    /// How it should sound.
    pub tone: Tone,
}

impl Headline {
    /// What it is, with the detail in parentheses.
    pub fn told(&self) -> String {
        let Self { label, detail, .. } = self;
        if detail.is_empty() { label.clone() } else { format!("{label} ({detail})") }
    }
}

/// A part of a report under its own heading.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Anchor in the HTML form.
    pub id: Cow<'static, str>,
    /// Heading.
    pub title: String,
    /// Too long for a terminal or a mail: only the page shows it.
    pub page_only: bool,
    /// What it says, in order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section without blocks.
    pub fn new(id: impl Into<Cow<'static, str>>, title: &str) -> Self {
        Self { id: id.into(), title: title.to_owned(), page_only: false, blocks: Vec::new() }
    }

    /// The section with one more block.
    #[must_use]
    pub fn with(mut self, block: impl Into<Block>) -> Self {
        self.add(block);
        self
    }

    /// Adds a block.
    pub fn add(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }

    /// Adds a heading of what follows.
    pub fn head(&mut self, heading: String) {
        self.add(Block::Heading(heading));
    }

    /// Adds each of several.
    pub fn all<B: Into<Block>>(&mut self, blocks: impl IntoIterator<Item = B>) {
        self.blocks.extend(blocks.into_iter().map(Into::into));
    }
}

/// One element of a section.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// What the blocks up to the next heading are about.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A sentence that must not be missed, and a command or sentence to act on.
    Note(Note),
    /// A sentence that the numbers carry.
    Found(Found),
    /// A table.
    Table(Table),
    /// Text that keeps its shape.
    Frame(String),
    /// Curves; forms that cannot draw leave them out.
    Plane(Plane),
    /// Bars or dots; likewise.
    Lanes(Lanes),
    /// Stacks that lie on each other; likewise.
    Flame(Flame),
}

/// What a block is made from where its type says which.
macro_rules! made_from {
    ($($from:ty => $kind:ident),*) => {
        $(impl From<$from> for Block {
            fn from(from: $from) -> Self {
                Self::$kind(from.into())
            }
        })*
    };
}
made_from!(&str => Text, String => Text);
made_from!(Note => Note, Table => Table, Plane => Plane, Lanes => Lanes);

/// A sentence and what to do about it.
#[derive(Debug, Clone, Serialize)]
pub struct Note {
    /// How it should sound.
    pub tone: Tone,
    /// One word that says what it is, such as `INVALID`.
    pub tag: &'static str,
    /// The sentence.
    pub text: String,
    /// What to do, empty where nothing can be done.
    pub cure: String,
}

/// A sentence drawn from records, and what it rests on.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// The sentence.
    pub sentence: String,
    /// Its interval, nature and caveat.
    pub detail: String,
}

impl Note {
    /// Something to take care of.
    pub fn warn(tag: &'static str, text: String, cure: &str) -> Self {
        Self { tone: Tone::Warn, tag, text, cure: cure.to_owned() }
    }

    /// What is wrong.
    pub fn bad(tag: &'static str, text: String, cure: &str) -> Self {
        Self { tone: Tone::Bad, ..Self::warn(tag, text, cure) }
    }
}

/// A table whose cells are words.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without the numbers that no row has: what nobody measured is no column.
    pub fn of(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Self {
        let mut table = Self { columns, rows };
        for at in (0..table.columns.len()).rev() {
            let is_told = |row: &Vec<Cell>| !matches!(row[at].text.as_str(), "" | "–");
            if !table.columns[at].words && !table.rows.iter().any(is_told) {
                table.columns.remove(at);
                table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            }
        }
        table
    }
}

/// A column of a [`Table`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Whether it holds words, which begin at one edge, or numbers, which end at one.
    pub words: bool,
    /// 0 for a column that always shows; of the others the highest is dropped first.
    pub rank: u8,
    /// Whether it says what the others are about: it is broken into lines, never dropped.
    pub explains: bool,
}

impl Column {
    /// A column of words.
    pub fn words(name: &str) -> Self {
        Self { name: name.to_owned(), words: true, rank: 0, explains: false }
    }

    /// A column of numbers.
    pub fn number(name: &str) -> Self {
        Self { name: name.to_owned(), words: false, rank: 0, explains: false }
    }

    /// The column as one that explains the row: it may be as wide as is left.
    #[must_use]
    pub fn explains(self) -> Self {
        Self { explains: true, ..self }
    }

    /// The column with another rank.
    #[must_use]
    pub fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}

/// A cell of a [`Table`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Cell {
    /// Its words.
    pub text: String,
    /// How they should sound.
    pub tone: Tone,
    /// How deeply the page shades it, in parts of a hundred.
    pub depth: u8,
}

/// A cell as a template writes it: a text, or a text and a tone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Plain(String),
    Toned(String, Tone),
}

impl From<Written> for Cell {
    fn from(written: Written) -> Self {
        match written {
            Written::Plain(text) => text.into(),
            Written::Toned(text, tone) => Self::toned(text, tone),
        }
    }
}

impl Cell {
    /// A text with a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone, depth: 0 }
    }

    /// What stands where there is no number.
    pub fn none() -> Self {
        Self::toned("–", Tone::Quiet)
    }

    /// A number, or a dash.
    pub fn of(quantity: Option<Quantity>) -> Self {
        Self::maybe(quantity.map(Quantity::display))
    }

    /// A number with how far it may be off, or a dash.
    pub fn spread(quantity: Option<Quantity>) -> Self {
        Self::maybe(quantity.map(Quantity::display_with_spread))
    }

    /// The same as the number that the row exists for.
    #[must_use]
    pub fn strong(self) -> Self {
        Self { tone: Tone::Strong, ..self }
    }

    /// The same as something that is not the point.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { tone: Tone::Quiet, ..self }
    }

    /// The cell where there is a reason for it; an empty one elsewhere.
    #[must_use]
    pub fn only_if(self, reason: bool) -> Self {
        if reason { self } else { Self::default() }
    }

    /// The text, or a dash.
    pub fn maybe(text: Option<String>) -> Self {
        text.map_or_else(Self::none, Self::from)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// How words should sound; each form decides how that looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// The number that the row exists for.
    Strong,
    /// There, but not the point.
    Quiet,
    /// Proven.
    Good,
    /// Take care.
    Warn,
    /// Not to be believed.
    Bad,
}
