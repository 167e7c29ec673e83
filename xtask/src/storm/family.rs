//! The processes of one run, and how they are killed.
//!
//! The one idea: a number of a process may be somebody else's a moment later, so a kill goes
//! through a descriptor that was opened first and checked afterwards to be of the process that was
//! meant. Nothing is killed that did not descend from the run.

use std::{collections::BTreeMap, fmt, fs, process::Child};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::draw::Draw;

/// What of a run is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// The process that was started.
    Main,
    /// Its process group at once, as a terminal would.
    Group,
    /// The process of a case.
    Case,
    /// The process that puts settings back.
    Watchdog,
    /// Everything, the watchdog too, in any order.
    Tree,
}

/// In the order of the summary.
pub(super) const TARGETS: [Target; 5] =
    [Target::Main, Target::Group, Target::Case, Target::Watchdog, Target::Tree];

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Main => "main",
            Self::Group => "group",
            Self::Case => "child",
            Self::Watchdog => "watchdog",
            Self::Tree => "tree",
        })
    }
}

/// A process, told from a later one of the same number by when it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pid: i32,
    started: u64,
    /// Its first argument.
    role: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.role)
    }
}

/// A process as `/proc/PID/stat` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: i32,
    started: u64,
}

impl Member {
    /// Whether it runs still.
    pub(super) fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|now| now.started == self.started && !"ZX".contains(now.state))
    }

    /// Kills it; false where it had ended already.
    fn kill(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // Now that the number is held, it is the one that was meant, or another.
        self.is_alive() && pidfd_send_signal(descriptor, Signal::KILL).is_ok()
    }
}

/// Every process that descends from one, itself first.
pub(super) fn family(main: u32) -> Vec<Member> {
    let main = main.cast_signed();
    let mut children: BTreeMap<i32, Vec<(i32, u64)>> = BTreeMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some(stat) = stat(pid).filter(|stat| !"ZX".contains(stat.state)) {
            children.entry(stat.parent).or_default().push((pid, stat.started));
        }
    }
    let member = |pid: i32, started: u64| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let role = words.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        Member { pid, started, role: String::from_utf8_lossy(role).into_owned() }
    };
    let mut all: Vec<Member> =
        stat(main).map(|stat| member(main, stat.started)).into_iter().collect();
    let mut next = 0;
    while let Some(parent) = all.get(next) {
        let below = children.get(&parent.pid).cloned().unwrap_or_default();
        all.extend(below.into_iter().map(|(pid, started)| member(pid, started)));
        next += 1;
    }
    all
}

/// The process of a family that is meant; `None` also where it is not there now.
fn part(family: &[Member], target: Target) -> Option<&Member> {
    let role = match target {
        Target::Case => "__case",
        Target::Watchdog => "__knob-watchdog",
        Target::Main | Target::Group | Target::Tree => return family.first(),
    };
    family.iter().find(|member| member.role == role)
}

/// Whether what is to be killed is there.
pub(super) fn has(child: &Child, target: Target) -> bool {
    part(&family(child.id()), target).is_some()
}

/// Kills what was asked for, or where it is not there, the main process; says what it was. `None`
/// where the run had ended already.
///
/// The child is not waited for before, so its number, and that of its group, are its own.
pub(super) fn strike(child: &Child, target: Target, draw: &mut Draw) -> Option<Target> {
    let family = family(child.id());
    let main = family.first().filter(|main| main.is_alive())?;
    let kill_main = || main.kill().then_some(Target::Main);
    match target {
        Target::Main => kill_main(),
        Target::Group => {
            let pid = Pid::from_raw(child.id().cast_signed())?;
            kill_process_group(pid, Signal::KILL).is_ok().then_some(Target::Group)
        }
        Target::Case | Target::Watchdog => match part(&family, target) {
            Some(member) if member.kill() => Some(target),
            _ => kill_main(),
        },
        Target::Tree => {
            let mut order: Vec<_> = family.iter().collect();
            draw.shuffle(&mut order);
            for member in order {
                member.kill();
            }
            Some(Target::Tree)
        }
    }
}

fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `PID (NAME) STATE PARENT …`; the name may hold anything, even a bracket.
fn parse(text: &str) -> Option<Stat> {
    let words: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: words.first()?.chars().next()?,
        parent: words.get(1)?.parse().ok()?,
        // Field 22 of proc(5).
        started: words.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let rest = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4711 0";
        let stat = parse(&format!("12 (a) b) R 7 {rest}")).unwrap();
        assert_eq!(stat, Stat { state: 'R', parent: 7, started: 4711 });
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn a_family_is_what_descends_from_its_first_and_all_of_it_is_killed() {
        let script = "sleep 1000 & read forever";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let members = loop {
            let members = family(child.id());
            if members.len() == 2 && members[1].role == "1000" {
                break members;
            }
        };
        assert_eq!(members[0].pid, child.id().cast_signed());
        assert!(members.iter().all(Member::is_alive));
        let struck = strike(&child, Target::Tree, &mut Draw::of(1, 1));
        assert_eq!(struck, Some(Target::Tree));
        assert!(!child.wait().unwrap().success());
        while members.iter().any(Member::is_alive) {
            std::thread::yield_now();
        }
        assert_eq!(strike(&child, Target::Tree, &mut Draw::of(1, 1)), None, "it has ended");
    }

    #[test]
    fn what_is_not_there_falls_on_the_main_process() {
        let mut child =
            Command::new("sh").args(["-c", "read x"]).stdin(Stdio::piped()).spawn().unwrap();
        let struck = strike(&child, Target::Watchdog, &mut Draw::of(1, 1));
        assert_eq!(struck, Some(Target::Main));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_later_process_of_the_same_number_is_another() {
        let me = family(std::process::id()).swap_remove(0);
        assert!(me.is_alive());
        let other = Member { started: me.started + 1, ..me };
        assert!(!other.is_alive() && !other.kill());
    }
}
