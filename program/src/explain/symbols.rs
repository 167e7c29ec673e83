//! Names for instructions: the function of a file that an offset lies in.
//!
//! The one idea: only what is shown is looked up, after the program has ended, in the symbol tables
//! of the files themselves. A file that has changed or has no symbols gives its own name and the
//! offset instead. Names of Rust and C++ functions are shown as they are written.
//!
//! It reads no debug information: inlined functions count for those that they were inlined into.
//! Code that a program made itself has the names that the program wrote down ([`super::jit`]).

use std::{collections::HashMap, path::Path, rc::Rc};

use cpp_demangle::{DemangleOptions, Symbol};
use elf::{
    ElfStream,
    abi::{PT_LOAD, STT_FUNC, STT_GNU_IFUNC},
    endian::AnyEndian,
    string_table::StringTable,
    symbol::SymbolTable,
};
use pagelab_sys::files::regular::{self, Links};

use super::{
    frame::Frame,
    jit::{Owners, PerfMap},
};

/// The functions of the files that were asked about.
#[derive(Debug, Default)]
pub struct Symbols {
    files: HashMap<Rc<str>, Functions>,
    made: HashMap<Rc<str>, PerfMap>,
    owners: Owners,
}

#[derive(Debug, Default)]
struct Functions {
    /// File offset, length and address of each loaded segment.
    segments: Vec<(u64, u64, u64)>,
    /// Address, length and name, in order of address.
    functions: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Symbols of files, and of code that programs made, by what these users wrote.
    pub(super) fn with(owners: &Owners) -> Self {
        Self { owners: owners.clone(), ..Self::default() }
    }

    /// The name of a function that a program made.
    fn made(&mut self, frame: &Frame) -> Option<String> {
        let owner = *self.owners.get(&frame.file)?;
        let read = || PerfMap::read(&frame.file, owner);
        self.made.entry(Rc::clone(&frame.file)).or_insert_with(read).find(frame.at)
    }

    /// Whether anything is known of an instruction beside its address.
    pub(super) fn is_known(&mut self, frame: &Frame) -> bool {
        !frame.file.is_empty() && (!frame.is_made() || self.made(frame).is_some())
    }

    /// Whether an instruction lies in a function that has a name.
    pub(super) fn has_function(&mut self, frame: &Frame) -> bool {
        !frame.file.is_empty() && self.name(frame).ends_with(')')
    }

    /// `function+0x1c (file)`, or `file+0x101c`, or `function (JIT)`, or an address.
    pub fn name(&mut self, frame: &Frame) -> String {
        if frame.is_made() {
            let made = self.made(frame);
            return made.map_or_else(|| format!("{:#x}", frame.at), |name| format!("{name} (JIT)"));
        }
        if frame.file.is_empty() {
            return format!("{:#x}", frame.at);
        }
        if frame.file.starts_with('[') {
            return frame.file.to_string();
        }
        let file = Path::new(&*frame.file).file_name().unwrap_or_default().to_string_lossy();
        let functions = self
            .files
            .entry(Rc::clone(&frame.file))
            .or_insert_with(|| Functions::read(Path::new(&*frame.file)).unwrap_or_default());
        match functions.find(frame.at) {
            Some((name, offset)) => format!("{}+{offset:#x} ({file})", demangled(name)),
            None => format!("{file}+{:#x}", frame.at),
        }
    }

    /// The same of an address as the file itself counts them.
    pub fn name_at(&mut self, path: &str, address: u64) -> String {
        let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        let read = || Functions::read(Path::new(path)).unwrap_or_default();
        match self.files.entry(path.into()).or_insert_with(read).around(address) {
            Some((name, offset)) => format!("{}+{offset:#x} ({file})", demangled(name)),
            None => format!("{file}+{address:#x}"),
        }
    }

    /// The function alone, where it has a name.
    pub fn function(&mut self, frame: &Frame) -> String {
        if let Some(made) = self.made(frame) {
            return made;
        }
        let whole = self.name(frame);
        whole.split_once("+0x").map_or(whole.clone(), |(name, _)| name.to_owned())
    }
}

