//! `pagelab segment`: contiguous memory in large leaves for a program that knows nothing of it.
//!
//! The one idea: the library inside the program does it (the crate in `segment/library/`); here it
//! is put there, asked by the variables of the publication, and what it counted is told after the
//! end. The program has stdin, stdout, stderr, its exit code and its signals to itself.

mod backing;
mod program;
mod status;
mod told;
mod wrap;
mod zeroing;

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command as Process,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use pagelab_cli::{
    args::{self, Row},
    exit::{Exit, Failure},
    output, preload,
};
use pagelab_interpose::segment::{
    self, Backing, Bad, Counts, Leaf, SHEET, SHEET_BYTES, Variable, Wish, Zero,
};
use pagelab_record::units::display_bytes;
use pagelab_sys::{
    machine,
    process::{
        CounterPage,
        launch::{Ended, Running},
        relay,
    },
};

use self::{
    program::{able, size},
    zeroing::Prices,
};

/// The commands of `pagelab segment`.
pub(crate) const ROW: Row = Row::group(
    "segment",
    "Segments: contiguous memory in large leaves, for a program as it is",
    &[
        Row::of::<Segmented>("run"),
        Row::of::<status::Status>("status"),
        Row::of::<wrap::Wrap>("wrap"),
    ],
);

/// The name of the page of counts, as `/proc/PID/fd` has it.
const SHEET_NAME: &str = "pagelab-segment";

/// Between two looks at whether the program has ended.
const LOOK: Duration = Duration::from_millis(200);

