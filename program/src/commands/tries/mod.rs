//! `pagelab try`: a program on every way to larger pages that this machine offers.
//!
//! The program's own output goes into the run's directory, a file for each rung; stdout has the
//! report. Settings of the machine are changed for a single run of the program at a time.

mod attached;
mod chosen;
mod input;
mod prediction;
mod told;
mod way;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    rc::Rc,
    time::Duration,
};

use crate::ladder::{
    load::{Load, Ready, Score},
    once::Around,
    rungs::{Ground, Offer},
};
use crate::views::tries::{BuildLimit, exceeded};
use anyhow::Context;
use clap::Args;
use pagelab_bench::{
    asked::{Seconds, Share, Whole, ppm, share},
    plan::Plan,
};
use pagelab_cli::program::Program;
use pagelab_record::{Asked, asked, units::parse_bytes, verdict::DELTA};
use pagelab_report::Forms;
use pagelab_sys::process::{catch_interrupts, tree};

use self::{chosen::chosen, input::input};
use pagelab_cli::{
    args::{Format, Output, Quiet, Run, Wait},
    exit::{Exit, Failure},
    output, session, settings,
};

/// Rounds of the program where nobody says: three looks, at 12, 24 and 48.
const ROUNDS: Rounds = Rounds::of(48);

/// Rounds of a program.
type Rounds = Whole<10_000>;

/// Which way to larger pages helps a program, tried and proven.
///
/// Runs the program on every rung: base pages, as set up, and each way to larger pages that this
/// machine offers, in an order that is drawn for each round. Two rounds of all, then base pages,
/// what is set up and the best three until they are decided. Its output goes into the run's
/// directory, a file for each rung. With --budget fewer run, the likeliest to gain first.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub(crate) struct Try {
    /// These rungs only, beside plain and as-set-up.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    rung: Vec<String>,
    /// A rung by the program's own setting, NAME=COMMAND; pool:NAME=COMMAND sets pages aside.
    #[arg(long, value_name = "RUNG", conflicts_with = "pid")]
    own: Vec<asked::Own>,
    /// Another build of the program, NAME=PATH, which gets the same arguments: nothing else runs
    /// beside the program, in turns.
    #[arg(long, value_name = "BUILD", value_parser = asked::Own::build)]
    #[arg(conflicts_with_all = ["pid", "rung", "own", "fit"])]
    build: Vec<asked::Own>,
    /// Exit with 1 where a build is worse than the program by more than this: time:3%, faults:1%.
    #[arg(long, value_name = "METRIC:SHARE", value_delimiter = ',', value_parser = limit)]
    #[arg(requires = "build")]
    fail_on: Vec<BuildLimit>,
    /// Rounds at most.
    #[arg(long, value_name = "N")]
    #[arg(help = "Rounds at most (default 48)")]
    rounds: Option<Rounds>,
    /// Rounds before a verdict may end it, as far as --rounds and --budget go.
    #[arg(long, value_name = "N")]
    min_rounds: Option<Rounds>,
    /// Stop after SECONDS: what they have no time for is left out and listed.
    ///
    /// The first run, one as set up and one on the best candidate come in any case. Without it:
    /// two rounds of all, then twelve of the best, or as many as end within 60 seconds.
    #[arg(long, value_name = "SECONDS")]
    budget: Option<Seconds>,
    /// Treat differences below this share as equal, 3% or 0.03 (default 3%).
    #[arg(long, value_name = "SHARE")]
    delta: Option<Share>,
    /// What the program reads, from its beginning each time; - is a pipe, kept in memory.
    #[arg(long, value_name = "FILE")]
    #[arg(
        help = "What the program reads, from its beginning each time; - keeps what a pipe says \
                  (default: stdin where it is a file or a terminal, else nothing)"
    )]
    input: Option<PathBuf>,
    /// The program serves: this command of a shell is its client, whose time counts; then it ends.
    #[arg(long, value_name = "COMMAND", requires = "served")]
    until: Option<OsString>,
    /// The server is ready when somebody answers at port:NUMBER, or says line:REGEX.
    #[arg(long, value_name = "HOW", requires = "until", group = "served")]
    ready: Option<Ready>,
    /// A process that runs already, and goes on: loaded before and after its memory is collapsed.
    #[arg(long, value_name = "PID", requires = "until", group = "served")]
    #[arg(conflicts_with_all = [
        "program", "rung", "budget", "min_rounds", "input", "limit", "fragmented", "same_output",
        "no_prediction", "setup", "cleanup",
    ])]
    pid: Option<u32>,
    /// A number in the client's output, more:NAME=REGEX or less:NAME=REGEX; the first one decides.
    #[arg(long, value_name = "SCORE", requires = "until")]
    score: Vec<Score>,
    /// Run it in a memory cgroup of its own with this limit (512m); as root.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit: Option<u64>,
    /// Break free memory up before each run: a price on a fresh machine is the best case.
    #[arg(long)]
    fragmented: bool,
    /// A rung on which the program's output is another fails.
    #[arg(long)]
    same_output: bool,
    /// Take this exit code of the program for success (default 0).
    #[arg(long, value_name = "CODE", conflicts_with_all = ["pid", "until"])]
    exit: Option<u8>,
    /// Leave out what explain predicts: a run of the program that is watched, and a few seconds.
    #[arg(long)]
    no_prediction: bool,
    /// Choose single mappings that are worth it, and set them beside all: how much of the gain for
    /// how much of the memory, and the calls to paste.
    #[arg(long, conflicts_with_all = ["pid", "no_prediction"])]
    #[arg(help = "Which mappings are worth it: chosen, and tried beside all of them")]
    fit: bool,
    /// A command of a shell before each run.
    #[arg(long, value_name = "COMMAND")]
    setup: Option<OsString>,
    /// A command of a shell after each run, whatever came of it.
    #[arg(long, value_name = "COMMAND")]
    cleanup: Option<OsString>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    format: Format,
    /// The program and its arguments, after --.
    #[arg(required_unless_present = "pid")]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 1..)]
    program: Vec<OsString>,
}