impl Functions {
    fn read(path: &Path) -> Option<Self> {
        let file = regular::open(path, Links::Followed).ok()?;
        let mut elf = ElfStream::<AnyEndian, _>::open_stream(file).ok()?;
        let loaded = elf.segments().iter().filter(|segment| segment.p_type == PT_LOAD);
        let segments = loaded.map(|s| (s.p_offset, s.p_filesz, s.p_vaddr)).collect::<Vec<_>>();
        let mut functions = Vec::new();
        let mut take = |table: Option<(SymbolTable<'_, AnyEndian>, StringTable<'_>)>| {
            let Some((symbols, names)) = table else { return };
            for symbol in symbols.iter() {
                let is_function = [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_symtype());
                if is_function
                    && symbol.st_value > 0
                    && !symbol.is_undefined()
                    && let Ok(name) = names.get(symbol.st_name as usize)
                {
                    functions.push((symbol.st_value, symbol.st_size, name.to_owned()));
                }
            }
        };
        take(elf.symbol_table().ok().flatten());
        take(elf.dynamic_symbol_table().ok().flatten());
        // Of several names for one function the shortest is the plainest.
        functions.sort_by(|a, b| (a.0, a.2.len(), &a.2).cmp(&(b.0, b.2.len(), &b.2)));
        functions.dedup_by_key(|function| function.0);
        Some(Self { segments, functions })
    }

    /// The function at a file offset, and how far in it.
    fn find(&self, at: u64) -> Option<(&str, u64)> {
        let inside = |s: &&(u64, u64, u64)| at >= s.0 && at - s.0 < s.1;
        let (offset, _, address) = self.segments.iter().find(inside)?;
        self.around(at - offset + address)
    }

    /// The function at an address, and how far in it.
    fn around(&self, address: u64) -> Option<(&str, u64)> {
        let index = self.functions.partition_point(|function| function.0 <= address);
        let (start, length, name) = self.functions.get(index.checked_sub(1)?)?;
        // Assembly often says no length.
        (*length == 0 || address - start < *length).then_some((name, address - start))
    }
}

/// Characters of a name before the arguments of its templates are left out.
const LONG: usize = 64;

/// A name as it is written in the source, without parameters and without hashes.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // The alternate form leaves the hash out.
        return brief(&format!("{rust:#}"));
    }
    // A compiler's copy of a function: `_Z3foov.isra.0`, `_Z3foov.cold`.
    let plain = name.split_once('.').map_or(name, |(plain, _)| plain);
    let options = DemangleOptions::new().no_params().no_return_type();
    let cpp = Some(plain).filter(|plain| plain.starts_with("_Z"));
    let cpp = cpp.and_then(|plain| Symbol::new(plain).ok()?.demangle_with_options(&options).ok());
    cpp.map_or_else(|| name.to_owned(), |cpp| brief(&cpp))
}

/// A long name with `<…>` for what stands between angle brackets.
fn brief(name: &str) -> String {
    // In these an angle bracket is no bracket.
    let is_operator = ["operator<", "operator>", "operator->", "->"];
    if name.chars().count() <= LONG || is_operator.iter().any(|text| name.contains(text)) {
        return name.to_owned();
    }
    let (mut short, mut depth) = (String::new(), 0_u32);
    for character in name.chars() {
        match character {
            '<' => {
                if depth == 0 {
                    short.push_str("<…>");
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => short.push(character),
            _ => (),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::places::Places;

    #[test]
    fn a_function_of_this_program_has_its_name() {
        let address = Functions::read as *const () as usize as u64;
        let mut places = Places::default();
        let area = places.at(std::process::id(), address, 1).unwrap();
        let at = address - area.start + area.offset;
        let frame = Frame { file: Rc::clone(&area.name), at };
        let name = Symbols::default().name(&frame);
        assert!(
            name.starts_with("pagelab_program::explain::symbols::Functions::read+0x0"),
            "{name}"
        );
    }

    #[test]
    fn names_are_as_they_are_written() {
        for (mangled, written) in [
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_RNvC3foo3bar", "foo::bar"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("_ZN3art6Thread3RunEv.isra.0", "art::Thread::Run"),
            ("_Z", "_Z"),
            ("_start", "_start"),
            ("memset.part.0", "memset.part.0"),
        ] {
            assert_eq!(demangled(mangled), written);
        }
        let long = format!("a::b<{}, c<d>>::e<f>::g", "x".repeat(64));
        assert_eq!(brief(&long), "a::b<…>::e<…>::g");
        let operator = format!("a::{}::operator<<", "x".repeat(64));
        assert_eq!(brief(&operator), operator);
    }

    #[test]
    fn what_has_no_symbols_has_its_file_and_offset() {
        let mut symbols = Symbols::default();
        let name = |file: &str, symbols: &mut Symbols| {
            symbols.name(&Frame { file: file.into(), at: 0x1234 })
        };
        assert_eq!(name("/no/such/library.so", &mut symbols), "library.so+0x1234");
        assert_eq!(name("/etc/passwd", &mut symbols), "passwd+0x1234");
        assert_eq!(name("", &mut symbols), "0x1234");
    }
}
