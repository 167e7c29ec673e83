//! What memory types need of the host: the module, memory of a type from it, widths of loads and
//! stores.

use pagelab_bench::{Need, Needed, PageSize, Plain};
use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::{
    machine::thp::Policy,
    memtype::{self, Device, LegacyNode, ModuleState, Width, latency::can_flush},
};

use super::space::{Source, Space};
use pagelab_bench::needs::{Memory, Node, Transparent};

/// Flushing a cache line from user space.
pub const LINE_FLUSH: Plain = Plain {
    name: "flushing a cache line (clflush)",
    has: can_flush,
    cure: "use an x86-64 machine",
};

/// The kernel module, loaded, of this program's version, and open to this user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module;

impl Need for Module {
    fn name(&self) -> String {
        "the kernel module of pagelab".to_owned()
    }

    fn check(&self) -> bool {
        Device::open().is_ok()
    }

    fn cure(&self) -> String {
        match Device::open() {
            Ok(_) => "nothing is to be done".to_owned(),
            Err(error) => error.cure(),
        }
    }

    /// What it offers, or what stands between it and this user.
    fn found(&self) -> Option<String> {
        let device = match Device::open() {
            Ok(device) => device,
            Err(error) => return Some(error.to_string()),
        };
        let most = display_bytes(device.info().limit_bytes() as f64);
        let reserved = device.info().reserved().map_or_else(
            || "no reserved region".to_owned(),
            |(start, bytes)| match start {
                Some(start) => format!("{} reserved at {start:#x}", format_bytes(bytes)),
                None => format!("{} reserved", format_bytes(bytes)),
            },
        );
        Some(format!("{}: at most {most} in one piece, {reserved}", ModuleState::Ready))
    }
}

/// Memory of this type from the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Typed(pub Space);

impl Need for Typed {
    fn name(&self) -> String {
        let Space { memory_type, source, leaf, bytes, .. } = self.0;
        let (bytes, leaf) = (format_bytes(bytes), format_bytes(leaf));
        format!("{bytes} of {source} {} memory with leaves of {leaf}", memory_type.name())
    }

    /// As far as the module tells without giving it.
    fn check(&self) -> bool {
        lack_of_memory(&self.0).is_none()
    }

    fn cure(&self) -> String {
        match lack_of_memory(&self.0) {
            Some((why, cure)) => format!("{cure} ({why})"),
            None => "nothing is to be done".to_owned(),
        }
    }
}

/// What memory of a type needs of the host.
pub(super) fn of_space(space: &Space) -> Vec<Needed> {
    let mut needs = vec![Memory(space.bytes).needed()];
    needs.extend(space.node.map(|node| Node::Number(node).needed()));
    if space.source == Source::Ordinary {
        if space.leaf > 4096 {
            needs.push(Transparent { page: PageSize::Thp, to: Policy::Madvise }.needed());
        }
    } else {
        needs.push(Module.needed());
        needs.push(Typed(*space).needed());
    }
    needs
}

/// Why the nodes for older programs do not have so much, and what to do.
fn lack_of_node(space: &Space) -> Option<(String, String)> {
    let load = "load the module without legacy=0: sudo insmod memtype/kmod/pagelab.ko size_mb=16";
    match LegacyNode::open(space.memory_type) {
        Err(error) => Some((error.to_string(), load.to_owned())),
        Ok(node) if node.bytes() < space.bytes => {
            let has = format!("the node has {}", display_bytes(node.bytes() as f64));
            Some((has, "choose --size module, or load the module with size_mb".to_owned()))
        }
        Ok(_) => None,
    }
}

/// Why the module has no such memory, and what to do.
fn lack_of_memory(space: &Space) -> Option<(String, String)> {
    if space.source == Source::Nodes {
        return lack_of_node(space);
    }
    let frames = space.source.frames()?;
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) => return Some((error.to_string(), error.cure())),
    };
    let info = device.info();
    let name = space.memory_type.name();
    let reserved = info.reserved().map(|(_, bytes)| bytes);
    if space.source == Source::Reserved && reserved.is_none() {
        let cure = "boot with memmap=1G$4G and load the module with phys=0x100000000 \
                    phys_len=0x40000000";
        return Some(("the module was given no reserved region".to_owned(), cure.to_owned()));
    }
    if !info.can(space.memory_type, frames, space.leaf) {
        let leaves = info.leaves(space.memory_type, frames);
        let cure = if leaves.is_empty() {
            "choose other --frames; see memtype/docs/kernel-module.md for what each kernel can do"
                .to_owned()
        } else {
            let leaves: Vec<String> = leaves.into_iter().map(format_bytes).collect();
            format!("choose --leaf {}", leaves.join(" or "))
        };
        let leaf = format_bytes(space.leaf);
        return Some((format!("this kernel has no {name} leaves of {leaf} in {frames:?}"), cure));
    }
    let most = if space.source == Source::Reserved { reserved } else { None };
    let most = most.unwrap_or_else(|| info.limit_bytes());
    (space.bytes > most).then(|| {
        let most = display_bytes(most as f64);
        (format!("the module gives {most} at once"), format!("choose a --size of {most} or less"))
    })
}

/// Stores or loads of this width.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccessWidth {
    /// Loads, not stores.
    pub loads: bool,
    /// Non-temporal ones.
    pub nt: bool,
    /// Bytes.
    pub bytes: u64,
}

impl AccessWidth {
    /// What the processor lacks.
    fn lack(&self) -> Option<&'static str> {
        let Some(width) = Width::of_bytes(self.bytes) else { return Some("such a register") };
        match (self.loads, self.nt) {
            (false, false) => memtype::Stores::Plain.lack(width),
            (false, true) => memtype::Stores::NonTemporal.lack(width),
            (true, false) => memtype::Loads::Plain.lack(width),
            (true, true) => memtype::Loads::NonTemporal.lack(width),
        }
    }
}

impl Need for AccessWidth {
    fn name(&self) -> String {
        let accesses = match (self.loads, self.nt) {
            (false, false) => "stores",
            (false, true) => "non-temporal stores",
            (true, false) => "loads",
            (true, true) => "movntdqa",
        };
        format!("{accesses} of {} bytes", self.bytes)
    }

    fn check(&self) -> bool {
        self.lack().is_none()
    }

    fn cure(&self) -> String {
        let feature = self.lack().unwrap_or("it already");
        format!("choose a smaller --width, or use a CPU with {feature}")
    }

    /// Stores differ by their width, loads by their instruction.
    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| {
            let is_same = if self.loads { other.nt == self.nt } else { other.bytes == self.bytes };
            is_same && other.loads == self.loads
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_width_lacks_is_named_in_its_cure() {
        assert!(AccessWidth { loads: false, nt: false, bytes: 8 }.check());
        assert!(!AccessWidth { loads: false, nt: true, bytes: 24 }.check());
        assert!(AccessWidth { loads: true, nt: true, bytes: 8 }.cure().contains("movntdqa"));
    }

    #[test]
    fn without_the_module_its_memory_has_the_cure_of_the_module() {
        let typed = Typed(Space::of_fence_word(None));
        assert_eq!(typed.name(), "4k of scattered UC- memory with leaves of 4k");
        if !Module.check() {
            assert!(!typed.check() && typed.cure().contains(&Module.cure()));
        }
    }
}
