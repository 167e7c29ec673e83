//! The machines that the lane builds: the rows of `machines.toml`.
//!
//! The one idea: a machine is a row; sizes that a kernel parameter repeats stand beside it. Every
//! machine is emulated (TCG), also where /dev/kvm opens: tests ask for states, not for times.
//! What has to be done inside the guest is in `vm/src/machine.rs`.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use serde::Deserialize;

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Machine {
    /// What cases call it.
    pub(super) name: String,
    /// For a person.
    pub(super) about: String,
    /// The processor.
    pub(super) cpu: String,
    /// Memory, unless the case says.
    memory_mib: u32,
    /// Words for QEMU.
    qemu: String,
    /// Words for the kernel.
    pub(super) parameters: String,
    /// Modules of the distribution that it needs.
    pub(super) modules: Vec<String>,
}

/// Stands in a row for the path of the disk's image.
pub(super) const IMAGE: &str = "@image@";

impl Default for Machine {
    fn default() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            // QEMU moves and fills byte by byte what a processor has fast strings for; without
            // these kernels take words.
            cpu: "max,-erms,-fsrm,-fsrs".to_owned(),
            memory_mib: 4096,
            qemu: "-machine q35".to_owned(),
            parameters: String::new(),
            modules: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct File {
    machine: Vec<Machine>,
}

/// Every machine.
pub(super) static MACHINES: LazyLock<Vec<Machine>> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("machines.toml")).expect("a test reads it").machine
});

/// The machine of a name.
pub(super) fn find(name: &str) -> Result<&'static Machine> {
    let machine = MACHINES.iter().find(|machine| machine.name == name);
    machine.with_context(|| format!("no machine is called {name}: see xtask/src/vm/machines.toml"))
}

impl Machine {
    /// Everything that QEMU is told about the machine itself.
    pub(super) fn arguments(&self, memory_mib: u32) -> Vec<String> {
        let memory = if memory_mib == 0 { self.memory_mib } else { memory_mib };
        let own = self.qemu.split_whitespace().map(str::to_owned);
        let more = ["-accel", "tcg,thread=multi", "-cpu", &self.cpu, "-smp", "2", "-m"];
        own.chain(more.map(str::to_owned)).chain([format!("{memory}M")]).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = MACHINES.iter().map(|machine| &machine.name).collect();
        assert_eq!(names.len(), MACHINES.len());
        assert!(find("cxl").is_ok() && find("pc").is_err());
    }

    #[test]
    fn every_machine_is_emulated_and_has_the_memory_that_was_asked_for() {
        for machine in MACHINES.iter() {
            let line = machine.arguments(0).join(" ");
            assert!(line.contains("-accel tcg,thread=multi"), "{line}");
            assert!(line.ends_with(&format!("-m {}M", machine.memory_mib)), "{line}");
            assert!(machine.arguments(640).ends_with(&["-m".into(), "640M".into()]));
        }
    }
}
