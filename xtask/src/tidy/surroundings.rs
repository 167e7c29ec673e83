//! Checks that the repository does not depend on where it was written.

use super::{Problem, tree::Tree};

/// Beginnings of paths that exist on somebody's machine only; in two halves, for this file's sake.
const LOCAL: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Lock files, and the one place that each of their sources may begin with.
const LOCKED: &[(&str, &str, &str)] = &[
    ("Cargo.lock", "source = \"", "registry+https://github.com/rust-lang/crates.io-index\""),
    ("package-lock.json", "\"resolved\": \"", "https://registry.npmjs.org/"),
    ("yarn.lock", "resolved \"", "https://registry.yarnpkg.com/"),
    ("uv.lock", "registry = \"", "https://pypi.org/simple\""),
];

/// Settings by which a tool is told of another registry: right on a machine, wrong in a repository.
const REDIRECTIONS: &[(&str, &str)] = &[
    ("config.toml", "[source."),
    ("config.toml", "[registries"),
    ("config.toml", "[registry]"),
    (".npmrc", "registry="),
    ("pip.conf", "index-url"),
    ("requirements.txt", "--index-url"),
];

/// No file names a folder of the machine it was written on.
pub(crate) fn local_paths(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            for start in LOCAL.iter().filter(|start| begins_a_path(line, start)) {
                let what = format!("names a path below `{start}`");
                let cure = "use a path from the repository's root, or a variable";
                problems.push(Problem::new(file, index + 1, what, cure));
            }
        }
    }
    problems
}

/// Whether the path starts there, instead of going on: `target/…` has folders of every name.
fn begins_a_path(line: &str, start: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "._-~}".contains(c);
    line.match_indices(start).any(|(at, _)| !line[..at].ends_with(inside))
}

/// Dependencies are locked to the public registries, and nothing redirects them.
pub(crate) fn registries(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in &tree.files {
        let name = file.rsplit('/').next().unwrap_or(file);
        for (index, line) in text.lines().map(str::trim).enumerate() {
            let foreign = LOCKED.iter().any(|(lock, key, registry)| {
                let source = line.strip_prefix(key);
                *lock == name && source.is_some_and(|source| !source.starts_with(registry))
            });
            let redirected =
                REDIRECTIONS.iter().any(|(config, key)| *config == name && line.starts_with(key));
            if foreign || redirected {
                let cure = "resolve against the public registry; keep mirrors in your own settings";
                let what = "a dependency comes from elsewhere";
                problems.push(Problem::new(file, index + 1, what, cure));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_this_machine_is_found() {
        for start in LOCAL {
            let text = format!("fine\nsee {start}pagelab/README.md\n");
            let problems = local_paths(&Tree::of(&[("docs/a.md", &text)]));
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].line, 2);
        }
    }

    #[test]
    fn a_folder_of_the_same_name_elsewhere_is_fine() {
        for start in LOCAL {
            let text = format!("target{start}a ${{FOLDER}}{start}b\n");
            assert_eq!(local_paths(&Tree::of(&[("docs/a.md", &text)])), []);
        }
    }

    #[test]
    fn a_locked_source_is_public() {
        let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        let mirror = "source = \"registry+https://mirror.example/index\"\n";
        assert_eq!(registries(&Tree::of(&[("Cargo.lock", public)])), []);
        assert_eq!(registries(&Tree::of(&[("fuzz/Cargo.lock", mirror)])).len(), 1);
        assert_eq!(registries(&Tree::of(&[("docs/a.md", mirror)])), []);
    }

    #[test]
    fn a_redirection_is_found() {
        let text = "[alias]\nxtask = \"\"\n[source.crates-io]\nreplace-with = \"m\"\n";
        let problems = registries(&Tree::of(&[(".cargo/config.toml", text)]));
        assert_eq!((problems.len(), problems[0].line), (1, 3));
    }
}
