//! The table of cases, `vm/cases.toml`, and how cases share boots.
//!
//! The one idea: the file is the only source; the lane knows no case by name. Cases that agree
//! on kernel, machine and memory share a boot, which brings along what any of them asks for; a case
//! that leaves the kernel changed has a boot of its own.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::{Args, builder::PossibleValuesParser};
use serde::{Deserialize, Serialize};

use super::machines::MACHINES;

/// The kernels, by the names that cases use.
pub(super) const KERNELS: [&str; 5] = ["6.1", "6.1-rt", "6.12", "newest", SANITIZED];
/// The one that is booted only where it is named: it is built here first, which takes long.
pub(super) const SANITIZED: &str = "sanitized";

/// The table.
pub(super) const FILE: &str = "vm/cases.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What stands for several.
    kernels: BTreeMap<String, Vec<String>>,
    case: Vec<Case>,
}

/// A row of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Case {
    /// `topic/fact`.
    pub(super) name: String,
    /// What it shows.
    pub(super) about: String,
    /// Where it runs.
    pub(super) places: Vec<Place>,
    /// 0 for what the machine has by itself.
    pub(super) memory_mib: u32,
    /// For the kernel's command line.
    pub(super) parameters: Vec<String>,
    /// Modules to bring along.
    pub(super) modules: Vec<String>,
    /// Dynamic programs to bring along.
    pub(super) programs: Vec<String>,
    /// Whether it needs a boot of its own.
    pub(super) alone: bool,
    /// Whether its boot must end with a panic of the kernel.
    pub(super) panics: bool,
    /// Whether it may run on a host.
    pub(super) native: bool,
}

/// A machine, and the kernels that a case runs on there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    /// Name of the machine.
    pub(super) machine: String,
    /// Names of the kernels.
    pub(super) kernels: Vec<String>,
}

/// One start of one machine, and what runs in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Boot {
    /// Name of the kernel.
    pub(super) kernel: String,
    /// Name of the machine.
    pub(super) machine: String,
    /// As in [`Case`].
    pub(super) memory_mib: u32,
    /// Of all its cases.
    pub(super) parameters: Vec<String>,
    /// Of all its cases.
    pub(super) modules: Vec<String>,
    /// Of all its cases.
    pub(super) programs: Vec<String>,
    /// Names of its cases, in the table's order.
    pub(super) cases: Vec<String>,
    /// Whether nothing may join it.
    alone: bool,
    /// Whether it must end with a panic of the kernel.
    pub(super) panics: bool,
}

/// What the first process finds in `/orders.json`.
#[derive(Debug, Serialize)]
pub(super) struct Orders<'a> {
    pub(super) kernel: &'a str,
    pub(super) machine: &'a str,
    pub(super) load: &'a [String],
    pub(super) cases: &'a [String],
    pub(super) soak: bool,
}

/// What was asked for on the command line; an empty list means everything.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Asked {
    /// Run cases with one of these in their name; NAME@KERNEL is a case on one kernel
    #[arg(value_name = "FILTER", value_parser = filter)]
    pub(super) filters: Vec<String>,
    /// Leave out such cases
    #[arg(long, value_name = "FILTER", value_delimiter = ',', value_parser = filter)]
    pub(super) except: Vec<String>,
    /// Boot these kernels only
    #[arg(long = "kernel", value_name = "KERNEL", value_delimiter = ',', value_parser = KERNELS)]
    pub(super) kernels: Vec<String>,
    /// Build these machines only
    #[arg(
        long = "machine",
        value_name = "MACHINE",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(MACHINES.iter().map(|one| one.name.as_str()))
    )]
    pub(super) machines: Vec<String>,
}

/// Refuses a kernel that does not exist.
fn filter(text: &str) -> Result<String, String> {
    match text.split_once('@') {
        Some((_, kernel)) if !KERNELS.contains(&kernel) => {
            Err(format!("no kernel is called {kernel}: {}", KERNELS.join(", ")))
        }
        _ => Ok(text.to_owned()),
    }
}

