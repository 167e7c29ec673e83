//! Marks in a page: where a report goes, and which of its parts.
//!
//! `<!-- splice quick: head, Fault latency/4 $ cargo run -- run -->` asks for two parts of the run
//! `quick`, of the second its first four lines, under that command; without a command it is text.
//! What follows, up to `<!-- /splice -->`, is replaced.

use anyhow::{Result, bail};

const BEGIN: &str = "<!-- splice ";
const CLOSE: &str = " -->";
const END: &str = "<!-- /splice -->";

/// What a page asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark<'a> {
    /// The run, by its name in `records/`.
    pub(super) record: &'a str,
    /// Parts of its report; none: all of it.
    pub(super) parts: Vec<&'a str>,
    /// What a reader would type to get it.
    command: Option<&'a str>,
}

impl<'a> Mark<'a> {
    /// Reads a line, where it is a mark.
    fn read(line: &'a str) -> Option<Self> {
        let asked = line.strip_prefix(BEGIN)?.strip_suffix(CLOSE)?;
        let (what, command) = match asked.split_once('$') {
            Some((what, command)) => (what, Some(command.trim())),
            None => (asked, None),
        };
        let (record, parts) = what.split_once(':').unwrap_or((what, ""));
        let parts = parts.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        Some(Self { record: record.trim(), parts, command })
    }

    /// The fenced block that a reader sees.
    pub(super) fn block(&self, shown: &str) -> String {
        match self.command {
            Some(command) => format!("```console\n$ {command}\n{shown}```\n"),
            None => format!("```text\n{shown}```\n"),
        }
    }
}

/// The page with every mark filled.
///
/// # Errors
/// When a mark has no end, or what it asks for is not there.
pub(super) fn filled(
    text: &str,
    fill: &mut dyn FnMut(&Mark<'_>) -> Result<String>,
) -> Result<String> {
    let mut new = String::with_capacity(text.len());
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        new.push_str(line);
        new.push('\n');
        let Some(mark) = Mark::read(line) else { continue };
        let block = fill(&mark).map_err(|error| error.context(format!("line {}", index + 1)))?;
        new.push_str(&block);
        if !lines.by_ref().any(|(_, line)| line == END) {
            bail!("line {}: no `{END}` follows", index + 1);
        }
        new.push_str(END);
        new.push('\n');
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# p\n<!-- splice quick: head, Limits of/3 $ pagelab run -->\nold\n\
                        <!-- /splice -->\nafter\n";

    #[test]
    fn a_mark_names_a_run_its_parts_and_the_command() {
        let mark = Mark::read("<!-- splice quick: head, Limits of/3 $ pagelab run -->").unwrap();
        let expected = Mark {
            record: "quick",
            parts: vec!["head", "Limits of/3"],
            command: Some("pagelab run"),
        };
        assert_eq!(mark, expected);
        let mark = Mark::read("<!-- splice test -->").unwrap();
        assert_eq!(mark, Mark { record: "test", parts: vec![], command: None });
        assert_eq!(Mark::read("<!-- another comment -->"), None);
    }

    #[test]
    fn what_stands_between_the_marks_is_replaced_and_nothing_else() {
        let fill = &mut |mark: &Mark<'_>| Ok(mark.block("new\n"));
        let filled = filled(PAGE, fill).unwrap();
        let expected = PAGE.replace("old\n", "```console\n$ pagelab run\nnew\n```\n");
        assert_eq!(filled, expected);
    }

    #[test]
    fn a_filled_page_stays_as_it_is() {
        let fill = &mut |mark: &Mark<'_>| Ok(mark.block("new\n"));
        let once = filled(PAGE, fill).unwrap();
        assert_eq!(filled(&once, fill).unwrap(), once);
    }

    #[test]
    fn a_mark_without_an_end_is_an_error_that_names_its_line() {
        let error = filled("\n<!-- splice a -->\n", &mut |_| Ok(String::new())).unwrap_err();
        assert!(error.to_string().starts_with("line 2"), "{error}");
    }
}
