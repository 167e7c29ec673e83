//! How fast the processors run: who governs their frequency, and whether they may exceed the rated
//! one (turbo).
//!
//! The one idea: the kernel has a *policy* for each group of processors that share a frequency, and
//! each policy its own governor, so the setting of a machine is a list of files. Turbo is one
//! switch for all, which drivers name differently
//! (`Documentation/admin-guide/pm/{cpufreq,intel_pstate}`, Linux 6.18). A guest has neither, as
//! a rule.

use std::path::PathBuf;

use super::Tree;

const CPU: &str = "sys/devices/system/cpu";

/// The frequency settings of a machine.
#[derive(Debug, Clone)]
pub struct Frequency {
    tree: Tree,
}

/// What governs one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Governor {
    /// The knob: its `scaling_governor`.
    pub path: PathBuf,
    /// The one in force.
    pub now: String,
    /// Those that its driver has; empty where the kernel does not say.
    pub available: Vec<String>,
}

/// The switch of turbo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turbo {
    /// The knob.
    pub path: PathBuf,
    /// Whether turbo is allowed.
    pub is_on: bool,
    /// Whether the knob says when turbo is forbidden.
    is_inverted: bool,
}

impl Frequency {
    /// Those of this machine.
    pub fn machine() -> Self {
        Self::of(Tree::machine())
    }

    /// Those of a tree.
    pub fn of(tree: Tree) -> Self {
        Self { tree }
    }

    /// The governor of each policy that can be asked: one whose processors are all offline cannot.
    pub fn governors(&self) -> Vec<Governor> {
        let directory = format!("{CPU}/cpufreq");
        let policies = self.tree.numbered(&directory, "policy").into_iter();
        let governor = |policy| {
            let file = |name: &str| format!("{directory}/policy{policy}/{name}");
            let available = self.tree.text(file("scaling_available_governors")).unwrap_or_default();
            Some(Governor {
                now: self.tree.text(file("scaling_governor"))?,
                path: self.tree.path(file("scaling_governor")),
                available: available.split_whitespace().map(str::to_owned).collect(),
            })
        };
        policies.filter_map(governor).collect()
    }

    /// The switch of turbo: that of `intel_pstate` where it drives, else that of other drivers.
    pub fn turbo(&self) -> Option<Turbo> {
        [("intel_pstate/no_turbo", true), ("cpufreq/boost", false)].into_iter().find_map(
            |(name, is_inverted)| {
                let file = format!("{CPU}/{name}");
                let is_set = match &*self.tree.text(&file)? {
                    "0" => false,
                    "1" => true,
                    _ => return None,
                };
                Some(Turbo {
                    path: self.tree.path(file),
                    is_on: is_set != is_inverted,
                    is_inverted,
                })
            },
        )
    }
}

impl Turbo {
    /// What its knob holds where turbo is on, or off.
    pub fn value(&self, is_on: bool) -> &'static str {
        if is_on == self.is_inverted { "0" } else { "1" }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Frequency) {
        let root = tempfile::tempdir().unwrap();
        let files = files.iter().map(|(path, text)| (Path::new(CPU).join(path), text));
        let frequency = Frequency::of(Tree::at(root.path()).with(files));
        (root, frequency)
    }

    #[test]
    fn each_policy_has_its_governor_and_one_that_cannot_be_asked_has_none() {
        let (root, frequency) = machine(&[
            ("cpufreq/policy10/scaling_governor", "powersave\n"),
            ("cpufreq/policy2/scaling_governor", "schedutil\n"),
            ("cpufreq/policy2/scaling_available_governors", "performance schedutil \n"),
            ("cpufreq/policy3/affected_cpus", "\n"),
        ]);
        let found = frequency.governors();
        let now: Vec<&str> = found.iter().map(|governor| &*governor.now).collect();
        assert_eq!(now, ["schedutil", "powersave"]);
        assert_eq!(found[0].available, ["performance", "schedutil"]);
        assert!(found[1].available.is_empty());
        assert!(found[0].path.starts_with(root.path()) && found[0].path.is_file());
    }

    #[test]
    fn turbo_is_told_by_the_switch_that_drives() {
        let no_turbo = ("intel_pstate/no_turbo", "0\n");
        for (files, is_on, values) in [
            (&[no_turbo, ("cpufreq/boost", "0\n")][..], true, ["1", "0"]),
            (&[("intel_pstate/no_turbo", "1")], false, ["1", "0"]),
            // It is there, and cannot be read, while another driver has the processors.
            (&[("intel_pstate/no_turbo", ""), ("cpufreq/boost", "1\n")], true, ["0", "1"]),
        ] {
            let (_root, frequency) = machine(files);
            let turbo = frequency.turbo().unwrap();
            assert_eq!((turbo.is_on, [false, true].map(|on| turbo.value(on))), (is_on, values));
        }
        let (_root, frequency) = machine(&[]);
        assert!(frequency.turbo().is_none() && frequency.governors().is_empty());
    }
}
