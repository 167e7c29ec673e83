//! Circles: files that take from one another, and folders that do.
//!
//! The one idea: a file is read after those that it takes from, and a folder is read as a whole. A
//! circle of files has no first one; a circle of folders has an arrow upward, whichever of them is
//! called the lower. What two of them share belongs below both, or into one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    Problem,
    modules::{Arrows, Modules},
    ratchet::Entry,
    sources::{gone, slack, tolerated},
    tree::Tree,
};

/// Things that reach each other, by their names.
type Circle = BTreeSet<String>;

/// Files of a crate must not take from one another in a circle.
pub(crate) fn of_files(tree: &Tree, ratchet: &[Entry]) -> Vec<Problem> {
    let cure = "move what both need into a file of its own, or to the one that others take from";
    checked(tree, ratchet, cure, file_circles)
}

/// Nor must the folders and files that lie beside each other in a folder.
pub(crate) fn of_folders(tree: &Tree, ratchet: &[Entry]) -> Vec<Problem> {
    let cure = "move what both need below both of them: one of these arrows points upward";
    checked(tree, ratchet, cure, folder_circles)
}

/// How many circles of files there are in the crates, and how many of them across folders.
pub(crate) fn count(tree: &Tree) -> (usize, usize) {
    let folder = |file: &String| file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let crates = crates(tree).into_iter().map(|(_, modules)| (modules.arrows(), modules));
    let all = crates.flat_map(|(arrows, modules)| file_circles(&modules, &arrows));
    all.fold((0, 0), |(files, across), circle| {
        let folders: BTreeSet<_> = circle.iter().map(folder).collect();
        (files + 1, across + usize::from(folders.len() > 1))
    })
}

fn checked(
    tree: &Tree,
    ratchet: &[Entry],
    cure: &str,
    find: fn(&Modules, &Arrows) -> Vec<Circle>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (package, modules) in crates(tree) {
        let arrows = modules.arrows();
        let circles = find(&modules, &arrows);
        let tied = circles.iter().map(BTreeSet::len).sum();
        let allowed = tolerated(ratchet, &package);
        if tied > allowed {
            problems.extend(circles.iter().map(|circle| {
                let names: Vec<_> = circle.iter().map(String::as_str).collect();
                let what =
                    format!("a circle: {}{}", names.join(", "), ties(&modules, &arrows, circle));
                Problem::new(&package, 0, what, cure)
            }));
        }
        problems.extend(slack(&package, tied, allowed));
    }
    problems.extend(gone(tree, ratchet));
    problems
}

/// The roots of our packages, each with its folder.
fn crates(tree: &Tree) -> Vec<(String, Modules)> {
    let mut crates = Vec::new();
    for package in &tree.packages {
        let folder = package.manifest.trim_end_matches("/Cargo.toml");
        let root = ["lib.rs", "main.rs"].map(|root| format!("{folder}/src/{root}"));
        if let Some(root) = root.iter().find(|root| tree.files.contains_key(*root)) {
            crates.push((folder.to_owned(), Modules::of(tree, root)));
        }
    }
    crates
}

/// A file's place: `a.rs` stands in the folder `a` where there is one, as `a/mod.rs` does.
fn place(modules: &Modules, file: usize) -> String {
    let path = &modules.files[file].path;
    let stem = path.trim_end_matches(".rs");
    let folder = format!("{stem}/");
    let has_folder = modules.files.iter().any(|file| file.path.starts_with(&folder));
    if has_folder { format!("{folder}mod.rs") } else { path.clone() }
}

fn file_circles(modules: &Modules, arrows: &Arrows) -> Vec<Circle> {
    let place = |file: usize| place(modules, file);
    circles(&arrows.keys().map(|(from, to)| (place(*from), place(*to))).collect())
}

fn folder_circles(modules: &Modules, arrows: &Arrows) -> Vec<Circle> {
    let mut beside: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        let (from, to) = (place(modules, *from), place(modules, *to));
        let mut folder = 0;
        for ((at, a), b) in from.bytes().enumerate().zip(to.bytes()) {
            if a != b {
                break;
            }
            folder = if a == b'/' { at + 1 } else { folder };
        }
        let room = |path: &str| {
            let end = path[folder..].find('/').map_or(path.len(), |at| folder + at);
            path[..end].to_owned()
        };
        beside.entry(from[..folder].to_owned()).or_default().insert((room(&from), room(&to)));
    }
    let circles = beside.values().flat_map(circles);
    // A circle of files is said where files are spoken of.
    let has_folder =
        |circle: &Circle| circle.iter().any(|room| Path::new(room).extension().is_none());
    circles.filter(has_folder).collect()
}

