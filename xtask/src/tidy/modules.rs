//! A crate's files as its modules: which file a path names, and which file takes what from which.
//!
//! The one idea: a path is followed to the file that *defines* what it names, through every `use`
//! on the way. So a door that only hands on is no stop, and who goes through it meets whoever is
//! behind it. Methods and macros are not followed: they need types, which no text has.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    code::{Token, bare, tokens, without_tests},
    tree::Tree,
};

/// The files of a crate, each reached from its root by `mod`, tests left out.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub(crate) files: Vec<File>,
}

/// One file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) path: String,
    /// Code without comments, literals and tests.
    pub(crate) code: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    /// Names that `use` brings in, with the path of each and whether it is handed on.
    names: BTreeMap<String, (Vec<String>, bool)>,
    globs: Vec<Vec<String>>,
    defines: BTreeSet<String>,
    /// Paths outside `use`, and single words as paths of one.
    paths: BTreeSet<Vec<String>>,
}

/// What one file takes from another, by their indices.
pub(crate) type Arrows = BTreeMap<(usize, usize), BTreeSet<String>>;

const DEFINERS: &[&str] =
    &["fn", "struct", "enum", "trait", "const", "static", "type", "union", "mod"];

impl Modules {
    /// The modules of a crate whose root is this file.
    pub(crate) fn of(tree: &Tree, root: &str) -> Self {
        let mut modules = Self::default();
        modules.add(tree, root, 0);
        modules
    }

    fn add(&mut self, tree: &Tree, path: &str, parent: usize) -> Option<usize> {
        let text = tree.files.get(path)?;
        let code = without_tests(&bare(text));
        let index = self.files.len();
        self.files.push(File { path: path.to_owned(), parent, ..File::default() });
        let read = tokens(&code);
        for (at, token) in read.iter().enumerate() {
            let ([(_, name), (_, ";")], "mod") = (read.get(at + 1..at + 3).unwrap_or(&[]), token.1)
            else {
                continue;
            };
            let told = attribute_path(&read[..at], text);
            let below = places(path, name, told);
            let child = below.iter().find_map(|place| self.add(tree, place, index));
            if let Some(child) = child {
                self.files[index].children.insert((*name).to_owned(), child);
            }
        }
        self.files[index].read(&read);
        self.files[index].code = code;
        Some(index)
    }

    /// Every arrow between two files, but for what a file takes from the modules that it stands in:
    /// a table and the words that its rows share may lie in one door.
    pub(crate) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, file) in self.files.iter().enumerate() {
            let handed_on = |name: &str| file.names.get(name).is_some_and(|(_, public)| *public);
            let mut draw = |path: &[String], to: Option<(usize, bool)>| {
                let Some((to, _)) = to.filter(|(to, _)| !self.stands_in(from, *to)) else { return };
                let name = path.last().cloned().unwrap_or_default();
                arrows.entry((from, to)).or_default().insert(name);
            };
            for (path, _) in file.names.values().filter(|(_, public)| !public) {
                // A module alone is no arrow; the paths that go on from it are.
                draw(path, self.resolve(from, path, 0).filter(|(_, module)| !module));
            }
            for glob in &file.globs {
                draw(glob, self.resolve(from, glob, 0));
            }
            for path in &file.paths {
                if path.len() > 1 || handed_on(&path[0]) {
                    draw(path, self.resolve(from, path, 0).filter(|(_, module)| !module));
                }
            }
        }
        arrows
    }

    fn stands_in(&self, mut file: usize, module: usize) -> bool {
        while file != module && file != 0 {
            file = self.files[file].parent;
        }
        file == module
    }

    /// The file that defines what a path names, and whether it names the file itself.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<(usize, bool)> {
        let (first, mut rest) = path.split_first()?;
        let file = &self.files[from];
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => file.parent,
            _ if depth > 8 => return None,
            name => match (file.children.get(name), file.names.get(name)) {
                (Some(child), _) => *child,
                (None, Some((path, _))) if path.first() != Some(first) || path.len() > 1 => {
                    match self.resolve_import(from, path, depth)? {
                        (at, true) => at,
                        found => return Some(found),
                    }
                }
                _ => return None,
            },
        };
        while let Some((name, left)) = rest.split_first() {
            rest = left;
            let file = &self.files[at];
            if name == "super" {
                at = file.parent;
            } else if let Some(child) = file.children.get(name) {
                at = *child;
            } else if file.defines.contains(name) {
                return Some((at, false));
            } else if let Some((path, _)) = file.names.get(name) {
                match self.resolve_import(at, path, depth)? {
                    (module, true) => at = module,
                    found => return Some(found),
                }
            } else {
                let behind = file.globs.iter().filter_map(|glob| self.resolve(at, glob, depth + 1));
                let mut behind = behind.map(|(file, _)| file);
                let owner = behind.find(|file| self.files[*file].defines.contains(name));
                return Some((owner.unwrap_or(at), false));
            }
        }
        Some((at, true))
    }

    /// The path of a `use`, whose first word is never a name that it brings in itself.
    fn resolve_import(&self, at: usize, path: &[String], depth: usize) -> Option<(usize, bool)> {
        let known = ["crate", "self", "super"].contains(&path[0].as_str());
        if known || self.files[at].children.contains_key(&path[0]) {
            return self.resolve(at, path, depth + 1);
        }
        None
    }
}

