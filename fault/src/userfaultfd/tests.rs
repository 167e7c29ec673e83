//! Cases of `fault/userfaultfd`: what is refused, what is needed, and the formula.

use super::*;
use expected::Expected;
use pagelab_bench::plan::complete;
use pagelab_record::Case;

fn case(pairs: &[(&str, &str)]) -> Case {
    complete(&USERFAULTFD, pairs).unwrap()
}

fn choice(pairs: &[(&str, &str)]) -> Choice {
    Choice::of(&case(pairs))
}

#[test]
fn there_are_many_resolvers() {
    let mut accepted = 0;
    for handler in Handler::WORDS {
        for op in Way::WORDS {
            for page in ["4k", "hugetlb-2m"] {
                let pairs = [("handler", *handler), ("op", *op), ("page", page)];
                accepted += usize::from(complete(&USERFAULTFD, &pairs).is_ok());
            }
        }
    }
    assert_eq!(accepted, 5 * 7 + 5 * 4 + 2);
}

#[test]
fn a_fault_by_message_is_one_exception_and_one_completed_fault() {
    let expected = Expected::of(&choice(&[("size", "4m")]));
    let found = (expected.messages, expected.exceptions, expected.completed, expected.bytes);
    assert_eq!(found, (1024, 1024, 1024, 4 << 20));
}

#[test]
fn a_fault_by_signal_is_never_completed_unless_the_kernel_must_go_on() {
    let sigbus = ("handler", "sigbus");
    let expected = Expected::of(&choice(&[("size", "4m"), sigbus]));
    assert_eq!((expected.signals, expected.exceptions, expected.completed), (1024, 1024, 0));
    let op = ("op", "zeropage-write");
    let expected = Expected::of(&choice(&[("size", "4m"), sigbus, op, ("batch", "16")]));
    assert_eq!((expected.signals, expected.exceptions, expected.completed), (64, 64 + 1024, 1024));
    let expected = Expected::of(&choice(&[("size", "4m"), sigbus, ("op", "poison")]));
    assert_eq!((expected.exceptions, expected.poisoned, expected.present), (2048, 1024, 0));
}

#[test]
fn one_fault_in_a_batch_is_marked_and_page_tables_are_kept_apart() {
    let one = touches(&choice(&[("size", "8m")]), 0);
    assert_eq!((one.len(), one.kept_apart()), (2048, 4));
    let batch = touches(&choice(&[("size", "8m"), ("batch", "16"), ("order", "random")]), 0);
    assert_eq!((batch.len(), batch.kept_apart()), (2048, 128));
    let protected = touches(&choice(&[("size", "8m"), ("op", "wp")]), 0);
    assert_eq!(protected.kept_apart(), 0);
    let pairs = [("size", "8m"), ("threads", "2"), ("uffds", "each"), ("batch", "512")];
    assert_eq!(touches(&choice(&pairs), 1).kept_apart(), 2);
}

#[test]
fn another_cpu_is_never_that_of_a_thread_it_serves() {
    let mut choice = choice(&[("threads", "2"), ("uffds", "each"), ("handler", "other-cpu")]);
    for cpus in [vec![0, 1], vec![4, 5, 6], vec![0, 1, 2, 3]] {
        choice.cpus = cpus;
        for uffd in 0..2 {
            let (faulter, handler) = (choice.faulter_cpu(uffd), choice.handler_cpu(uffd));
            assert!(handler.is_some() && faulter != handler, "{:?}", choice.cpus);
        }
    }
    choice.each = false;
    choice.cpus = vec![0, 1];
    assert_eq!((choice.handler_cpu(0), choice.cpus_needed()), (None, 3));
}

#[test]
fn what_the_kernel_must_be_able_to_do_is_needed() {
    let needs = choice(&[("op", "move"), ("handler", "sigbus")]).needs();
    let named: Vec<String> = needs.iter().map(ToString::to_string).collect();
    for feature in ["UFFD_FEATURE_MOVE", "UFFD_FEATURE_SIGBUS"] {
        assert!(named.iter().any(|need| need.contains(feature)), "{named:?}");
    }
}
