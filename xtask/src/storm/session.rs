//! A run that is killed, perhaps resumed and killed again, and resumed to its end.
//!
//! The one idea: whatever happens in it, a session begins and ends with the machine at rest, and
//! what its journals held at each moment is kept for the judge.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    commands::{Command, SUITE},
    draw::Draw,
    family::{TARGETS, Target},
    judge::{Moment, judge},
    life::{Blow, Life},
    machine,
    settings::Settings,
    tally::Tally,
};

/// The run's directory in a session's.
const OUT: &str = "run";
/// How often a command is tried that somebody else's run comes before.
const ATTEMPTS: usize = 100;
/// A run that is hit in a part of it goes on for so long at most before it is hit again.
const SECOND_MAX: Duration = Duration::from_secs(1);

/// Sessions of one storm.
#[derive(Debug)]
pub(super) struct Sessions {
    binary: PathBuf,
    folder: PathBuf,
    /// How long each command takes when nobody disturbs it.
    spans: BTreeMap<&'static str, Duration>,
    pub(super) tally: Tally,
}

/// One of them.
#[derive(Debug)]
struct Session<'s> {
    command: &'static Command,
    folder: PathBuf,
    before: Settings,
    draw: &'s mut Draw,
    moments: Vec<Moment>,
    lives: usize,
}

impl Sessions {
    /// None has begun.
    pub(super) fn new(binary: &Path, folder: &Path) -> Self {
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        Self { binary, folder, spans: BTreeMap::new(), tally: Tally::default() }
    }

    /// One session; what is wrong goes into the tally.
    pub(super) fn one(
        &mut self,
        command: &'static Command,
        number: u64,
        mut draw: Draw,
    ) -> Result<()> {
        let span = match self.spans.get(command.name.as_str()) {
            Some(span) => *span,
            None => self.find_span(command)?,
        };
        let folder = self.folder.join(number.to_string());
        let mut session = Session::begin(command, folder, &mut draw)?;
        let left = self.tally.left.len();
        let life = self.live(&mut session, &command.words(OUT), &command.name, span)?;
        if life.hits.is_empty() && life.took < span {
            // It is shorter than was thought.
            self.spans.insert(&command.name, life.took);
        }
        for journal in session.journals() {
            if session.draw.one_in(2) {
                let mut words = command.resume(session.relative(&journal));
                // What it says is counted.
                words.retain(|word| word != "--quiet");
                self.live(&mut session, &words, "resume", span)?;
            }
        }
        let complete = self.complete(&mut session)?;
        let moment = session.look(0);
        session.moments.push(moment);
        let judged = judge(&session.moments, complete);
        let is_good = judged.lost.is_empty() && judged.doubled.is_empty();
        self.tally.judged(judged);
        if is_good && left == self.tally.left.len() {
            return fs::remove_dir_all(&session.folder).context("removing a run");
        }
        println!("storm: session {number} ({}) in {}", command.name, session.folder.display());
        Ok(())
    }

    /// Runs a command once without a kill.
    fn find_span(&mut self, command: &'static Command) -> Result<Duration> {
        let span = if let Some(span) = command.at_most_ms.map(Duration::from_millis) {
            span
        } else {
            let name = command.name.replace([' ', ':'], "-");
            let folder = self.folder.join(format!("whole-{name}"));
            let mut draw = Draw::of(0, 0);
            let mut session = Session::begin(command, folder, &mut draw)?;
            let life = self.undisturbed(&mut session, &command.words(OUT))?;
            let code = life.status.code();
            let done = is_done(code) || code == CASE_FAILED;
            ensure!(done, "`{}` exits with {code:?}: {}", command.name, life.said());
            life.took
        };
        self.spans.insert(&command.name, span);
        Ok(span)
    }

    /// A life with kills, and what comes after it.
    fn live(
        &mut self,
        session: &mut Session<'_>,
        words: &[String],
        name: &'static str,
        span: Duration,
    ) -> Result<Life> {
        let blows = session.blows(span);
        let said = session.records();
        let life = self.lived(session, words, &blows)?;
        for hit in &life.hits {
            self.tally.kill(name, hit.target, hit.changed);
        }
        if life.hung {
            self.tally.left.push(format!("{name} did not end: {}", life.said()));
        }
        let told = if session.command.is_silent { 0 } else { life.told() };
        let moment = session.look(said + told);
        session.moments.push(moment);
        let patience = machine::patience(self.tally.left.len());
        let heir = life.was_killed() && life.lost_its_watchdog();
        if heir {
            // A program that outlives its pagelab keeps the pages of a pool until it ends.
            let _ = machine::survivors(&life.members, &life.since, patience);
            self.restore(session)?;
        }
        let back = machine::back(&session.before, life.pid, &life.since, patience)?;
        if life.was_killed() && life.hits.iter().any(|hit| hit.changed) {
            back.after.into_iter().for_each(|after| self.tally.back(after, !heir));
        }
        let targets: Vec<_> = life.hits.iter().map(|hit| hit.target.to_string()).collect();
        let after = format!("{name}, {} killed", targets.join(" and "));
        let is_left = !back.left.is_empty();
        let survivors = machine::survivors(&life.members, &life.since, patience);
        let left = back.left.into_iter().chain(survivors);
        self.tally.left.extend(left.map(|what| format!("{after}: {what}")));
        if is_left {
            // For the next session; this one has been judged.
            self.undisturbed(session, &["doctor".to_owned(), "--restore".to_owned()])?;
            session.before = machine::at_rest()?;
        }
        Ok(life)
    }

