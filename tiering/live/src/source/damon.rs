//! DAMON: the regions of a monitor that somebody runs.
//!
//! The one idea: its directory is one for the whole machine, and somebody's. It is read and never
//! written, so what is there is what its owner had the kernel write there last: by
//! `update_schemes_tried_regions`, or by `refresh_ms` since Linux 6.17. A monitor whose owner does
//! not ask for regions shows none. Regions are of any size, and no pages: they are shown, nothing
//! is moved by them.

use std::ops::Range;

use pagelab_sys::machine::Tree;

use super::{Blocks, Lack, Region};
use crate::target::Refused;

const FOLDER: &str = "sys/kernel/mm/damon/admin/kdamonds";
/// Folders that are looked at, of each kind: what a tree claims is not believed.
const MOST: usize = 4096;

/// What a running monitor says of one scheme of one context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// Its kdamond.
    pub kdamond: usize,
    /// Addresses are `vaddr` of its targets, or `paddr`: of the machine.
    pub operations: String,
    /// The processes that it watches.
    pub targets: Vec<u32>,
    /// What it found.
    pub regions: Vec<Region>,
}

#[derive(Debug)]
struct Damon {
    tree: Tree,
    pid: u32,
}

/// Monitors that run.
pub fn monitors(tree: &Tree) -> Vec<Monitor> {
    let mut found = Vec::new();
    for kdamond in numbered(tree, FOLDER) {
        let folder = format!("{FOLDER}/{kdamond}");
        if tree.text(format!("{folder}/state")).is_none_or(|state| state.trim() != "on") {
            continue;
        }
        for context in numbered(tree, &format!("{folder}/contexts")) {
            let context = format!("{folder}/contexts/{context}");
            let text = |name: &str| tree.text(format!("{context}/{name}")).unwrap_or_default();
            let target = |number: usize| {
                tree.number::<u32>(format!("{context}/targets/{number}/pid_target"))
            };
            let targets = numbered(tree, &format!("{context}/targets"));
            let schemes = numbered(tree, &format!("{context}/schemes"));
            found.push(Monitor {
                kdamond,
                operations: text("operations").trim().to_owned(),
                targets: targets.into_iter().filter_map(target).collect(),
                regions: schemes
                    .into_iter()
                    .flat_map(|scheme| regions(tree, &format!("{context}/schemes/{scheme}")))
                    .collect(),
            });
        }
    }
    found
}

fn numbered(tree: &Tree, folder: &str) -> Vec<usize> {
    let mut numbers = tree.numbered(folder, "");
    numbers.truncate(MOST);
    numbers
}

fn regions(tree: &Tree, scheme: &str) -> Vec<Region> {
    let folder = format!("{scheme}/tried_regions");
    let region = |number: usize| {
        let number_of = |name: &str| tree.number::<u64>(format!("{folder}/{number}/{name}"));
        let range = Range { start: number_of("start")?, end: number_of("end")? };
        let accesses = number_of("nr_accesses")?;
        (range.start < range.end).then_some(Region { range, accesses })
    };
    numbered(tree, &folder).into_iter().filter_map(region).collect()
}

pub(super) fn probe(tree: &Tree) -> Result<(), Lack> {
    if tree.text(format!("{FOLDER}/nr_kdamonds")).is_none() {
        let what = "the kernel has no DAMON that can be read";
        return Err(Lack::new(what, "CONFIG_DAMON_SYSFS, and root"));
    }
    if monitors(tree).iter().all(|monitor| monitor.regions.is_empty()) {
        let cure = "have its owner write update_schemes_tried_regions to its state";
        return Err(Lack::new("no monitor runs that shows its regions", cure));
    }
    Ok(())
}

pub(super) fn open(tree: &Tree, pid: u32) -> Box<dyn Blocks> {
    Box::new(Damon { tree: tree.clone(), pid })
}

impl Blocks for Damon {
    fn regions(&mut self) -> Result<Vec<Region>, Refused> {
        let is_his = |monitor: &Monitor| {
            monitor.operations.ends_with("vaddr") && monitor.targets.contains(&self.pid)
        };
        let monitors = monitors(&self.tree).into_iter().filter(is_his);
        Ok(monitors.flat_map(|monitor| monitor.regions).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let files = files.iter().map(|(path, text)| (Path::new(FOLDER).join(path), text));
        let tree = Tree::at(folder.path()).with(files);
        (folder, tree)
    }

    const MONITOR: [(&str, &str); 10] = [
        ("nr_kdamonds", "1\n"),
        ("0/state", "on\n"),
        ("0/contexts/0/operations", "vaddr\n"),
        ("0/contexts/0/targets/0/pid_target", "7\n"),
        ("0/contexts/0/schemes/0/tried_regions/0/start", "4096\n"),
        ("0/contexts/0/schemes/0/tried_regions/0/end", "12288\n"),
        ("0/contexts/0/schemes/0/tried_regions/0/nr_accesses", "19\n"),
        ("0/contexts/0/schemes/0/tried_regions/1/start", "99\n"),
        ("0/contexts/0/schemes/0/tried_regions/1/end", "nonsense\n"),
        ("0/contexts/0/schemes/0/tried_regions/2/start", "5\n"),
    ];

    #[test]
    fn regions_of_a_running_monitor_are_its_targets() {
        let (_folder, tree) = tree(&MONITOR);
        let region = Region { range: 4096..12288, accesses: 19 };
        assert_eq!(open(&tree, 7).regions().unwrap(), [region]);
        assert_eq!(open(&tree, 8).regions().unwrap(), []);
        assert_eq!(probe(&tree), Ok(()));
    }

    #[test]
    fn one_that_is_off_or_of_frames_or_shows_nothing_says_nothing() {
        for (path, text) in [("0/state", "off\n"), ("0/contexts/0/operations", "paddr\n")] {
            let mut files = MONITOR;
            for file in files.iter_mut().filter(|file| file.0 == path) {
                file.1 = text;
            }
            let (_folder, tree) = tree(&files);
            assert_eq!(open(&tree, 7).regions().unwrap(), []);
        }
        let (_folder, tree) = tree(&MONITOR[..4]);
        assert!(probe(&tree).unwrap_err().what.contains("no monitor"));
        assert!(probe(&Tree::at("/nowhere")).unwrap_err().what.contains("no DAMON"));
    }
}
