//! Names for instructions: the function of a file that an offset lies in.
//!
//! The one idea: only what is shown is looked up, after the program has ended, in the symbol tables
//! of the files themselves. A file that has changed or has no symbols gives its own name and the
//! offset instead. Names of Rust functions are shown as they are written.
//!
//! It reads no debug information: inlined functions count for those that they were inlined into.

use std::{collections::HashMap, fs::File, path::Path, rc::Rc};

use elf::{
    ElfStream,
    abi::{PT_LOAD, STT_FUNC, STT_GNU_IFUNC},
    endian::AnyEndian,
    string_table::StringTable,
    symbol::SymbolTable,
};

use super::tally::Frame;

/// The functions of the files that were asked about.
#[derive(Debug, Default)]
pub struct Symbols(HashMap<Rc<str>, Functions>);

#[derive(Debug, Default)]
struct Functions {
    /// File offset, length and address of each loaded segment.
    segments: Vec<(u64, u64, u64)>,
    /// Address, length and name, in order of address.
    functions: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// `function+0x1c (file)`, or `file+0x101c`, or an address.
    pub fn name(&mut self, frame: &Frame) -> String {
        if frame.file.is_empty() {
            return format!("{:#x}", frame.at);
        }
        let file = Path::new(&*frame.file).file_name().unwrap_or_default().to_string_lossy();
        let functions = self
            .0
            .entry(Rc::clone(&frame.file))
            .or_insert_with(|| Functions::read(Path::new(&*frame.file)).unwrap_or_default());
        match functions.find(frame.at) {
            Some((name, offset)) => format!("{}+{offset:#x} ({file})", demangled(name)),
            None => format!("{file}+{:#x}", frame.at),
        }
    }

    /// The function alone, where it has a name.
    pub fn function(&mut self, frame: &Frame) -> String {
        let whole = self.name(frame);
        whole.split_once("+0x").map_or(whole.clone(), |(name, _)| name.to_owned())
    }
}

impl Functions {
    fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
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
        let address = at - offset + address;
        let index = self.functions.partition_point(|function| function.0 <= address);
        let (start, length, name) = self.functions.get(index.checked_sub(1)?)?;
        // Assembly often says no length.
        (*length == 0 || address - start < *length).then_some((name, address - start))
    }
}

/// A name as it is written in the source.
fn demangled(name: &str) -> String {
    // The alternate form leaves the hash out.
    format!("{:#}", rustc_demangle::demangle(name))
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
        assert!(name.starts_with("pagelab_bench::explain::symbols::Functions::read+0x0"), "{name}");
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