impl Run for Try {
    fn run(self) -> Result<Exit, Failure> {
        // What is offered follows from how the machine is set up.
        settings::undisturbed(self.wait.patience())?;
        if let Some(pid) = self.pid {
            return attached::run(&self, pid);
        }
        let program = known(&self.program)?;
        let offers = chosen(&self, &program)?;
        let asked = self.asked(&offers);
        let input = input(asked.around.input.as_deref())?;
        let place = self.output.place();
        let mut header = session::header(&place.run, "", &[], &Plan::default());
        header.asked = Some(Asked::Try(asked.clone()));
        let run = session::Run::start(&place, header)?;
        let conduct = (self.wait.patience(), self.quiet.quiet);
        let subject = (program, offers, input);
        let mut done = carry_out(run, subject, &asked, self.surroundings(), conduct)?;
        let exceeded = exceeded(done.report.run(), &self.fail_on);
        if done.exit == Exit::Good && !exceeded.is_empty() {
            done.exit = Exit::CaseFailed;
        }
        self.tell(&done)?;
        for limit in exceeded {
            output::warn(&format!("worse than --fail-on {limit}"));
        }
        Ok(done.exit)
    }
}

/// Goes on with a run that stopped: the rounds that it has stay.
pub(super) fn resume(
    run: session::Run,
    tried: &asked::Try,
    conduct: (Duration, bool),
) -> Result<Exit, Failure> {
    if let Some(pid) = tried.pid {
        let why = format!("process {pid} has changed since: nothing goes on, only begins again");
        return Err(usage!("{why}: pagelab try --pid PID --until COMMAND"));
    }
    let words: Vec<OsString> = tried.program.iter().map(OsString::from).collect();
    if words.is_empty() {
        return Err(usage!("the words of its program are no text: start again with pagelab try"));
    }
    if let Some(own) = tried.own.iter().find(|own| !own.is_sound()) {
        return Err(usage!("its journal has a rung {:?}, which is no name", own.name));
    }
    settings::undisturbed(conduct.0)?;
    let program = known(&words)?;
    let ground = Ground { fits: tried.fits, own: &tried.own, ..Ground::of(&program) };
    let mut offers = ground.offers();
    offers.retain(|offer| tried.rungs.iter().any(|rung| rung.name == offer.rung.name));
    let refused = |why: String| usage!("this version cannot go on: {why}");
    let around = &tried.around;
    let asked::Around { setup, cleanup, client, ready, scores, input: file, .. } = around;
    let ready = ready.as_deref().map(str::parse::<Ready>).transpose().map_err(refused)?;
    let scores = scores.iter().map(|score| score.parse::<Score>()).collect::<Result<Vec<_>, _>>();
    let scores = scores.map_err(refused)?;
    let load = client.clone().zip(ready);
    let load = load.map(|(client, ready)| Load { ready, client: client.into(), scores });
    let [setup, cleanup] = [setup, cleanup].map(|command| command.as_ref().map(OsString::from));
    let input = input(file.as_deref())?;
    run.forget_scratch(offers.iter().flat_map(|offer| names(&offer.rung.name)));
    let subject = (program, offers, input);
    session::tell(&carry_out(run, subject, tried, Around { setup, cleanup, load }, conduct)?)
}

