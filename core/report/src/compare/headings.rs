//! What the columns of two sides are headed.
//!
//! The one idea: a table has no room for a path or a setting, so where names are long, only what
//! tells the one from the other stands there; the title has both whole.

/// Their names, or what follows all that they have in common, or letters.
pub(super) fn headings([a, b]: [&str; 2]) -> [String; 2] {
    const SHORT: usize = 14;
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let common = a.as_bytes()[..common].iter().rposition(|byte| b"=/".contains(byte));
    let rest = common.map_or([a, b], |last| [&a[last + 1..], &b[last + 1..]]);
    let is_short = |name: &&str| (1..=SHORT).contains(&name.chars().count());
    let told = [[a, b], rest].into_iter().find(|names| names.iter().all(is_short));
    told.unwrap_or(["A", "B"]).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::headings;

    #[test]
    fn sides_of_long_names_are_headed_by_what_they_do_not_have_in_common() {
        let set = |value: &str| format!("set:/sys/kernel/mm/transparent_hugepage/enabled={value}");
        for (a, b, headed) in [
            ("before", "after", ["before", "after"]),
            (&set("always"), &set("never"), ["always", "never"]),
            ("pagelab-runs/one", "pagelab-runs/another", ["one", "another"]),
            ("env:PAGELAB_SOMETHING=1", "env:PAGELAB_SOMETHING", ["A", "B"]),
            ("ééééééééééééééé=1", "ééééééééééééééè=1", ["A", "B"]),
            ("a-name-of-some-length/", "a-name-of-some-length/b", ["A", "B"]),
        ] {
            assert_eq!(headings([a, b]), headed);
        }
    }
}
