//! Names of the kernel's functions, by where they lie.
//!
//! The one idea: what the kernel itself says (`/proc/kallsyms`, read inside the machine) is what
//! runs, wherever it was loaded and whatever its modules are.

/// Functions in the order of their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads `ADDRESS KIND NAME;` …, as lines of the kernel's file, and keeps functions; of several
    /// names of one address the first.
    pub(super) fn read(text: &str) -> Self {
        let functions = text.split(';').filter_map(|entry| {
            let mut words = entry.split_whitespace();
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            if !matches!(kind, "t" | "T" | "w" | "W") {
                return None;
            }
            // Padding in front of a function, for tracers and call thunks.
            let is_code = !name.starts_with("__pfx_");
            let address = u64::from_str_radix(address, 16).ok()?;
            (address > 0 && is_code).then(|| (address, short(name).to_owned()))
        });
        let mut all: Vec<_> = functions.collect();
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        Self(all)
    }

    /// Whether the kernel told none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a function begins at an address.
    pub(super) fn begins(&self, at: u64) -> bool {
        self.0.binary_search_by_key(&at, |(address, _)| *address).is_ok()
    }

    /// Where a function begins.
    pub(super) fn address(&self, of: &str) -> Option<u64> {
        self.0.iter().find(|(_, name)| name == of).map(|(address, _)| *address)
    }

    /// The function that an address lies in; without names, its address in pieces of 4 KiB.
    pub(super) fn name(&self, at: u64) -> String {
        let behind = self.0.partition_point(|(address, _)| *address <= at);
        match behind.checked_sub(1) {
            Some(index) => self.0[index].1.clone(),
            None => format!("0x{:x}", at & !0xFFF),
        }
    }
}

/// A function without the name of the part that the compiler moved away from it.
fn short(name: &str) -> &str {
    name.strip_suffix(".cold").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let symbols = Symbols::read(
            "30 t b [of];10 t __pfx_a;20 T a;20 W alias;28 d data;40 t a.cold;0 T zero;x t y;z;",
        );
        let names = [0x20, 0x2f, 0x30, 0x41].map(|at| symbols.name(at));
        assert_eq!(names, ["a", "a", "b", "a"]);
        assert_eq!(symbols.name(8), "0x0");
        assert_eq!((symbols.address("b"), symbols.address("c")), (Some(0x30), None));
        assert!(symbols.begins(0x20) && !symbols.begins(0x21));
        assert!(Symbols::read("0 T a;").is_empty());
    }
}
