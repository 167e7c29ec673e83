//! Nobody reads a meaning out of a claim's sentence: it has an `id` for that.
//!
//! The one idea: a sentence is for people, so it may be made clearer on any day. The rule knows the
//! field: `claim.claim` compared, searched or matched on is a problem, whatever the variable is
//! called.

use super::{
    Problem,
    code::{bare, without_tests},
    ratchet::Entry,
    sources::{gone, is_test, slack, tolerated},
    tree::Tree,
};

/// What asks a text for its contents.
const QUESTIONS: &[&str] = &[
    ".contains(",
    ".starts_with(",
    ".ends_with(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".find(",
    ".rfind(",
    ".split",
    ".matches(",
    ".eq(",
    "==",
    "!=",
];

/// Files that decide something by the text of a claim.
pub(crate) fn matched(tree: &Tree, ratchet: &[Entry]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let files = tree.with_extension("rs").filter(|(file, _)| !is_test(file));
    // Only the owner of the schema tells claims apart by all that they are.
    for (file, text) in files.filter(|(file, _)| !file.starts_with("crates/record/")) {
        let lines = questions(&without_tests(&bare(text)));
        let allowed = tolerated(ratchet, file);
        if lines.len() > allowed {
            let cure = "compare the claim's `id`, which the record's vocabulary names";
            let problem =
                |line: &usize| Problem::new(file, *line, "matches on a claim's text", cure);
            problems.extend(lines.iter().map(problem));
        }
        problems.extend(slack(file, lines.len(), allowed));
    }
    problems.extend(gone(tree, ratchet));
    problems
}

/// Lines on which the field `claim` is asked what it says.
fn questions(code: &str) -> Vec<usize> {
    let field = ".claim";
    let mut lines = Vec::new();
    for (at, _) in code.match_indices(field) {
        let mut after = code[at + field.len()..].trim_start();
        if after.starts_with(|c: char| c.is_alphanumeric() || "_(".contains(c)) {
            continue;
        }
        for view in [".as_str()", ".as_ref()", ".trim()", "[..]"] {
            after = after.strip_prefix(view).unwrap_or(after).trim_start();
        }
        let chain = |c: char| c.is_alphanumeric() || "_.&*".contains(c);
        let before = code[..at].trim_end_matches(chain).trim_end();
        let compared = ["==", "!=", "match"].iter().any(|word| before.ends_with(word));
        if compared || QUESTIONS.iter().any(|question| after.starts_with(question)) {
            lines.push(code[..at].lines().count());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_about_a_claims_text_is_found_in_every_form() {
        for line in [
            "claims.any(|claim| claim.claim.contains(\"reorder\"))",
            "c.claim.starts_with(DIFFER)",
            "one.claim == CLAIM",
            "CLAIM == &one.claim",
            "match claim.claim.as_str() { _ => {} }",
            "claim\n    .claim\n    .split_once(\": \")",
        ] {
            assert_eq!(questions(line).len(), 1, "{line}");
        }
    }

    #[test]
    fn showing_a_claim_and_asking_for_its_id_are_fine() {
        for line in [
            "println!(\"{}\", claim.claim)",
            "claim.id == ids::DIGEST",
            "x.claim()",
            "a.claims.find(f)",
        ] {
            assert_eq!(questions(line), [] as [usize; 0], "{line}");
        }
    }

    #[test]
    fn the_ratchet_names_the_file_and_tests_may_ask() {
        let file = "crates/report/src/a.rs";
        let text =
            "//! A.\nfn f() { c.claim == \"x\" }\n#[cfg(test)]\nmod tests { c.claim == D }\n";
        let tree = Tree::of(&[
            (file, text),
            ("crates/a/tests/b.rs", text),
            ("crates/record/src/c.rs", text),
        ]);
        let problems = matched(&tree, &[]);
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2]);
        assert_eq!(matched(&tree, &[(file, 1)]), []);
        assert_eq!(matched(&tree, &[(file, 2)]).len(), 1);
    }
}
