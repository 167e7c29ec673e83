//! Whether the kernel module can be used, and if not, what stands in the way and what to do.
//!
//! The one idea: one enum with a sentence and a cure for each state, as a pure function of the
//! kernel's files, so that every state has a test without the machine that has it. It opens no
//! device and loads nothing.

use std::path::Path;

use pagelab_interpose::uapi::{self, NODE};

use crate::machine::Tree;

/// What is known of the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleState {
    /// Loaded, of the right version, and the node is there.
    #[error("the pagelab module is loaded")]
    Ready,
    /// Loaded, of another version of the interface.
    #[error(
        "the pagelab module is {} than this program: it speaks version {module}, not {}",
        age(*module),
        uapi::VERSION
    )]
    OtherVersion {
        /// What the module speaks.
        module: u32,
    },
    /// Loaded, and the node is not there.
    #[error("the pagelab module is loaded, but there is no {NODE}")]
    NoNode,
    /// Installed for this kernel, and nothing is known to stand in the way of loading it.
    #[error("the pagelab module is installed and not loaded")]
    NotLoaded,
    /// Installed for this kernel, not signed, and the kernel takes signed modules only.
    #[error("the pagelab module is not signed, and {} takes signed modules only", by.name())]
    Unsigned {
        /// What makes it so.
        by: Enforcer,
    },
    /// Not installed for this kernel.
    #[error("the pagelab module is not installed for kernel {release}")]
    NotInstalled {
        /// The kernel's release.
        release: String,
    },
    /// Loading modules was switched off until the next boot.
    #[error("loading modules is switched off (kernel.modules_disabled)")]
    Disabled,
    /// This kernel was built without loadable modules.
    #[error("this kernel cannot load modules (CONFIG_MODULES is off)")]
    NoModules,
}

listed! {
    /// Who insists on signatures.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Enforcer {
        /// Kernel lockdown, which Secure Boot switched on.
        SecureBoot => "Secure Boot",
        /// Kernel lockdown, switched on by hand.
        Lockdown => "kernel lockdown",
        /// `module.sig_enforce`.
        Parameter => "module.sig_enforce",
    }
}

const MODULE: &str = "sys/module/pagelab";
/// Four bytes of attributes, then one byte of value.
const SECURE_BOOT: &str =
    "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// How a signed module ends.
const SIGNED: &[u8] = b"~Module signature appended~\n";

impl ModuleState {
    /// The state on this machine.
    pub fn machine() -> Self {
        Self::of(&Tree::machine())
    }

    /// The state that the files below a root tell.
    pub fn of(tree: &Tree) -> Self {
        if tree.path(MODULE).is_dir() {
            let uapi = tree.number::<u32>(format!("{MODULE}/parameters/uapi"));
            let uapi = uapi.or_else(|| tree.number(format!("{MODULE}/uapi")));
            return match uapi {
                Some(module) if module != uapi::VERSION => Self::OtherVersion { module },
                _ if !tree.path(NODE).exists() => Self::NoNode,
                _ => Self::Ready,
            };
        }
        // The file is there exactly where CONFIG_MODULES is.
        if !tree.path("proc/modules").exists() {
            return Self::NoModules;
        }
        if tree.number("proc/sys/kernel/modules_disabled") == Some(1) {
            return Self::Disabled;
        }
        let release = tree.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let Some(file) = installed(tree, &release) else {
            return Self::NotInstalled { release };
        };
        match (enforcer(tree), is_signed(tree, &file)) {
            (Some(by), Some(false)) => Self::Unsigned { by },
            _ => Self::NotLoaded,
        }
    }

    /// What to do; `None` when nothing is to be done.
    pub fn cure(&self) -> Option<String> {
        Some(match self {
            Self::Ready => return None,
            Self::OtherVersion { module } if *module < uapi::VERSION => {
                let remove = "sudo dkms remove pagelab --all";
                format!("{remove}; {INSTALL}; sudo modprobe -r pagelab; sudo modprobe pagelab")
            }
            Self::OtherVersion { .. } => {
                "install the pagelab that came with the module, or its module: ".to_owned()
                    + INSTALL
            }
            Self::NoNode => "sudo modprobe -r pagelab; sudo modprobe pagelab; in a container: \
                             pass --device /dev/pagelab"
                .to_owned(),
            Self::NotLoaded => "sudo modprobe pagelab; if the key is rejected, enrol it: \
                                sudo mokutil --import /var/lib/dkms/mok.pub"
                .to_owned(),
            Self::Unsigned { by: Enforcer::SecureBoot | Enforcer::Lockdown } => {
                format!(
                    "sign it with a key of this machine: sudo mokutil --import \
                         /var/lib/dkms/mok.pub; reboot; {INSTALL}"
                )
            }
            Self::Unsigned { by: Enforcer::Parameter } => {
                format!(
                    "sign it: sudo mokutil --import /var/lib/dkms/mok.pub; reboot; {INSTALL}; \
                         or boot without module.sig_enforce=1"
                )
            }
            Self::NotInstalled { .. } => format!("{INSTALL}; sudo modprobe pagelab"),
            Self::Disabled => {
                "reboot, with the module loaded before kernel.modules_disabled=1 is set".to_owned()
            }
            Self::NoModules => {
                "run on a kernel with CONFIG_MODULES=y (any distribution's)".to_owned()
            }
        })
    }
}

