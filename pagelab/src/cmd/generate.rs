//! Completions and man pages, made from the command line's own definition.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;
use pagelab_sys::files::folder::Folder;

use crate::{
    args::Run,
    exit::{Exit, Failure},
    output,
};

/// Print a completion script.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Which shell.
    shell: Shell,
}

impl Run for Completions {
    fn run(self) -> Result<Exit, Failure> {
        let script = script(self.shell, &mut super::command());
        let script = String::from_utf8(script).map_err(Failure::internal)?;
        output::result(&script)?;
        Ok(Exit::Good)
    }
}

/// Write man pages and completion scripts into a directory.
#[derive(Debug, Args)]
pub(super) struct Generate {
    #[arg(long, value_name = "DIR")]
    #[arg(help = "Where to: man1/ for MANPATH, completions/ for bash, zsh and fish")]
    out: PathBuf,
}

impl Run for Generate {
    /// Writes `completions/` and `man1/` under a directory.
    fn run(self) -> Result<Exit, Failure> {
        let mut command = super::command();
        let folder = |name| Folder::make(&self.out.join(name)).map_err(Failure::usage);
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
            write(&completions, name, &script(shell, &mut command.clone()))?;
        }
        command.build();
        let man = folder("man1")?;
        pages(&command, "pagelab", &mut |name, page| write(&man, &format!("{name}.1"), &page))?;
        Ok(Exit::Good)
    }
}

fn script(shell: Shell, of: &mut Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, of, "pagelab", &mut script);
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
