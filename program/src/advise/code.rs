//! Code to paste for a strategy: the calls that it was measured with.
//!
//! The one idea: a page size adds flags and an advice, a way adds a flag or calls; so a table of
//! each says what any strategy is in C. What the machine must be set to is no code: it is a lack
//! with its cure.

use pagelab_bench::PageSize;

/// What a way adds to the flags of `mmap`, and the calls after it, over `{p}` and `{size}`.
const WAYS: [(&str, &str, &[&str]); 7] = [
    ("touch", "", &[TOUCH]),
    ("map-populate", " | MAP_POPULATE", &[]),
    ("madvise-populate", "", &[POPULATE]),
    ("madvise-populate-each", "", &[POPULATE]),
    ("mlock", "", &["mlock({p}, {size});"]),
    ("mlock-onfault", "", &["mlock2({p}, {size}, MLOCK_ONFAULT);", TOUCH]),
    ("map-locked", " | MAP_LOCKED", &[]),
];
const TOUCH: &str = "for (size_t i = 0; i < {size}; i += 4096) ({p})[i] = 0;";
const POPULATE: &str = "madvise({p}, {size}, MADV_POPULATE_WRITE);";

/// The code for so many bytes in whole pages; empty for a way that the table does not know.
pub(super) fn code(page: PageSize, populate: &str, threads: u32, bytes: u64) -> String {
    let Some((_, flag, calls)) = WAYS.iter().find(|(way, ..)| *way == populate) else {
        return String::new();
    };
    // A mapping that is populated by `mmap` is there before it can be advised.
    let is_early = calls.is_empty();
    let (before, huge, advice) = match page {
        PageSize::Hugetlb(21) => ("", " | MAP_HUGETLB | MAP_HUGE_2MB", ""),
        PageSize::Hugetlb(_) => ("", " | MAP_HUGETLB | MAP_HUGE_1GB", ""),
        // Around the call only: the rest of the program keeps its huge pages.
        PageSize::Base if is_early => {
            ("prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);", "", "prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);")
        }
        PageSize::Base => ("", "", "madvise(p, size, MADV_NOHUGEPAGE);"),
        _ => ("", "", "madvise(p, size, MADV_HUGEPAGE);"),
    };
    let map = format!(
        "char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,\n               \
         MAP_PRIVATE | MAP_ANONYMOUS{huge}{flag}, -1, 0);"
    );
    let mut lines = vec![before.to_owned(), format!("size_t size = {bytes};"), map];
    lines.push(advice.to_owned());
    let (p, size) = if threads > 1 {
        lines.push(format!("size_t share = size / {threads};"));
        lines.push(format!("/* in each of {threads} threads, t = 0 … {}: */", threads - 1));
        ("p + t * share", "share")
    } else {
        ("p", "size")
    };
    let call = |call: &&str| call.replace("{p}", p).replace("{size}", size);
    lines.extend(calls.iter().map(call));
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_is_the_calls_that_it_was_measured_with() {
        let huge = code(PageSize::Thp, "madvise-populate-each", 2, 1 << 30);
        assert_eq!(
            huge,
            "size_t size = 1073741824;\n\
             char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,\n               \
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
             madvise(p, size, MADV_HUGEPAGE);\n\
             size_t share = size / 2;\n\
             /* in each of 2 threads, t = 0 … 1: */\n\
             madvise(p + t * share, share, MADV_POPULATE_WRITE);"
        );
        let early = code(PageSize::Base, "map-populate", 1, 4096);
        assert!(
            early.starts_with("prctl(PR_SET_THP_DISABLE, 1") && early.contains("| MAP_POPULATE")
        );
        assert!(
            early.ends_with("prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);"),
            "and no longer: {early}"
        );
    }
}