/// What a module of another version is beside this program.
fn age(module: u32) -> &'static str {
    if module < uapi::VERSION { "older" } else { "newer" }
}

/// From a checkout of pagelab.
const INSTALL: &str = "sudo dkms install ./kmod";

/// The file of the module, as `modprobe` would find it, or where `depmod` has not been yet.
fn installed(tree: &Tree, release: &str) -> Option<String> {
    let root = format!("lib/modules/{release}");
    let known = tree.text(format!("{root}/modules.dep")).and_then(|text| {
        let files = text.lines().filter_map(|line| line.split_once(':')).map(|(file, _)| file);
        let is_ours =
            |file: &&str| Path::new(file).file_name().is_some_and(|name| is_file(name.to_str()));
        files.into_iter().find(is_ours).map(|file| format!("{root}/{file}"))
    });
    known.filter(|file| tree.path(file).exists()).or_else(|| {
        ["updates/dkms", "updates", "extra"].into_iter().find_map(|directory| {
            let directory = format!("{root}/{directory}");
            let names = tree.names(&directory);
            let name = names.into_iter().find(|name| is_file(Some(name)))?;
            Some(format!("{directory}/{name}"))
        })
    })
}

/// `pagelab.ko`, packed or not.
fn is_file(name: Option<&str>) -> bool {
    matches!(name, Some("pagelab.ko" | "pagelab.ko.gz" | "pagelab.ko.xz" | "pagelab.ko.zst"))
}

/// Whether a module has a signature; `None` where it is packed and cannot be looked at.
fn is_signed(tree: &Tree, file: &str) -> Option<bool> {
    if Path::new(file).extension()? != "ko" {
        return None;
    }
    tree.bytes(file).map(|bytes| bytes.ends_with(SIGNED))
}

