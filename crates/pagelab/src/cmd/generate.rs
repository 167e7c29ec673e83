//! Completions and man pages, made from the command line's own definition.

use std::path::Path;

use anyhow::Context;
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use pagelab_sys::files::folder::Folder;

use super::text;
use crate::{
    args,
    exit::{Exit, Failure},
    output,
};

/// Prints the completion script of a shell.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn completions(matches: &ArgMatches) -> Result<Exit, Failure> {
    let shell = matches.get_one::<Shell>("shell").copied().expect("clap requires a shell");
    let script = String::from_utf8(script(shell)).map_err(Failure::internal)?;
    output::result(&script)?;
    Ok(Exit::Good)
}

/// Writes `completions/` and `man1/` under a directory.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn generate(matches: &ArgMatches) -> Result<Exit, Failure> {
    let out = Path::new(text(matches, "out").unwrap_or("."));
    let folder = |name| Folder::make(&out.join(name)).map_err(Failure::usage);
    let write = |folder: &Folder, name: &str, bytes: &[u8]| {
        folder
            .replace(name, bytes)
            .with_context(|| format!("cannot write {}", folder.path().join(name).display()))
            .map_err(Failure::host)
    };
    let completions = folder("completions")?;
    for (shell, name) in
        [(Shell::Bash, "pagelab.bash"), (Shell::Zsh, "_pagelab"), (Shell::Fish, "pagelab.fish")]
    {
        write(&completions, name, &script(shell))?;
    }
    let mut command = args::command();
    command.build();
    let man = folder("man1")?;
    pages(&command, "pagelab", &mut |name, page| write(&man, &format!("{name}.1"), &page))?;
    Ok(Exit::Good)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "pagelab", &mut script);
    script
}

/// Writes a page under a name.
type Writer<'w> = dyn FnMut(&str, Vec<u8>) -> Result<(), Failure> + 'w;

/// One page for a command and each below it; a workload's slash becomes a dash in the file's name.
fn pages(command: &Command, name: &str, write: &mut Writer<'_>) -> Result<(), Failure> {
    let mut page = Vec::new();
    let titled = command.clone().name(name.to_owned()).display_name(name.to_owned());
    clap_mangen::Man::new(titled).render(&mut page).map_err(Failure::internal)?;
    write(name, page)?;
    for sub in
        command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
    {
        pages(sub, &format!("{name}-{}", sub.get_name().replace('/', "-")), write)?;
    }
    Ok(())
}