impl Asked {
    /// Whether a case on a kernel was asked for, whatever its machine: none, where one is named.
    pub(super) fn takes(&self, name: &str, kernel: &str) -> bool {
        let is_mine = self.kernels.is_empty() || self.kernels.iter().any(|asked| asked == kernel);
        self.case(name, kernel) && is_mine && self.machines.is_empty()
    }

    fn case(&self, name: &str, kernel: &str) -> bool {
        let names = |parts: &[String]| {
            parts.iter().any(|part| match part.split_once('@') {
                Some((part, only)) => name.contains(part) && kernel == only,
                None => name.contains(part.as_str()),
            })
        };
        (self.filters.is_empty() || names(&self.filters)) && !names(&self.except)
    }

    fn place(&self, kernel: &str, machine: &str) -> bool {
        let among =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|asked| asked == name);
        let is_named = kernel != SANITIZED || !self.kernels.is_empty();
        is_named && among(&self.kernels, kernel) && among(&self.machines, machine)
    }
}

impl Boot {
    /// A name for files and people.
    pub(super) fn name(&self) -> String {
        let memory =
            if self.memory_mib == 0 { String::new() } else { format!("-{}m", self.memory_mib) };
        let alone = if self.alone { format!("-{}", self.cases[0]) } else { String::new() };
        format!("{}-{}{memory}{alone}", self.kernel, self.machine).replace('/', "-")
    }

    fn takes(&self, kernel: &str, machine: &str, case: &Case) -> bool {
        !self.alone
            && !case.alone
            && self.kernel == kernel
            && self.machine == machine
            && self.memory_mib == case.memory_mib
    }

    fn add(&mut self, case: &Case) {
        self.cases.push(case.name.clone());
        for (all, more) in [
            (&mut self.parameters, &case.parameters),
            (&mut self.modules, &case.modules),
            (&mut self.programs, &case.programs),
        ] {
            for word in more {
                if !all.contains(word) {
                    all.push(word.clone());
                }
            }
        }
    }
}

/// Reads the table, with every kernel by its own name.
pub(super) fn read(text: &str) -> Result<Vec<Case>> {
    let File { kernels, mut case } = toml::from_str(text).context(FILE)?;
    for case in &mut case {
        if case.places.is_empty() {
            case.places.push(Place { machine: "base".to_owned(), kernels: vec!["all".to_owned()] });
        }
        for place in &mut case.places {
            let named = std::mem::take(&mut place.kernels).into_iter();
            let each = |name: String| kernels.get(&name).cloned().unwrap_or_else(|| vec![name]);
            place.kernels = named.flat_map(each).collect();
        }
    }
    Ok(case)
}

/// The kernels of these boots, the oldest first.
pub(super) fn kernels(boots: &[Boot]) -> Vec<&'static str> {
    let used = |kernel: &&str| boots.iter().any(|boot| boot.kernel == *kernel);
    KERNELS.into_iter().filter(used).collect()
}

/// Takes the cases that need a module off a kernel.
pub(super) fn leave_out(cases: &mut [Case], module: &str, kernel: &str) {
    for case in cases.iter_mut().filter(|case| case.modules.iter().any(|name| name == module)) {
        for place in &mut case.places {
            place.kernels.retain(|name| name != kernel);
        }
    }
}