/// Who insists on signed modules. Secure Boot alone does not: it does so through lockdown.
fn enforcer(tree: &Tree) -> Option<Enforcer> {
    let lockdown = tree.choice("sys/kernel/security/lockdown");
    let locked = matches!(lockdown.as_deref(), Some("integrity" | "confidentiality"));
    let secure_boot = tree.bytes(SECURE_BOOT).is_some_and(|bytes| bytes.get(4) == Some(&1));
    let enforced = tree.text("sys/module/module/parameters/sig_enforce");
    if locked && secure_boot {
        Some(Enforcer::SecureBoot)
    } else if locked {
        Some(Enforcer::Lockdown)
    } else {
        (enforced.as_deref() == Some("Y")).then_some(Enforcer::Parameter)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with these files; a name that ends in a slash is a directory.
    fn state(files: &[(&str, &[u8])]) -> ModuleState {
        let root = tempfile::tempdir().unwrap();
        for (file, bytes) in files {
            let path = root.path().join(file);
            if file.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
        ModuleState::of(&Tree::at(root.path()))
    }

    const MODULES: (&str, &[u8]) = ("proc/modules", b"");
    const RELEASE: (&str, &[u8]) = ("proc/sys/kernel/osrelease", b"6.12.1\n");
    const DEP: (&str, &[u8]) = (
        "lib/modules/6.12.1/modules.dep",
        b"kernel/a.ko: kernel/pagelab_else.ko\nupdates/dkms/pagelab.ko:\n",
    );
    const KO: &str = "lib/modules/6.12.1/updates/dkms/pagelab.ko";
    const LOCKDOWN: (&str, &[u8]) =
        ("sys/kernel/security/lockdown", b"none [integrity] confidentiality\n");

    #[test]
    fn a_kernel_without_modules_and_one_that_loads_no_more() {
        assert_eq!(state(&[RELEASE]), ModuleState::NoModules);
        let off: (&str, &[u8]) = ("proc/sys/kernel/modules_disabled", b"1\n");
        assert_eq!(state(&[MODULES, RELEASE, DEP, (KO, b""), off]), ModuleState::Disabled);
        let on: (&str, &[u8]) = ("proc/sys/kernel/modules_disabled", b"0\n");
        assert_eq!(state(&[MODULES, RELEASE, DEP, (KO, b""), on]), ModuleState::NotLoaded);
    }

    #[test]
    fn a_module_is_looked_for_where_modprobe_and_where_dkms_have_it() {
        let nowhere = ModuleState::NotInstalled { release: "6.12.1".to_owned() };
        assert_eq!(state(&[MODULES, RELEASE]), nowhere);
        assert_eq!(state(&[MODULES, RELEASE, DEP]), nowhere, "listed, and gone");
        let other: (&str, &[u8]) = ("lib/modules/6.1.0/updates/dkms/pagelab.ko", b"");
        assert_eq!(state(&[MODULES, RELEASE, other]), nowhere, "installed for another kernel");
        for file in ["updates/dkms/pagelab.ko.xz", "extra/pagelab.ko", "updates/pagelab.ko.zst"] {
            let file = format!("lib/modules/6.12.1/{file}");
            assert_eq!(state(&[MODULES, RELEASE, (&file, b"")]), ModuleState::NotLoaded);
        }
    }

    #[test]
    fn an_unsigned_module_is_blocked_by_whoever_insists() {
        let unsigned: &[(&str, &[u8])] = &[MODULES, RELEASE, DEP, (KO, b"ELF")];
        let signed: &[(&str, &[u8])] =
            &[MODULES, RELEASE, DEP, (KO, b"ELF...~Module signature appended~\n")];
        let with = |files: &[(&'static str, &'static [u8])],
                    more: &[(&'static str, &'static [u8])]| {
            state(&[files, more].concat())
        };
        let secure: (&str, &[u8]) = (SECURE_BOOT, &[6, 0, 0, 0, 1]);
        let insecure: (&str, &[u8]) = (SECURE_BOOT, &[6, 0, 0, 0, 0]);
        let enforced: (&str, &[u8]) = ("sys/module/module/parameters/sig_enforce", b"Y\n");
        let blocked = |by| ModuleState::Unsigned { by };
        assert_eq!(with(unsigned, &[LOCKDOWN, secure]), blocked(Enforcer::SecureBoot));
        assert_eq!(with(unsigned, &[LOCKDOWN, insecure]), blocked(Enforcer::Lockdown));
        assert_eq!(with(unsigned, &[LOCKDOWN]), blocked(Enforcer::Lockdown));
        assert_eq!(with(unsigned, &[enforced]), blocked(Enforcer::Parameter));
        assert_eq!(with(unsigned, &[secure]), ModuleState::NotLoaded, "no lockdown, no demand");
        assert_eq!(with(signed, &[LOCKDOWN, secure, enforced]), ModuleState::NotLoaded);
    }

    #[test]
    fn a_loaded_module_answers_for_its_version_and_its_node() {
        let loaded: (&str, &[u8]) = ("sys/module/pagelab/", b"");
        let node: (&str, &[u8]) = ("dev/pagelab", b"");
        let uapi = |text: &'static [u8]| ("sys/module/pagelab/parameters/uapi", text);
        assert_eq!(state(&[loaded, node, uapi(b"2\n")]), ModuleState::Ready);
        assert_eq!(state(&[loaded, uapi(b"2\n")]), ModuleState::NoNode);
        let older = state(&[loaded, node, uapi(b"0\n")]);
        assert!(older.to_string().contains("older than this program"), "{older}");
        let newer = state(&[loaded, node, uapi(b"7\n")]);
        assert!(newer.to_string().contains("newer than this program"), "{newer}");
        assert_ne!(older.cure(), newer.cure());
    }

    #[test]
    fn every_state_but_ready_has_a_cure() {
        let states = [
            ModuleState::OtherVersion { module: 0 },
            ModuleState::OtherVersion { module: 9 },
            ModuleState::NoNode,
            ModuleState::NotLoaded,
            ModuleState::Unsigned { by: Enforcer::SecureBoot },
            ModuleState::Unsigned { by: Enforcer::Lockdown },
            ModuleState::Unsigned { by: Enforcer::Parameter },
            ModuleState::NotInstalled { release: "6.1".to_owned() },
            ModuleState::Disabled,
            ModuleState::NoModules,
        ];
        for state in states {
            assert!(state.cure().is_some_and(|cure| !cure.is_empty()));
            assert!(!state.to_string().is_empty());
        }
        assert_eq!(ModuleState::Ready.cure(), None);
    }
}
