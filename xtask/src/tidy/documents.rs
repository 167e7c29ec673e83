//! Checks of documents: that each workload has its page, and that what they point at exists.

use std::collections::BTreeMap;

use super::{Problem, sources::before_tests, tree::Tree};

/// Where pages of workloads are, beside the folder `docs` of each part.
const PAGES: &str = "docs/workloads/";
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ARCHITECTURE_MAX_LINES: usize = 150;
const METHODOLOGY: &str = "METHODOLOGY.md";
const METHODOLOGY_MAX_WORDS: usize = 4000;
const README: &str = "README.md";
/// The command by which the README says, and CI does, the tests.
const TEST_COMMAND: &str = "cargo xtask test";

/// Every workload has a page, and every page a workload.
pub(crate) fn workload_pages(tree: &Tree) -> Vec<Problem> {
    let workloads = workloads(tree);
    let mut problems = Vec::new();
    for (name, (file, line)) in &workloads {
        let page = page_of(name);
        let heading = format!("# {name}");
        match tree.with_extension("md").find(|(file, _)| is_page(file, &page)) {
            None => {
                let cure =
                    format!("write it: what is timed, what is not, and why: start `{heading}`");
                let what = format!("workload `{name}` has no page {PAGES}{page}");
                problems.push(Problem::new(file, *line, what, cure));
            }
            Some((page, text)) if !text.starts_with(&heading) => {
                let what = format!("does not start with the name of `{name}`");
                problems.push(Problem::new(page, 1, what, format!("start with `{heading}`")));
            }
            Some(_) => {}
        }
    }
    for (file, _) in tree.with_extension("md") {
        let Some(page) = file.strip_prefix(PAGES) else { continue };
        if page != README && !workloads.keys().any(|name| page_of(name) == page) {
            let cure = "delete it, or name it as the workload is named: <collection>-<name>.md";
            problems.push(Problem::new(file, 0, "is the page of no workload", cure));
        }
    }
    problems
}

fn page_of(workload: &str) -> String {
    format!("{}.md", workload.replace('/', "-"))
}

/// Whether a file is that page: in the folder of all, or in that of a part.
fn is_page(file: &str, page: &str) -> bool {
    let folder = file.strip_suffix(page);
    folder.is_some_and(|folder| folder == PAGES || folder.ends_with("/docs/"))
}

/// Names of workloads, and where: of each constant that is one, the literal `collection/name`.
fn workloads(tree: &Tree) -> BTreeMap<&str, (&str, usize)> {
    const TYPE: &str = ": Described<";
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/".contains(c);
    let is_name = |text: &&str| text.matches('/').count() == 1 && text.chars().all(plain);
    let mut found = BTreeMap::new();
    for (file, text) in tree.with_extension("rs") {
        if !file.contains("/src/") || file.starts_with("xtask/") {
            continue;
        }
        let text = before_tests(text);
        for (at, _) in text.match_indices(TYPE) {
            if let Some(name) = text[at..].split('"').skip(1).step_by(2).find(is_name) {
                found.insert(name, (file, text[..at].lines().count()));
            }
        }
    }
    found
}

/// A picture of the whole is short enough to be read whole.
pub(crate) fn architecture(tree: &Tree) -> Vec<Problem> {
    let Some(text) = tree.files.get(ARCHITECTURE) else {
        let cure = "write it: the parts, who imports whom, the path of data";
        return vec![Problem::new(ARCHITECTURE, 0, "does not exist", cure)];
    };
    let lines = text.lines().count();
    let what = format!("{lines} lines, {ARCHITECTURE_MAX_LINES} are enough");
    let cure = "move what concerns one crate to its module doc";
    let long = lines > ARCHITECTURE_MAX_LINES;
    long.then(|| Problem::new(ARCHITECTURE, 0, what, cure)).into_iter().collect()
}

/// The method is short enough to be read before a number is believed.
pub(crate) fn methodology(tree: &Tree) -> Vec<Problem> {
    let words = tree.files.get(METHODOLOGY).map_or(0, |text| text.split_whitespace().count());
    let what = format!("{words} words, {METHODOLOGY_MAX_WORDS} are enough");
    let cure = "move what concerns one workload to its page, and results to records/";
    let long = words > METHODOLOGY_MAX_WORDS;
    long.then(|| Problem::new(METHODOLOGY, 0, what, cure)).into_iter().collect()
}

/// The README's first two blocks are what to type; one of its blocks is how the tests run.
pub(crate) fn readme(tree: &Tree) -> Vec<Problem> {
    let Some(text) = tree.files.get(README) else {
        let cure = "write it: what it is, how to start it, how to test it";
        return vec![Problem::new(README, 0, "does not exist", cure)];
    };
    let blocks = code_blocks(text);
    let mut problems = Vec::new();
    if blocks.len() < 2 {
        let cure = "show how to build and start it, and how to test it";
        problems.push(Problem::new(README, 0, "has fewer than two code blocks", cure));
    }
    if !blocks.iter().any(|block| block.lines().any(|line| typed(line) == TEST_COMMAND)) {
        let cure = format!("give `{TEST_COMMAND}` a line of its own: .ci/run reads it there");
        problems.push(Problem::new(README, 0, "does not say how to run the tests", cure));
    }
    problems
}