/// Run a program with its heap and its maps in segments.
///
/// malloc and private anonymous maps come out of contiguous memory that is aligned to its leaf; all
/// else is the kernel's, and counted. The program is a dynamic one of glibc, as it is. What came of
/// it follows on stderr. Flags go before the variables of the publication, which say the same.
#[derive(Debug, Args)]
struct Segmented {
    /// Bytes of the heap's segment (default half of the memory).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    heap: Option<u64>,
    /// Bytes of the segment of maps (default half of the memory).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    mmap: Option<u64>,
    /// Bytes of the main stack to touch ahead.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    stack: Option<u64>,
    /// Collapse the program's code into huge pages, where whole ones lie in it.
    #[arg(long)]
    code: bool,
    /// The largest page that is asked for (default 2m).
    #[arg(long, value_name = "SIZE", hide_possible_values = true)]
    #[arg(help = "The largest page that is asked for: 4k, 2m or 1g (default 2m)")]
    leaf: Option<Leaves>,
    /// What is behind a segment: thp, hugetlb or module (default thp).
    #[arg(long, value_name = "BACKING", value_parser = backing::named)]
    backing: Option<Backing>,
    /// When memory is zeroed (default fault).
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    #[arg(help = "When memory is zeroed: by the fault that needs it, at release by a helper, or \
                  all ahead (default fault)")]
    zero: Option<Zeroing>,
    /// Of all programs that are started, only those whose file has this name.
    #[arg(long, value_name = "NAME")]
    only: Option<OsString>,
    /// End the program when a segment is full, instead of falling back to the kernel.
    #[arg(long)]
    strict: bool,
    /// Also write what came of it as JSON, to a file that does not exist yet.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Say nothing on stderr.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    wait: args::Wait,
    /// The program and its arguments, after --.
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Leaves {
    #[value(name = "4k")]
    Base,
    #[value(name = "2m")]
    Pmd,
    #[value(name = "1g")]
    Pud,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Zeroing {
    Fault,
    Release,
    Ahead,
}

impl args::Run for Segmented {
    fn run(self) -> Result<Exit, Failure> {
        let wish = self.wish(machine::memory_bytes())?;
        let library = preload::library(segment::PACKAGE)?;
        able(&self.program)?;
        let report = output::Named::of(self.report.as_ref())?;
        let start = || self.start(&wish, &library);
        let (ended, counts) = backing::held(&wish, self.wait.patience(), start)?;
        // Nobody waits for what nobody reads.
        let is_told = !self.quiet || report.is_some();
        let prices = if is_told { Prices::here(&wish, &counts) } else { Prices::default() };
        let usage = Some(&ended.usage);
        let told = told::Told { wish: &wish, counts: &counts, usage, prices };
        if !self.quiet {
            told.lines().iter().for_each(|line| output::warn(line));
        }
        if let Some(report) = report {
            report.write(&told.json())?;
        }
        Ok(Exit::like(&ended))
    }
}

impl Segmented {
    /// What is asked for, by the variables and, over them, the flags.
    fn wish(&self, memory: u64) -> Result<Wish, String> {
        let named = |variable: Variable| env::var_os(variable.name()).filter(|v| !v.is_empty());
        let values: Vec<_> = Variable::ALL.iter().map(|variable| named(*variable)).collect();
        let value = |variable: Variable| values[variable as usize].as_deref();
        let said = Wish::read(|variable| value(variable).map(OsStr::as_bytes));
        let said = said.map_err(|bad: Bad| bad.to_string())?;
        let has = |variable| value(variable).is_some();
        let sizes = [Variable::Heap, Variable::Mmap, Variable::Stack, Variable::Code];
        let backing = self.backing.unwrap_or(said.backing);
        let usual = match (has(Variable::Pmd) || has(Variable::Pud), sizes.into_iter().any(has)) {
            // As published: leaves are small where nobody says that they are large.
            (true, _) => said.leaf,
            (false, true) if backing != Backing::Hugetlb => said.leaf,
            (false, _) => Leaf::Pmd,
        };
        let leaf = self.leaf.map_or(usual, |leaf| match leaf {
            Leaves::Base => Leaf::Base,
            Leaves::Pmd => Leaf::Pmd,
            Leaves::Pud => Leaf::Pud,
        });
        let zero = match self.zero {
            None => said.zero,
            Some(Zeroing::Fault) => Zero::Fault,
            Some(Zeroing::Release) => Zero::Release,
            Some(Zeroing::Ahead) => Zero::Ahead,
        };
        // What is set aside or zeroed ahead is taken from everybody.
        let half = match backing {
            Backing::Thp if zero != Zero::Ahead => {
                memory / 2 / Leaf::Pmd.bytes() * Leaf::Pmd.bytes()
            }
            Backing::Thp | Backing::Hugetlb | Backing::Module => 0,
        };
        let segment = |flag: Option<u64>, variable, said: u64| {
            flag.unwrap_or(if has(variable) { said } else { half })
        };
        let wish = Wish {
            heap: segment(self.heap, Variable::Heap, said.heap),
            mmap: segment(self.mmap, Variable::Mmap, said.mmap),
            stack: self.stack.unwrap_or(said.stack),
            code: if self.code { u64::MAX >> 1 } else { said.code },
            leaf,
            zero,
            backing,
            strict: self.strict || said.strict,
        };
        backing::refuse(&wish)?;
        for (variable, flag, bytes) in
            [(Variable::Heap, "--heap", wish.heap), (Variable::Mmap, "--mmap", wish.mmap)]
        {
            if bytes > memory {
                let [asked, there] = [bytes, memory].map(|bytes| display_bytes(bytes as f64));
                let name = variable.name();
                return Err(format!(
                    "{flag} (or {name}) asks for a segment of {asked}, and this machine has \
                     {there} of memory: ask for less"
                ));
            }
        }
        if wish.heap > 0 && wish.heap < segment::HEAP_MIN {
            let least = display_bytes(segment::HEAP_MIN as f64);
            return Err(format!("--heap is less than {least}, the least that can be managed: 64m"));
        }
        Ok(wish)
    }

    /// Runs the program to its end.
    fn start(&self, wish: &Wish, library: &Path) -> Result<(Ended, Counts), Failure> {
        let page = CounterPage::new(SHEET_NAME, SHEET, SHEET_BYTES).map_err(Failure::host)?;
        let mut process = Process::new(&self.program[0]);
        // Its name is as it was typed, whatever the path.
        process.args(&self.program[1..]).arg0(&self.program[0]);
        preload::set(&mut process, library);
        process.envs([page.variable()]);
        process.envs(wish.variables().map(|(variable, value)| (variable.name(), value)));
        if let Some(only) = &self.only {
            process.env(Variable::Only.name(), only);
        }
        let name = || self.program[0].to_string_lossy().into_owned();
        relay::begin();
        let mut running = Running::start(&mut process).map_err(|error| {
            let wants = [io::ErrorKind::WouldBlock, io::ErrorKind::OutOfMemory];
            let is_ours = wants.contains(&error.kind());
            let why = anyhow::Error::new(error).context(name());
            if is_ours { Failure::host(why) } else { Failure::usage(why) }
        })?;
        relay::to(running.pid());
        loop {
            if let Some(ended) = running.wait(LOOK).with_context(name).map_err(Failure::internal)? {
                return Ok((ended, Counts(page.first())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Segmented {
        let command = Segmented::augment_args(clap::Command::new("run"));
        let words = ["run"].into_iter().chain(words.iter().copied()).chain(["--", "true"]);
        args::of(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn half_of_the_memory_each_in_leaves_of_2_mib_is_what_nobody_asked_otherwise() {
        let wish = asked(&[]).wish(8 << 30).unwrap();
        assert_eq!((wish.heap, wish.mmap, wish.leaf), (4 << 30, 4 << 30, Leaf::Pmd));
        let flags = ["--heap", "1g", "--mmap", "0", "--leaf", "4k", "--strict", "--zero", "ahead"];
        let wish = asked(&flags).wish(8 << 30).unwrap();
        assert_eq!((wish.heap, wish.mmap, wish.leaf), (1 << 30, 0, Leaf::Base));
        assert_eq!((wish.strict, wish.zero), (true, Zero::Ahead));
    }

    #[test]
    fn what_no_machine_or_allocator_could_serve_is_refused_with_its_number() {
        let why = asked(&["--mmap", "9g"]).wish(8 << 30).unwrap_err();
        assert!(why.contains("9.00 GiB") && why.contains("8.00 GiB"), "{why}");
        let why = asked(&["--heap", "1m"]).wish(8 << 30).unwrap_err();
        assert!(why.contains("64m"), "{why}");
        let why = asked(&["--zero", "ahead"]).wish(8 << 30).unwrap_err();
        assert!(why.contains("say how much, by --heap or --mmap"), "{why}");
    }
}
