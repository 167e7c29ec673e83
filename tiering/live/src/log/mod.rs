//! What an engine saw and decided, as lines of JSON; and the replay that decides it again.
//!
//! The one idea: the lines are the driver's events. A log is written as things happen, so that one
//! whose engine was killed is whole up to its last line, and a replay needs nothing but the log.

use std::io::{self, BufRead, Write};

use pagelab_tier::{
    Driver, Event, Run, Start,
    policy::{Move, Moved, Node},
};
use serde::{Deserialize, Serialize};

/// What the first line names; the number rises when the meaning of a line changes.
pub const SCHEMA: &str = "pagelab.tier-log/2";
/// Bytes of a line, at most: a pass over 64 GiB of scattered pages has fewer.
const LINE_MAX: u64 = 1 << 30;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// The process.
    pub pid: u32,
    /// The source, by its name in the table.
    pub source: String,
    /// The kernel's numbers of the nodes, in the order in which the policy has them.
    pub nodes: Vec<usize>,
}

/// A node of a [`Line::Start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedNode {
    tier: u8,
    pages: u64,
    cpus: bool,
}

/// How a move went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// [`Moved::Done`].
    Done,
    /// [`Moved::Full`].
    Full,
    /// [`Moved::Failed`].
    Failed,
}

/// Any other line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// A driver begins; what an earlier one knew is forgotten.
    Start {
        /// The policy, complete.
        policy: String,
        /// Pages that there may be.
        pages: u32,
        /// The nodes.
        nodes: Vec<LoggedNode>,
    },
    /// Where pages lie: a block of 512 by its number, and its address. The policy is not told.
    Blocks(Vec<(u32, u64)>),
    /// [`Event::World`].
    World {
        /// Nanoseconds since the start.
        now: u64,
        /// Free pages.
        free: Vec<u64>,
    },
    /// [`Event::Placed`], many: first page, pages, node.
    Placed(Vec<(u32, u32, Option<u8>)>),
    /// [`Event::Scan`].
    Scan {
        /// First page and pages.
        pages: Vec<(u32, u32)>,
        /// Written bits.
        writes: bool,
        /// Nanoseconds.
        window: u64,
    },
    /// [`Event::Decide`], and what was decided: page and node.
    Decided(Vec<(u32, u8)>),
    /// [`Event::Moved`], many: first page, pages, how, node.
    Moved(Vec<(u32, u32, How, u8)>),
}

impl From<&Start> for Line {
    fn from(start: &Start) -> Self {
        let node = |node: &Node| {
            let Node { tier, pages, cpus } = *node;
            LoggedNode { tier, pages, cpus }
        };
        let nodes = start.nodes.iter().map(node).collect();
        Self::Start { policy: start.policy.clone(), pages: start.pages, nodes }
    }
}

impl From<Moved> for How {
    fn from(how: Moved) -> Self {
        match how {
            Moved::Done => Self::Done,
            Moved::Full => Self::Full,
            Moved::Failed => Self::Failed,
        }
    }
}

impl From<How> for Moved {
    fn from(how: How) -> Self {
        match how {
            How::Done => Self::Done,
            How::Full => Self::Full,
            How::Failed => Self::Failed,
        }
    }
}

/// Hands the events of a line to a driver; what it decides where the line is a decision.
///
/// # Errors
/// A sentence, when the line speaks of what there is not.
pub fn apply(driver: &mut Driver, line: &Line) -> Result<Option<Vec<Move>>, String> {
    let mut tell = |event: Event| driver.apply(&event).map_err(|why| why.to_string());
    match line {
        Line::Start { .. } => return Err("a driver that runs does not start".into()),
        Line::Blocks(_) => {}
        Line::World { now, free } => {
            tell(Event::World { now: *now, free: free.clone() })?;
        }
        Line::Placed(placed) => {
            for &(first, count, node) in placed {
                tell(Event::Placed { pages: Run { first, count }, node })?;
            }
        }
        Line::Scan { pages, writes, window } => {
            let pages = pages.iter().map(|&(first, count)| Run { first, count }).collect();
            tell(Event::Scan { pages, writes: *writes, window: *window })?;
        }
        Line::Decided(_) => return tell(Event::Decide).map(Some),
        Line::Moved(moved) => {
            for &(first, count, how, node) in moved {
                let last = first.checked_add(count).ok_or("pages beyond the last number")?;
                for page in first..last {
                    tell(Event::Moved { page, how: how.into(), node })?;
                }
            }
        }
    }
    Ok(None)
}

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Times that the policy was asked.
    pub decisions: u64,
    /// Moves that it asked for.
    pub moves: u64,
    /// Lines of decisions that came out otherwise.
    pub differing: Vec<u64>,
    /// Whether the last line was cut off, as by a kill.
    pub is_torn: bool,
}

/// What is wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("line {line}: {why}")]
    Io {
        /// Which line, from 1.
        line: u64,
        /// Why.
        why: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line}: {why}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// A sentence.
        why: String,
    },
}

