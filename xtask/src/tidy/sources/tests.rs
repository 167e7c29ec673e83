//! Each check of [`super`] on the smallest tree that it finds something in, and on one it does not.

use super::*;

fn rust(text: &str) -> Tree {
    Tree::of(&[("crates/workloads/src/lib.rs", text)])
}

fn lines_of(problems: &[Problem]) -> Vec<usize> {
    problems.iter().map(|problem| problem.line).collect()
}

#[test]
fn a_file_starts_with_its_purpose() {
    assert_eq!(module_docs(&rust("//! Pages.\n")), []);
    assert_eq!(module_docs(&rust("#![expect(\n    dead_code,\n)]\n\n//! Pages.\n")), []);
    assert_eq!(lines_of(&module_docs(&rust("use std::fs;\n//! Pages.\n"))), [1]);
    assert_eq!(lines_of(&module_docs(&rust(""))), [1]);
}

#[test]
fn a_file_that_no_module_names_is_found() {
    let mut files = vec![
        ("crates/a/src/lib.rs", "pub mod one;\n#[cfg(test)]\nmod two;\ninclude!(\"three.rs\");"),
        ("crates/a/src/one/mod.rs", "#[path = \"x/five.rs\"]\nmod four;"),
        ("crates/a/src/two.rs", ""),
        ("crates/a/src/three.rs", ""),
        ("crates/a/src/one/x/five.rs", ""),
        ("crates/a/src/bin/tool.rs", ""),
        ("crates/a/build.rs", ""),
    ];
    assert_eq!(dead_files(&Tree::of(&files)), []);
    files.push(("crates/b/src/two.rs", ""));
    let problems = dead_files(&Tree::of(&files));
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].file, "crates/b/src/two.rs");
}

#[test]
fn unsafe_is_allowed_in_its_rooms_only() {
    let text = format!("//! Pages.\n#![expect({}, reason = \"\")]\n", concat!("unsafe", "_code"));
    assert_eq!(lines_of(&unsafe_rooms(&rust(&text))), [2]);
    for room in ["core/sys/src/map.rs", "emulation/trace/src/decode.rs"] {
        assert_eq!(unsafe_rooms(&Tree::of(&[(room, &text)])), []);
    }
    assert_eq!(unsafe_rooms(&Tree::of(&[("emulation/trace/src/lib.rs", &text)])).len(), 1);
}

#[test]
fn lines_are_counted_in_characters() {
    let fits = "µ".repeat(LINE_MAX_CHARS);
    assert_eq!(long_lines(&rust(&fits)), []);
    assert_eq!(lines_of(&long_lines(&rust(&format!("\n{fits}µ")))), [2]);
    let data = Tree::of(&[("tests/data/a.json", &fits.repeat(2))]);
    assert_eq!(long_lines(&data), []);
}

#[test]
fn what_others_wrote_is_theirs() {
    let tree = Tree::of(&[("core/report/vendor/a.c", &"x".repeat(1000))]);
    assert_eq!(long_lines(&tree), []);
}

#[test]
fn tests_do_not_make_a_file_long() {
    let body = "line\n".repeat(FILE_MAX_LINES);
    let tested = format!("{body}\n#[cfg(test)]\nmod tests {{\n{body}}}\n");
    assert_eq!(long_files(&rust(&tested)), []);
    assert_eq!(long_files(&rust(&format!("{body}\n#[cfg(test)]\nmod tests;\n"))), []);
    assert_eq!(long_files(&rust(&format!("{body}line\n"))).len(), 1);
    let first = format!("//! A.\n#[cfg(test)]\nmod tests;\n{body}");
    assert_eq!(long_files(&rust(&first)).len(), 1);
    let sibling = Tree::of(&[("crates/a/src/x/tests.rs", &format!("{body}line\n"))]);
    assert_eq!(long_files(&sibling), []);
}

#[test]
fn whole_words_only_are_leftovers() {
    for word in LEFTOVERS {
        assert_eq!(lines_of(&leftovers(&rust(&format!("//! Pages.\n// {word}: later")))), [2]);
        assert_eq!(leftovers(&rust(&format!("MY_{word}"))), []);
    }
    assert_eq!(leftovers(&rust("mkstemp(\"/tmp/pagelab-XXXXXX\")")), []);
}

#[test]
fn an_ignored_test_has_a_reason() {
    let silent = concat!("#[test]\n    #[", "ignore]\nfn f() {}");
    assert_eq!(lines_of(&silent_ignores(&rust(silent))), [2]);
    assert_eq!(silent_ignores(&rust("#[ignore = \"needs two nodes\"]\nfn f() {}")), []);
}