/// A line of a block without the prompt.
fn typed(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("$ ").unwrap_or(line)
}

/// The contents of fenced blocks.
fn code_blocks(text: &str) -> Vec<&str> {
    text.split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .map(|(_, body)| body)
        .collect()
}

/// A link to a file of ours leads to one.
pub(crate) fn links(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in tree.with_extension("md") {
        let mut in_code = false;
        for (index, line) in text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            if in_code {
                continue;
            }
            for target in targets(line).filter(|target| !leads_somewhere(tree, file, target)) {
                let what = format!("links to `{target}`, which does not exist");
                problems.push(Problem::new(file, index + 1, what, "correct or remove the link"));
            }
        }
    }
    problems
}

/// What the links of a line point at; text between back quotes is not a link.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    let starts = prose.flat_map(|text| text.split("](").skip(1));
    starts.filter_map(|rest| rest.split([')', ' ']).next())
}

fn leads_somewhere(tree: &Tree, from: &str, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains(':') {
        return true;
    }
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in path.split('/').filter(|part| !["", "."].contains(part)) {
        if part != ".." {
            parts.push(part);
        } else if parts.pop().is_none() {
            return false;
        }
    }
    tree.exists(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCH: &str = "fault/src/throughput/mod.rs";
    const CODE: &str = "/// A workload.\nconst T: Described<A> = Described {\n    resolve: \
                        |case| case.with(\"size\", \"2m\"),\n    \
                        ..Described::new(\"fault/throughput\")\n};\n";

    #[test]
    fn a_workload_without_a_page_is_found_where_it_is_named() {
        let problems = workload_pages(&Tree::of(&[(BENCH, CODE)]));
        assert_eq!(problems.len(), 1);
        assert_eq!((&*problems[0].file, problems[0].line), (BENCH, 2));
        assert!(problems[0].what.contains("docs/workloads/fault-throughput.md"));
    }

    #[test]
    fn a_page_starts_with_the_name_of_its_workload() {
        let page = "docs/workloads/fault-throughput.md";
        let fine = Tree::of(&[(BENCH, CODE), (page, "# fault/throughput\n")]);
        assert_eq!(workload_pages(&fine), []);
        let of_part = Tree::of(&[(BENCH, CODE), ("fault/docs/fault-throughput.md", "# F\n")]);
        assert_eq!(&*workload_pages(&of_part)[0].file, "fault/docs/fault-throughput.md");
        let other = Tree::of(&[(BENCH, CODE), (page, "# Faults\n")]);
        assert_eq!(workload_pages(&other).len(), 1);
    }

    #[test]
    fn a_page_without_a_workload_is_found() {
        let tree = Tree::of(&[("docs/workloads/old.md", ""), ("docs/workloads/README.md", "")]);
        assert_eq!(workload_pages(&tree).len(), 1);
    }

    #[test]
    fn other_names_and_names_in_tests_are_not_workloads() {
        let memory = "fn name(&self) -> &str { \"flat\" }\n";
        let tested = format!("{memory}\n#[cfg(test)]\nmod tests {{\n{CODE}}}\n");
        assert_eq!(workload_pages(&Tree::of(&[(BENCH, &tested)])), []);
    }

    #[test]
    fn the_architecture_is_there_and_short() {
        let of = |lines: usize| architecture(&Tree::of(&[(ARCHITECTURE, &"line\n".repeat(lines))]));
        assert_eq!(of(ARCHITECTURE_MAX_LINES), []);
        assert_eq!(of(ARCHITECTURE_MAX_LINES + 1).len(), 1);
        assert_eq!(architecture(&Tree::default()).len(), 1);
    }

    #[test]
    fn the_method_is_short() {
        let of = |n: usize| methodology(&Tree::of(&[(METHODOLOGY, &"word ".repeat(n))])).len();
        assert_eq!((of(METHODOLOGY_MAX_WORDS), of(METHODOLOGY_MAX_WORDS + 1)), (0, 1));
    }

    #[test]
    fn the_readme_shows_two_blocks_and_the_test_command() {
        let of = |text: &str| readme(&Tree::of(&[(README, text)])).len();
        assert_eq!(of("# p\n\n```sh\ncargo run\n```\n\n```sh\ncargo xtask test\n```\n"), 0);
        let prompts = "# p\n\n```console\n$ a\n```\n\n```console\n$ cargo xtask test\n```\n";
        assert_eq!(of(prompts), 0);
        assert_eq!(of("# p\n\n```sh\ncargo xtask test\n```\n"), 1);
        assert_eq!(of("# p\n\n```sh\na\n```\n\n```sh\nb\n```\ncargo xtask test\n"), 1);
        assert_eq!(of("# p\n"), 2);
    }

    #[test]
    fn links_inside_the_repository_resolve() {
        let text = "[a](../README.md#x) [b](https://example.org) [c](#here) `[d](no.md)`\n\
                    ```\n[e](no.md)\n```\n[f](./sub/) ![g](no.png \"title\")\n";
        let tree = Tree::of(&[("docs/a.md", text), ("README.md", ""), ("docs/sub/b.md", "")]);
        let problems = links(&tree);
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].line, problems[0].what.contains("no.png")), (5, true));
        assert_eq!(links(&Tree::of(&[("a.md", "[out](../../b.md)")])).len(), 1);
    }
}
