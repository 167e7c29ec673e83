//! What memory types need of the host: the module, memory of a type from it, widths of loads and
//! stores. These are the answers behind the variants of [`crate::Need`] of the same names.

use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::memtype::{Device, Loads, ModuleState, Stores, Width};

use super::space::{Source, Space};

/// Whether the module answers this user.
pub(crate) fn has_module() -> bool {
    Device::open().is_ok()
}

/// What is known of the module: what it offers, or what stands between it and this user.
pub(crate) fn module_state() -> String {
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) => return error.to_string(),
    };
    let most = display_bytes(device.info().limit_bytes() as f64);
    let reserved = device.info().reserved().map_or_else(
        || "no reserved region".to_owned(),
        |(start, bytes)| format!("{} reserved at {start:#x}", format_bytes(bytes)),
    );
    format!("{}: at most {most} in one piece, {reserved}", ModuleState::Ready)
}

/// How to get the module.
pub(crate) fn module_cure() -> String {
    match Device::open() {
        Ok(_) => "nothing is to be done".to_owned(),
        Err(error) => error.cure(),
    }
}

/// Why the module has no such memory, and what to do.
fn lack_of_memory(space: &Space) -> Option<(String, String)> {
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
            "choose other --frames; see docs/kernel-module.md for what each kernel can do"
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

/// Whether the module has such memory, as far as it tells without giving it.
pub(crate) fn has_memory(space: &Space) -> bool {
    lack_of_memory(space).is_none()
}

/// What to do where it has not.
pub(crate) fn memory_cure(space: &Space) -> String {
    match lack_of_memory(space) {
        Some((why, cure)) => format!("{cure} ({why})"),
        None => "nothing is to be done".to_owned(),
    }
}

/// The name of such memory.
pub(crate) fn memory_name(space: &Space) -> String {
    let Space { memory_type, source, leaf, bytes, .. } = space;
    let (bytes, leaf) = (format_bytes(*bytes), format_bytes(*leaf));
    format!("{bytes} of {source} {} memory with leaves of {leaf}", memory_type.name())
}

/// What the processor lacks for stores of a width.
pub(crate) fn lack_of_stores(nt: bool, bytes: u64) -> Option<&'static str> {
    let stores = if nt { Stores::NonTemporal } else { Stores::Plain };
    Width::of_bytes(bytes).map_or(Some("such a register"), |width| stores.lack(width))
}

/// What the processor lacks for loads of a width.
pub(crate) fn lack_of_loads(nt: bool, bytes: u64) -> Option<&'static str> {
    let loads = if nt { Loads::NonTemporal } else { Loads::Plain };
    Width::of_bytes(bytes).map_or(Some("such a register"), |width| loads.lack(width))
}

/// What to do about a width that is missing.
pub(crate) fn width_cure(lack: Option<&str>) -> String {
    let feature = lack.unwrap_or("it already");
    format!("choose a smaller --width, or use a CPU with {feature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_width_lacks_is_named_in_its_cure() {
        assert_eq!(lack_of_stores(false, 8), None);
        assert!(lack_of_stores(true, 24).is_some());
        assert!(width_cure(lack_of_loads(true, 8)).contains("movntdqa"));
    }

    #[test]
    fn without_the_module_its_memory_has_the_cure_of_the_module() {
        let space = Space::of_fence_word(None);
        assert_eq!(memory_name(&space), "4k of scattered UC- memory with leaves of 4k");
        if !has_module() {
            assert!(!has_memory(&space) && memory_cure(&space).contains(&module_cure()));
        }
    }
}
