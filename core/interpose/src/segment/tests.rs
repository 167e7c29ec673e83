//! Variables and counts of segments, written and read.

use super::*;

fn wish(pairs: &[(Variable, &'static str)]) -> Result<Wish, Bad> {
    Wish::read(|asked| {
        let found = pairs.iter().find(|(variable, _)| *variable == asked);
        found.map(|(_, text)| text.as_bytes())
    })
}

#[test]
fn the_published_variables_are_read_as_published() {
    let said = [
        (Variable::Code, "2m"),
        (Variable::Stack, "8m"),
        (Variable::Heap, "1g"),
        (Variable::Mmap, "11g"),
    ];
    let base = wish(&said).unwrap();
    let sizes = [base.code, base.stack, base.heap, base.mmap];
    assert_eq!(sizes, [2 << 20, 8 << 20, 1 << 30, 11 << 30]);
    assert_eq!(base.leaf, Leaf::Base);
    assert_eq!(wish(&[(Variable::Pmd, "1")]).unwrap().leaf, Leaf::Pmd);
    assert_eq!(wish(&[(Variable::Pmd, "1"), (Variable::Pud, "1")]).unwrap().leaf, Leaf::Pud);
    assert_eq!(wish(&[]).unwrap(), Wish::default());
}

#[test]
fn a_value_that_is_none_is_named_with_one_that_is() {
    for text in ["x", "1x", "-1", "g", "1.5g", "99999999999g", "1 g"] {
        let bad = wish(&[(Variable::Mmap, text)]).unwrap_err();
        assert_eq!(bad.to_string(), "SMM_MMAP is not a size, as SMM_MMAP=11g", "{text}");
    }
    assert_eq!(wish(&[(Variable::Heap, "1m")]), Err(Bad(Variable::Heap)));
    assert_eq!(wish(&[(Variable::Pmd, "yes")]), Err(Bad(Variable::Pmd)));
    assert_eq!(wish(&[(Variable::Zero, "never")]), Err(Bad(Variable::Zero)));
    assert_eq!(wish(&[(Variable::Strict, "2")]), Err(Bad(Variable::Strict)));
    assert_eq!(wish(&[(Variable::Backing, "shm")]), Err(Bad(Variable::Backing)));
}

#[test]
fn what_is_said_by_variables_is_what_was_asked_for() {
    let asked = Wish {
        heap: 1 << 30,
        mmap: 3 << 20,
        stack: 1,
        code: 0,
        leaf: Leaf::Pud,
        zero: Zero::Ahead,
        backing: Backing::Hugetlb,
        strict: true,
    };
    let said = asked.variables();
    let read = Wish::read(|variable| {
        said.iter().find(|(name, _)| *name == variable).map(|(_, text)| text.as_bytes())
    });
    assert_eq!(read, Ok(asked));
}

#[test]
fn counts_and_fallbacks_have_places_of_their_own() {
    let counts = Counts(std::array::from_fn(|nth| nth as u64));
    assert_eq!(counts.get(Counted::Programs), 0);
    let first = Counted::ALL.len() as u64;
    assert_eq!(counts.fallback(Reason::HeapFull), (first, first + 1));
    let last = counts.fallback(Reason::Busy).1;
    assert_eq!(counts.get(Backed::Giant), last + 1);
    assert_eq!(counts.get(Backed::BaseSeen), WORDS as u64 - 1);
    assert!(size_of::<[u64; ALL_WORDS]>() <= SHEET_BYTES);
}