    /// What a run and its watchdog left is put back: on request, or by the next run.
    fn restore(&self, session: &mut Session<'_>) -> Result<()> {
        let number = session.lives;
        let words: &[&str] = if session.draw.one_in(2) {
            &["doctor", "--restore"]
        } else {
            fs::write(session.folder.join("next.toml"), NEXT).context("writing a suite")?;
            &["run", "--quiet", "--suite", "./next.toml", "-o", &format!("../next-{number}")]
        };
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        let life = self.undisturbed(session, &words)?;
        let folder = session.folder.join(format!("../next-{number}"));
        if folder.exists() {
            fs::remove_dir_all(folder).context("removing a run")?;
        }
        let code = life.status.code();
        let done = is_done(code) || (words[0] == "run" && code == CASE_FAILED);
        ensure!(done, "`{}` exits with {code:?}: {}", words.join(" "), life.said());
        Ok(())
    }

    /// Resumes every journal to its end; false where that is not possible by design.
    fn complete(&mut self, session: &mut Session<'_>) -> Result<bool> {
        let mut complete = true;
        for journal in session.journals() {
            let words = session.command.resume(session.relative(&journal));
            let life = self.undisturbed(session, &words)?;
            match life.status.code() {
                // A case that was killed has failed, and is done.
                code if is_done(code) || code == CASE_FAILED => {}
                // A program that was not watched to its end is not watched again.
                Some(2) if session.command.name == "explain" => complete = false,
                code => {
                    let said = life.said();
                    self.tally
                        .left
                        .push(format!("{} ended with {code:?}: {said}", words.join(" ")));
                    complete = false;
                }
            }
        }
        Ok(complete)
    }

    fn undisturbed(&self, session: &mut Session<'_>, words: &[String]) -> Result<Life> {
        self.lived(session, words, &[])
    }

    /// A life, begun again while somebody else has the machine.
    fn lived(&self, session: &mut Session<'_>, words: &[String], blows: &[Blow]) -> Result<Life> {
        for _ in 0..ATTEMPTS {
            let mut command = std::process::Command::new(&self.binary);
            command.args(words).current_dir(&session.folder).env("NO_COLOR", "1");
            session.lives += 1;
            let said = session.folder.join(format!("said-{}", session.lives));
            let (out, moments) = (session.folder.join(OUT), &mut session.moments);
            let mut look = || moments.push(moment(&out, 0));
            let life = Life::lived(&mut command, &said, blows, session.draw, &mut look)?;
            if !life.was_refused() {
                return Ok(life);
            }
            machine::at_rest()?;
        }
        anyhow::bail!("others came before {ATTEMPTS} times: run the storm when they have ended")
    }
}

/// A run that needs a setting, and so takes the machine.
const NEXT: &str = r#"name = "next"
summary = "puts back what is left"
forks = 1
budget = 0.02
repetitions-min = 1
[[case]]
workload = "fault/throughput"
page = "64k"
size = "1m"
rounds = "1"
"#;

impl<'s> Session<'s> {
    fn begin(command: &'static Command, folder: PathBuf, draw: &'s mut Draw) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        if let Some(suite) = command.suite() {
            fs::write(folder.join(SUITE), suite).context("writing a suite")?;
        }
        let before = machine::at_rest()?;
        Ok(Self { command, folder, before, draw, moments: Vec::new(), lives: 0 })
    }

    /// One blow at any moment of the span; where a part is hit, perhaps another at the rest.
    fn blows(&mut self, span: Duration) -> Vec<Blow> {
        let target = TARGETS[self.draw.below(TARGETS.len())];
        let mut blows = vec![Blow { after: self.draw.moment(span), target }];
        let is_part = matches!(target, Target::Case | Target::Watchdog);
        // What takes long is not waited for.
        if is_part && (span > SECOND_MAX || self.draw.one_in(2)) {
            let target = [Target::Main, Target::Group, Target::Tree][self.draw.below(3)];
            blows.push(Blow { after: self.draw.moment(span.min(SECOND_MAX)), target });
        }
        blows
    }

    /// The directories that hold a journal with its header: what can be resumed.
    fn journals(&self) -> Vec<PathBuf> {
        let found = found(&self.folder.join(OUT), 2);
        let begun = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.contains(&b'\n'));
        let begun = found.into_iter().filter(begun);
        begun.filter_map(|path| path.parent().map(Path::to_owned)).collect()
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).display().to_string()
    }

    fn look(&self, told: usize) -> Moment {
        moment(&self.folder.join(OUT), told)
    }

    /// Records that are there now.
    fn records(&self) -> usize {
        self.look(0).records()
    }
}

fn moment(out: &Path, told: usize) -> Moment {
    let read = |path: PathBuf| Some((path.display().to_string(), fs::read(path).ok()?));
    Moment { journals: found(out, 2).into_iter().filter_map(read).collect(), told }
}

/// Journals below a directory.
fn found(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() && depth > 0 {
            all.extend(found(&path, depth - 1));
        } else if path.file_name().is_some_and(|name| name == "journal.jsonl") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// A case was killed, or cut off at its limit because the machine stood still.
const CASE_FAILED: Option<i32> = Some(1);

/// Whether a command that nobody killed did what it could: what it left is judged apart, and a case
/// that another process disturbed, or that this machine lacks something for, is none of a storm's.
const fn is_done(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 4 | 6))
}
