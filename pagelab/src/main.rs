//! The `pagelab` binary: arguments in, one command, an exit code out.
//!
//! What pagelab consists of is a table ([`PARTS`]): everything that measures and everything that is
//! shown of it is a part's; here are the commands for all of them.

#[macro_use(host, usage)]
extern crate pagelab_cli;

mod cmd;

use std::{ffi::OsString, path::Path, process::ExitCode};

use self::{
    exit::{Exit, Failure},
    settings::CASE_COMMAND,
};
pub(crate) use pagelab_cli::{
    args, examples, exit, history, latest, lock, output, part, plan, progress, published, resume,
    session, settings, trials,
};
use pagelab_parts::PARTS;
use pagelab_sys::{
    knobs::{Place, WATCHDOG_COMMAND, watchdog_main},
    process::{
        child::take_name,
        minder::{MINDER_COMMAND, minder_main},
        stack::with_room,
    },
};

fn main() -> ExitCode {
    part::set(PARTS);
    with_room(asked)
}

/// What the command line asks for.
fn asked() -> ExitCode {
    // The hidden parts come first: they are no command line of anybody's, and the watchdog must
    // start without a thread and without output.
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut hidden = part::parts().flat_map(|part| part.hidden);
    if let Some(hidden) = hidden.find(|hidden| (hidden.is_it)(&words)) {
        return (hidden.main)();
    }
    match words.get(1).and_then(|word| word.to_str()) {
        Some(CASE_COMMAND) => {
            take_name();
            return case();
        }
        Some(MINDER_COMMAND) => {
            let mark = words.get(2).and_then(|word| word.to_str()).unwrap_or_default();
            take_name();
            minder_main(mark);
            return ExitCode::SUCCESS;
        }
        Some(WATCHDOG_COMMAND) => {
            let directory = words.get(2).map_or(Path::new(""), Path::new);
            take_name();
            let code = watchdog_main(&Place::at(directory));
            return ExitCode::from(u8::try_from(code).unwrap_or(70));
        }
        _ => (),
    }
    let matches = match cmd::command_for(&words).try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are answers, not mistakes; a closed pipe is neither.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Good };
            let _ = error.print();
            return code.into();
        }
    };
    match cmd::dispatch(&matches) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::warn(&format!("error: {}", failure.sentence()));
            failure.exit.into()
        }
    }
}

fn case() -> ExitCode {
    match pagelab_bench::runner::case_main(part::workloads()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            output::warn(&why);
            Failure::internal(anyhow::anyhow!(why)).exit.into()
        }
    }
}
