//! Where text goes: results to stdout, everything else to stderr. A closed pipe is no error.

use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    os::fd::AsFd,
};

use pagelab_report::Style;

use crate::exit::{Exit, Failure};

/// Prints a result. `| head` closes the pipe early; that ends the output and nothing else.
///
/// # Errors
/// When stdout cannot be written for any other reason.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure { error: anyhow::anyhow!("stdout: {error}"), exit: Exit::Internal })
        }
        _ => Ok(()),
    }
}

/// Says something to the person, beside the result.
pub(crate) fn warn(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How to draw for whoever reads stdout.
pub(crate) fn style() -> Style {
    style_of(&io::stdout())
}

/// How to draw for whoever reads this stream.
pub(crate) fn style_of(stream: &(impl AsFd + IsTerminal)) -> Style {
    let is_terminal = stream.is_terminal();
    let color = is_terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    // Whoever sets COLUMNS means it, for a file or a pipe too.
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let drawn = || pagelab_sys::rights::terminal_columns(stream).filter(|_| is_terminal);
    Style { color, width: asked.or_else(drawn).unwrap_or(120) }
}