/// The boots that run what was asked for, the oldest kernel first.
pub(super) fn boots(cases: &[Case], asked: &Asked) -> Vec<Boot> {
    let mut boots: Vec<Boot> = Vec::new();
    for kernel in KERNELS {
        for case in cases.iter().filter(|case| asked.case(&case.name, kernel)) {
            for place in &case.places {
                let machine = place.machine.as_str();
                let runs = place.kernels.iter().any(|name| name == kernel);
                if !runs || !asked.place(kernel, machine) {
                    continue;
                }
                let takes = |boot: &Boot| boot.takes(kernel, machine, case);
                let at = boots.iter().position(takes).unwrap_or_else(|| {
                    boots.push(Boot {
                        kernel: kernel.to_owned(),
                        machine: machine.to_owned(),
                        memory_mib: case.memory_mib,
                        alone: case.alone,
                        panics: case.panics,
                        ..Boot::default()
                    });
                    boots.len() - 1
                });
                boots[at].add(case);
            }
        }
    }
    boots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, alone: bool, modules: &[&str]) -> Case {
        let place = Place { machine: "base".into(), kernels: KERNELS.map(Into::into).to_vec() };
        Case {
            name: name.into(),
            places: vec![place],
            alone,
            modules: modules.iter().map(|&module| module.into()).collect(),
            ..Case::default()
        }
    }

    #[test]
    fn the_committed_table_names_kernels_and_machines_that_there_are() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../vm/cases.toml");
        let cases = read(&std::fs::read_to_string(file).unwrap()).unwrap();
        for place in cases.iter().flat_map(|case| &case.places) {
            assert!(super::super::machines::find(&place.machine).is_ok(), "{place:?}");
            let known = |name: &String| KERNELS.contains(&name.as_str());
            assert!(!place.kernels.is_empty() && place.kernels.iter().all(known), "{place:?}");
        }
        assert_eq!(cases.iter().filter(|case| case.panics).count(), 1);
    }

    #[test]
    fn cases_that_agree_share_a_boot_and_one_that_is_alone_does_not() {
        let cases =
            [case("a/b", false, &["zram"]), case("c/d", true, &[]), case("e/f", false, &["zram"])];
        let boots = boots(&cases, &Asked::default());
        assert_eq!(boots.len(), 2 * (KERNELS.len() - 1));
        assert_eq!(boots[0].cases, ["a/b", "e/f"]);
        assert_eq!(boots[0].modules, ["zram"]);
        assert_eq!(boots[0].name(), "6.1-base");
        assert_eq!(boots[1].name(), "6.1-base-c-d");
    }

    #[test]
    fn another_memory_is_another_machine() {
        let large = Case { memory_mib: 6144, ..case("a/b", false, &[]) };
        let boots = boots(&[large, case("c/d", false, &[])], &Asked::default());
        assert_eq!(boots.len(), 2 * (KERNELS.len() - 1));
        assert_eq!(boots[0].name(), "6.1-base-6144m");
    }

    #[test]
    fn what_needs_a_module_can_be_left_out_of_a_kernel() {
        let mut cases = [case("a/b", false, &["pagelab"]), case("c/d", false, &[])];
        leave_out(&mut cases, "pagelab", "newest");
        let boots = boots(&cases, &Asked::default());
        assert_eq!(kernels(&boots), KERNELS[..4]);
        let (last, others) = boots.split_last().unwrap();
        assert!(others.iter().all(|boot| boot.cases == ["a/b", "c/d"]));
        assert_eq!((last.kernel.as_str(), &last.cases[..]), ("newest", &["c/d".to_owned()][..]));
    }

    #[test]
    fn what_was_not_asked_for_is_not_booted() {
        let cases = ["a/b", "c/d", "e/f"].map(|name| case(name, false, &[]));
        let asked = |filters: &[&str], kernels: &[&str], machines: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|&name| name.into()).collect();
            let asked = Asked {
                filters: owned(filters),
                except: owned(&["e/"]),
                kernels: owned(kernels),
                machines: owned(machines),
            };
            boots(&cases, &asked)
        };
        assert_eq!(asked(&["c/"], &["6.12"], &[]).len(), 1);
        assert_eq!(asked(&["c/"], &["6.12"], &[])[0].cases, ["c/d"]);
        assert_eq!(asked(&["a/"], &[SANITIZED], &[])[0].kernel, SANITIZED);
        assert!(asked(&[], &[], &[]).iter().all(|boot| boot.kernel != SANITIZED));
        assert_eq!(asked(&["nothing"], &[], &[]), []);
        assert_eq!(asked(&["c/d@newest"], &[], &[])[0].kernel, "newest");
        assert_eq!(asked(&["c/d@6.1"], &["newest"], &[]), []);
        assert_eq!(asked(&["e/"], &[], &[]), []);
        assert_eq!(asked(&[], &[], &["cxl"]), []);
    }
}