/// Decides everything in a log again that speaks of so many pages at most.
///
/// # Errors
/// With the number of the line that makes no sense.
pub fn replay(log: &mut dyn BufRead, pages_max: u32) -> Result<(Header, Replayed), LogError> {
    let mut driver: Option<Driver> = None;
    let mut found = Replayed::default();
    let (header, is_torn) = each(log, &mut |number, line| {
        if let Line::Start { policy, pages, nodes } = line {
            let start = start_of(policy, pages, &nodes);
            if start.pages > pages_max {
                return Err(format!("{} pages; a log may have {pages_max}", start.pages));
            }
            driver = Some(begun(&start)?);
            return Ok(());
        }
        let driver = driver.as_mut().ok_or("nothing has started yet")?;
        let again = apply(driver, &line)?;
        if let (Line::Decided(decided), Some(again)) = (&line, again) {
            found.decisions += 1;
            found.moves += again.len() as u64;
            if !again.iter().map(|step| (step.page, step.to)).eq(decided.iter().copied()) {
                found.differing.push(number);
            }
        }
        Ok(())
    })?;
    found.is_torn = is_torn;
    Ok((header, found))
}

/// Hands out the lines of a log after the first, each with its number from 1 on; its header, and
/// whether the last line was cut off, as by a kill.
///
/// # Errors
/// With the number of the line that makes no sense, or of which `visit` says so.
pub(crate) fn each(
    log: &mut dyn BufRead,
    visit: &mut dyn FnMut(u64, Line) -> Result<(), String>,
) -> Result<(Header, bool), LogError> {
    let mut number = 0;
    let mut bytes = Vec::new();
    let mut header: Option<Header> = None;
    let mut is_torn = false;
    loop {
        number += 1;
        bytes.clear();
        let wrong = |why: String| LogError::Line { line: number, why };
        let read = io::Read::take(&mut *log, LINE_MAX).read_until(b'\n', &mut bytes);
        if read.map_err(|why| LogError::Io { line: number, why })? == 0 {
            break;
        }
        let is_whole = bytes.last() == Some(&b'\n');
        if header.is_none() {
            let parsed: Header = serde_json::from_slice(&bytes)
                .map_err(|why| wrong(format!("this is no log of tier promote: {why}")))?;
            if parsed.schema != SCHEMA {
                let was = parsed.schema;
                return Err(wrong(format!("the log is `{was}`; this pagelab reads `{SCHEMA}`")));
            }
            header = Some(parsed);
            continue;
        }
        match serde_json::from_slice(&bytes) {
            Ok(line) => visit(number, line).map_err(wrong)?,
            Err(_) if !is_whole => {
                is_torn = true;
                break;
            }
            Err(why) => return Err(wrong(why.to_string())),
        }
    }
    let header = header.ok_or(LogError::Line { line: 1, why: "the log is empty".into() })?;
    Ok((header, is_torn))
}

/// Pages of which a log may speak, 8 TiB: a policy takes some bytes for each.
pub const PAGES_MAX: u32 = 1 << 31;

/// A driver of a log.
pub(crate) fn begun(start: &Start) -> Result<Driver, String> {
    Driver::new(start).map_err(|why| why.to_string())
}

pub(crate) fn start_of(policy: String, pages: u32, nodes: &[LoggedNode]) -> Start {
    let node = |node: &LoggedNode| {
        let LoggedNode { tier, pages, cpus } = *node;
        Node { tier, pages, cpus }
    };
    Start { policy, pages, nodes: nodes.iter().map(node).collect() }
}

/// A driver whose events are written down as they come.
pub struct Recorder {
    driver: Driver,
    out: Option<Box<dyn Write>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("driver", &self.driver).finish_non_exhaustive()
    }
}

impl Recorder {
    /// A driver; header and start are the first lines of `out`.
    ///
    /// # Errors
    /// When the policy makes no sense, or the log cannot be written.
    pub fn new(
        header: &Header,
        start: &Start,
        mut out: Option<Box<dyn Write>>,
    ) -> io::Result<Self> {
        let driver = Driver::new(start).map_err(io::Error::other)?;
        if let Some(out) = out.as_mut() {
            line(out, header)?;
            line(out, &Line::from(start))?;
        }
        Ok(Self { driver, out })
    }

    /// Begins again: what was known is forgotten.
    ///
    /// # Errors
    /// As [`Recorder::new`].
    pub fn restart(&mut self, start: &Start) -> io::Result<()> {
        self.driver = Driver::new(start).map_err(io::Error::other)?;
        self.out.as_mut().map_or(Ok(()), |out| line(out, &Line::from(start)))
    }

    /// The node that a page is known to be on.
    pub fn node(&self, page: u32) -> Option<u8> {
        self.driver.node(page)
    }

    /// Whether the policy exchanges nothing for a while, since that did not pay.
    pub fn rests(&self) -> bool {
        self.driver.rests()
    }

    /// Takes what happened, and writes it down.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn tell(&mut self, happened: &Line) -> io::Result<()> {
        apply(&mut self.driver, happened).map_err(io::Error::other)?;
        self.out.as_mut().map_or(Ok(()), |out| line(out, happened))
    }

    /// What was written is with whoever keeps it.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Asks the policy, and writes down what it said.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn decide(&mut self) -> io::Result<Vec<Move>> {
        let moves = self.driver.apply(&Event::Decide).map_err(io::Error::other)?;
        let decided = moves.iter().map(|step| (step.page, step.to)).collect();
        self.out.as_mut().map_or(Ok(()), |out| line(out, &Line::Decided(decided)))?;
        Ok(moves)
    }
}

fn line(out: &mut Box<dyn Write>, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value).map_err(io::Error::other)?;
    text.push(b'\n');
    out.write_all(&text)
}

#[cfg(test)]
mod tests;