/// What reaches itself through others, together with them.
fn circles(arrows: &BTreeSet<(String, String)>) -> Vec<Circle> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from).or_default().insert(to);
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|at| (*at, reached(&next, at))).collect();
    let mut circles: Vec<Circle> = Vec::new();
    for (at, from_it) in reach.iter().filter(|(at, from_it)| from_it.contains(*at)) {
        let back = |to: &&&str| reach.get(**to).is_some_and(|from_there| from_there.contains(at));
        let circle: Circle = from_it.iter().filter(back).map(|to| (*to).to_owned()).collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reached<'n>(next: &BTreeMap<&'n str, BTreeSet<&'n str>>, from: &str) -> BTreeSet<&'n str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&BTreeSet<&str>> = next.get(from).into_iter().collect();
    while let Some(beside) = open.pop() {
        let new = beside.iter().filter(|to| reached.insert(**to));
        open.extend(new.filter_map(|to| next.get(to)));
    }
    reached
}

/// The arrows of a circle, a line for each.
fn ties(modules: &Modules, arrows: &Arrows, circle: &Circle) -> String {
    let member = |file: usize| {
        let place = place(modules, file);
        let inside = |room: &&String| {
            place
                .strip_prefix(room.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        circle.iter().find(inside)
    };
    let mut lines = String::new();
    for ((from, to), names) in arrows {
        let (Some(here), Some(there)) = (member(*from), member(*to)) else { continue };
        if here != there {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let [from, to] = [from, to].map(|file| &modules.files[*file].path);
            lines += &format!("\n      {from} -> {to}: {}", names.join(", "));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{super::tree::Package, *};

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::of(files);
        let manifest = "crates/a/Cargo.toml".to_owned();
        tree.packages.push(Package { name: "a".into(), manifest, imports: Vec::new() });
        tree
    }

    /// Two folders and a file; what their files hold beside their modules.
    fn house(x: &str, deep: &str, y: &str, z: &str) -> Tree {
        let x = format!("pub mod deep; {x}");
        tree(&[
            ("crates/a/src/lib.rs", "mod x; mod y; mod z;"),
            ("crates/a/src/x/mod.rs", &x),
            ("crates/a/src/x/deep.rs", deep),
            ("crates/a/src/y.rs", y),
            ("crates/a/src/z.rs", z),
        ])
    }

    const X: &str = "pub struct X;";
    const Y: &str = "pub struct Y;";

    #[test]
    fn a_house_whose_arrows_all_point_down_is_fine() {
        let tree = house(X, "use crate::y::Y;", Y, "use crate::{x::X, y::Y};");
        assert_eq!(
            (of_files(&tree, &[]), of_folders(&tree, &[]), count(&tree)),
            (vec![], vec![], (0, 0))
        );
    }

    #[test]
    fn a_circle_of_files_is_found_with_what_ties_it() {
        let tree = house(X, "", "pub struct Y; use crate::z::Z;", "pub struct Z; use crate::y::Y;");
        let problems = of_files(&tree, &[]);
        assert_eq!(problems.len(), 1);
        assert_eq!(
            problems[0].what,
            "a circle: crates/a/src/y.rs, crates/a/src/z.rs\n      \
             crates/a/src/y.rs -> crates/a/src/z.rs: Z\n      \
             crates/a/src/z.rs -> crates/a/src/y.rs: Y"
        );
        assert_eq!((of_folders(&tree, &[]), count(&tree)), (vec![], (1, 0)));
    }

    #[test]
    fn a_circle_of_folders_needs_no_circle_of_files() {
        let tree = house(X, "use crate::y::Y;", "pub struct Y; use crate::x::X;", "");
        assert_eq!((of_files(&tree, &[]), count(&tree)), (vec![], (0, 0)));
        let problems = of_folders(&tree, &[]);
        assert!(problems[0].what.starts_with("a circle: crates/a/src/x, crates/a/src/y.rs\n"));
        let across =
            house("pub struct X; use crate::y::Y;", "", "pub struct Y; use crate::x::X;", "");
        assert_eq!(count(&across), (1, 1));
    }

    #[test]
    fn the_ratchet_counts_what_is_tied() {
        let tree = house(X, "", "pub struct Y; use crate::z::Z;", "pub struct Z; use crate::y::Y;");
        assert_eq!(of_files(&tree, &[("crates/a", 2)]), []);
        assert_eq!(of_files(&tree, &[("crates/a", 1)]).len(), 1);
        assert_eq!(
            of_files(&tree, &[("crates/a", 3)])[0].what,
            "is better than its entry: 2, not 3"
        );
    }
}
