//! The repository as the checks see it: text by path, and packages with what they import.
//!
//! It is read once, so that a check is a function of values and its test needs no disk.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{cargo, git, output};

/// Everything that the checks look at.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Text files by path from the root; what is not UTF-8 is left out.
    pub(crate) files: BTreeMap<String, String>,
    /// Paths of all files, texts or not.
    pub(crate) paths: Vec<String>,
    /// Our packages.
    pub(crate) packages: Vec<Package>,
}

/// One of our packages. Names are those of ARCHITECTURE.md: `record`, not `pagelab-record`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its `Cargo.toml` from the root.
    pub(crate) manifest: String,
    /// Our packages that it depends on, in whatever way.
    pub(crate) imports: Vec<String>,
}

/// Folders of our workspaces: what nightly compiles has one of its own, and what Python loads.
const WORKSPACES: &[&str] = &["", "fuzz/", "python/"];

impl Tree {
    /// The tree in the working directory: what git tracks, and what it would if asked.
    pub(crate) fn of_the_repository() -> Result<Self> {
        let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = output(&mut git(listed))?;
        let mut tree = Self::default();
        for path in listed.split_terminator('\0') {
            // Listed but gone: deleted, and not yet told to git.
            let Ok(bytes) = fs::read(path) else { continue };
            tree.paths.push(path.to_owned());
            if let Ok(text) = String::from_utf8(bytes) {
                tree.files.insert(path.to_owned(), text);
            }
        }
        for folder in WORKSPACES {
            let manifest = format!("{folder}Cargo.toml");
            let mut metadata = cargo("metadata");
            metadata.args(["--no-deps", "--format-version", "1", "--manifest-path", &manifest]);
            tree.packages.extend(packages(&output(&mut metadata)?, folder)?);
        }
        Ok(tree)
    }

    /// Files with this extension.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(move |(path, _)| {
            Path::new(path).extension().is_some_and(|own| own == extension)
        })
    }

    /// Whether a path from the root is a file or a folder.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let inside = |file: &String| {
            file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.paths.iter().any(inside)
    }
}

/// Reads the output of `cargo metadata --no-deps` for the workspace in a folder.
fn packages(metadata: &str, folder: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("reading cargo metadata")?;
    let root = text(&metadata, "workspace_root").to_owned() + "/";
    let package = |value: &Value| Package {
        name: short(text(value, "name")),
        manifest: folder.to_owned() + text(value, "manifest_path").trim_start_matches(&root),
        imports: list(value, "dependencies")
            .filter(|dependency| dependency["path"].is_string())
            .map(|dependency| short(text(dependency, "name")))
            .collect(),
    };
    Ok(list(&metadata, "packages").map(package).collect())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn short(name: &str) -> String {
    name.strip_prefix("pagelab-").unwrap_or(name).to_owned()
}

#[cfg(test)]
impl Tree {
    /// A tree of these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files: BTreeMap<_, _> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { paths: files.keys().cloned().collect(), files, packages: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_cargo_metadata() {
        let metadata = r#"{"workspace_root":"/w","packages":[{"name":"pagelab-report",
            "manifest_path":"/w/core/report/Cargo.toml","dependencies":[
            {"name":"pagelab-record","path":"/w/core/record"},{"name":"serde"}]}]}"#;
        let expected = Package {
            name: "report".into(),
            manifest: "core/report/Cargo.toml".into(),
            imports: vec!["record".into()],
        };
        assert_eq!(packages(metadata, "").unwrap(), [expected]);
        assert!(packages("{", "").is_err());
    }

    #[test]
    fn the_packages_of_a_workspace_in_a_folder_have_their_place_in_it() {
        let metadata = r#"{"workspace_root":"/w/fuzz","packages":[{"name":"pagelab-fuzz",
            "manifest_path":"/w/fuzz/Cargo.toml","dependencies":[]}]}"#;
        let packages = packages(metadata, "fuzz/").unwrap();
        assert_eq!((&*packages[0].name, &*packages[0].manifest), ("fuzz", "fuzz/Cargo.toml"));
    }

    #[test]
    fn folders_exist_as_far_as_they_hold_files() {
        let tree = Tree::of(&[("docs/a.md", "")]);
        assert!(tree.exists("docs") && tree.exists("docs/a.md") && tree.exists(""));
        assert!(!tree.exists("doc") && !tree.exists("docs/b.md"));
    }
}