/// The program that some words start.
fn known(words: &[OsString]) -> Result<Program, Failure> {
    let name = words[0].to_string_lossy().into_owned();
    Program::of(words).context(name).map_err(Failure::usage)
}

/// What a run needs: the program, its rungs, and what it reads.
type Subject = (Program, Vec<Offer>, Option<File>);

fn carry_out(
    mut run: session::Run,
    subject: Subject,
    asked: &asked::Try,
    around: Around,
    (patience, quiet): (Duration, bool),
) -> Result<session::Done, Failure> {
    let changes = changes(&subject.1);
    if !changes.is_empty() && !quiet {
        output::warn(&format!(
            "set for one run of the program at a time, for everybody, and put back: {}",
            changes.join(", ")
        ));
    }
    let knobs = if asked.around.limit.is_some() || !changes.is_empty() {
        Some(Rc::new(settings::knobs(&run.header.run, patience)?))
    } else {
        None
    };
    catch_interrupts();
    tree::adopt_orphans();
    let end = way::up(&mut run, subject, knobs.as_ref(), asked, around, (patience, quiet))?;
    // Puts the settings back before anything slow is drawn.
    drop(knobs);
    run.conclude(end)
}

/// The settings of the machine that some rungs change, each once.
fn changes(offers: &[Offer]) -> Vec<String> {
    let offers = offers.iter().filter(|offer| offer.rung.lacks.is_empty());
    let paths = offers.flat_map(|offer| {
        let settings = offer.start.settings.iter().map(|(path, _)| path);
        settings.chain(offer.start.pool.as_ref().map(|(_, path)| path))
    });
    let paths: BTreeSet<_> = paths.map(|path| path.display().to_string()).collect();
    paths.into_iter().collect()
}

/// The files of a rung in the run's directory.
fn names(rung: &str) -> [String; 3] {
    ["stdout", "stderr", "client"].map(|what| format!("{rung}.{what}"))
}

impl Try {
    /// Prints what came of it.
    fn tell(&self, done: &session::Done) -> Result<Exit, Failure> {
        if !self.format.is_json() {
            return session::tell(done);
        }
        output::result(&done.report.json())?;
        done.tell();
        Ok(done.exit)
    }

    /// The question of the header.
    fn asked(&self, offers: &[Offer]) -> asked::Try {
        let text = |words: &Option<OsString>| Some(words.as_ref()?.to_string_lossy().into_owned());
        let words = self.program.iter().map(|word| word.to_str().map(ToOwned::to_owned));
        let around = asked::Around {
            input: self.input.as_ref().map(|path| path.to_string_lossy().into_owned()),
            limit: self.limit,
            fragmented: self.fragmented,
            same_output: self.same_output,
            exit: self.exit.unwrap_or(0),
            setup: text(&self.setup),
            cleanup: text(&self.cleanup),
            client: text(&self.until),
            ready: self.ready.as_ref().map(ToString::to_string),
            scores: self.score.iter().map(ToString::to_string).collect(),
        };
        asked::Try {
            rungs: offers.iter().map(|offer| offer.rung.clone()).collect(),
            // JSON readers hold numbers of 53 bits.
            seed: RandomState::new().hash_one(0_u8) >> 11,
            rounds: self.rounds.unwrap_or(ROUNDS).get(),
            min_rounds: self.min_rounds.map_or(0, Rounds::get),
            budget_ns: self.budget.map(Seconds::ns),
            delta_ppm: ppm(self.delta.map_or(DELTA, Share::get)),
            program: words.collect::<Option<_>>().unwrap_or_default(),
            named: self.rung.iter().chain(self.build.iter().map(|of| &of.name)).cloned().collect(),
            own: self.own.iter().chain(&self.build).cloned().collect(),
            around,
            predicts: !self.no_prediction && self.build.is_empty(),
            fits: self.fit,
            pid: None,
        }
    }

    fn surroundings(&self) -> Around {
        let client = self.until.clone().zip(self.ready.clone());
        let load = client.map(|(client, ready)| Load { ready, client, scores: self.score.clone() });
        Around { setup: self.setup.clone(), cleanup: self.cleanup.clone(), load }
    }
}

/// A limit for other builds of the program, as it is typed.
fn limit(text: &str) -> Result<BuildLimit, String> {
    let parts = text.split_once(':');
    let limit = match parts {
        Some(("time", worse)) => BuildLimit::Time(share(worse)?),
        Some(("faults", worse)) => BuildLimit::Faults(share(worse)?),
        _ => return Err(format!("`{text}` is no limit: write time:3% or faults:1%")),
    };
    Ok(limit)
}

fn bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("expected bytes, as 512m".to_owned()),
    }
}