impl File {
    fn read(&mut self, read: &[Token<'_>]) {
        let mut at = 0;
        while at < read.len() {
            let word = read[at].1;
            let before = if at == 0 { "" } else { read[at - 1].1 };
            let next = read.get(at + 1).map_or("", |token| token.1);
            if word == "use" && (at == 0 || ["pub", ")", ";", "}", "{", "]"].contains(&before)) {
                let public = before == "pub" || before == ")";
                at = self.read_use(read, at + 1, &[], public);
                continue;
            }
            if DEFINERS.contains(&word) || word == "macro_rules" {
                let name = if next == "!" { read.get(at + 2) } else { read.get(at + 1) };
                self.defines.extend(name.map(|token| token.1.to_owned()));
            }
            if is_word(word) && before != "::" {
                let mut path = vec![word.to_owned()];
                while let Some([(_, "::"), (_, name)]) = read.get(at + 1..at + 3)
                    && is_word(name)
                {
                    path.push((*name).to_owned());
                    at += 2;
                }
                self.paths.insert(path);
            }
            at += 1;
        }
    }

    /// Reads one tree of a `use` from `at` on and says where it ends.
    fn read_use(
        &mut self,
        read: &[Token<'_>],
        mut at: usize,
        prefix: &[String],
        public: bool,
    ) -> usize {
        let mut path = prefix.to_vec();
        while let Some((_, token)) = read.get(at) {
            at += 1;
            match *token {
                "::" => {}
                "{" => {
                    while read.get(at).is_some_and(|(_, token)| *token != "}") {
                        at = self.read_use(read, at, &path, public);
                        at += usize::from(read.get(at).is_some_and(|(_, token)| *token == ","));
                    }
                    at += 1;
                    break;
                }
                "*" => {
                    self.globs.push(path);
                    break;
                }
                "," | ";" | "}" => {
                    at -= 1;
                    self.bring(path, None, public);
                    break;
                }
                "as" => {
                    let alias = read.get(at).map_or("_", |token| token.1);
                    self.bring(path, Some(alias), public);
                    at += 1;
                    break;
                }
                word => path.push(word.to_owned()),
            }
        }
        at
    }

    fn bring(&mut self, mut path: Vec<String>, alias: Option<&str>, public: bool) {
        if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
            path.pop();
        }
        if let Some(name) = alias.map(str::to_owned).or_else(|| path.last().cloned()) {
            self.names.insert(name, (path, public));
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The file that an attribute before `mod` names.
fn attribute_path<'t>(before: &[Token<'_>], text: &'t str) -> Option<&'t str> {
    let start = before.iter().rposition(|(_, token)| [";", "}"].contains(token)).map_or(0, |at| at);
    let own = &before[start..];
    let at = own.iter().position(|(_, token)| *token == "path")?;
    let [(_, "="), (literal, token)] = own.get(at + 1..at + 3)? else { return None };
    text.get(literal + 1..literal + token.len() - 1)
}

/// Where the file of a module may lie that is declared in the file `path`.
fn places(path: &str, name: &str, told: Option<&str>) -> Vec<String> {
    let (folder, base) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(told) = told {
        return vec![format!("{folder}/{told}")];
    }
    let below = match base {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", base.trim_end_matches(".rs")),
    };
    vec![format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let modules = Modules::of(&Tree::of(files), "a/src/lib.rs");
        let short =
            |index: usize| modules.files[index].path.trim_start_matches("a/src/").to_owned();
        let arrow = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("{} -> {}: {}", short(*from), short(*to), names.join(" "))
        };
        modules.arrows().iter().map(arrow).collect()
    }

    #[test]
    fn a_path_leads_to_the_file_that_defines_what_it_names() {
        let files = [
            ("a/src/lib.rs", "mod door; mod other; pub use door::Thing;"),
            ("a/src/door/mod.rs", "mod inner; pub use inner::{Thing, make as build};"),
            ("a/src/door/inner.rs", "pub struct Thing; pub fn make() {}"),
            ("a/src/other.rs", "use crate::{Thing, door::build}; use std::fs;"),
        ];
        assert_eq!(arrows(&files), ["other.rs -> door/inner.rs: Thing build"]);
    }

    #[test]
    fn a_door_that_only_hands_on_takes_nothing_and_one_that_uses_does() {
        let door = |more: &str| format!("mod inner; pub use inner::Thing; {more}");
        let files = |more| {
            let door = door(more);
            arrows(&[("a/src/lib.rs", &door), ("a/src/inner.rs", "pub struct Thing;")])
        };
        assert_eq!(files(""), [] as [&str; 0]);
        assert_eq!(files("fn f(x: Thing) {}"), ["lib.rs -> inner.rs: Thing"]);
        assert_eq!(
            files("fn f() { inner::g() }"),
            ["lib.rs -> inner.rs: Thing"].map(|_| { "lib.rs -> inner.rs: g" })
        );
    }

    #[test]
    fn what_a_parent_imports_its_children_take_from_where_it_is() {
        let files = [
            ("a/src/lib.rs", "mod x; mod y;"),
            ("a/src/x.rs", "mod z; use crate::y::Y; use std::io;"),
            ("a/src/x/z.rs", "use super::{Y, io};"),
            ("a/src/y.rs", "pub struct Y;"),
        ];
        assert_eq!(arrows(&files), ["x.rs -> y.rs: Y", "x/z.rs -> y.rs: Y"]);
    }

    #[test]
    fn what_a_file_takes_from_the_modules_it_stands_in_is_no_arrow() {
        let files = [
            ("a/src/lib.rs", "mod x; pub struct Top;"),
            ("a/src/x.rs", "mod z; pub struct X; fn f() { z::g() }"),
            ("a/src/x/z.rs", "use super::X; use crate::Top; pub fn g() {}"),
        ];
        assert_eq!(arrows(&files), ["x.rs -> x/z.rs: g"]);
    }

    #[test]
    fn a_module_is_an_arrow_where_something_is_taken_from_it() {
        let lib = ("a/src/lib.rs", "mod x; mod y;");
        let y = ("a/src/y.rs", "pub fn f() {}");
        assert_eq!(arrows(&[lib, ("a/src/x.rs", "use crate::y;"), y]), [] as [&str; 0]);
        let uses = ("a/src/x.rs", "use crate::y; fn g() { y::f() }");
        assert_eq!(arrows(&[lib, uses, y]), ["x.rs -> y.rs: f"]);
        let glob = ("a/src/x.rs", "use crate::y::*;");
        assert_eq!(arrows(&[lib, glob, y]), ["x.rs -> y.rs: y"]);
    }

    #[test]
    fn tests_and_files_elsewhere_are_as_the_declarations_say() {
        let files = [
            ("a/src/lib.rs", "#[path = \"b/c.rs\"] mod imp; #[cfg(test)] mod tests; use imp::f;"),
            ("a/src/b/c.rs", "pub fn f() {}"),
            ("a/src/tests.rs", "use crate::imp::f;"),
        ];
        assert_eq!(arrows(&files), ["lib.rs -> b/c.rs: f"]);
    }
}
