//! Strategies of made and real programs: which are offered, and what is refused.

use proptest::prelude::*;

use super::*;

fn question(size: u64, threads: u32, policy: Policy) -> Question {
    Question { size, threads, policy, budget_s: 5.0, fifo: false }
}

const OFFERED: [PageSize; 4] =
    [PageSize::Base, PageSize::Folio(65536), PageSize::Thp, PageSize::Hugetlb(21)];

#[test]
fn a_policy_leaves_out_what_it_does_not_allow() {
    let names = |policy| -> Vec<String> {
        let question = question(1 << 30, 2, policy);
        let rows = question.rows(&OFFERED).into_iter();
        rows.map(|(page, populate, threads, ..)| format!("{populate} {page} {threads}")).collect()
    };
    assert_eq!(names(Policy::Any).len(), 15);
    assert!(names(Policy::Base).iter().all(|name| name.contains(" 4k ")));
    assert!(names(Policy::Transparent).iter().all(|name| !name.contains("hugetlb")));
    assert!(names(Policy::Locked).iter().all(|name| name.contains("lock")));
}

#[test]
fn with_one_thread_no_strategy_has_two_and_none_comes_twice() {
    for threads in [1, 2] {
        let question = question(1 << 30, threads, Policy::Any);
        let mut rows: Vec<_> = question.rows(&OFFERED);
        assert!(rows.iter().all(|row| row.2 <= threads));
        let count = rows.len();
        rows.sort_unstable();
        rows.dedup_by_key(|row| (row.0, row.1, row.2));
        assert_eq!(rows.len(), count);
    }
}

#[test]
fn every_strategy_is_a_case_that_is_accepted() {
    for policy in Policy::ALL {
        let Survey { asked, cases } = question(64 << 20, 2, policy).survey().unwrap();
        assert!(!cases.is_empty() && cases.len() == asked.strategies.len(), "{policy:?}");
        assert_eq!((asked.policy, asked.sample), (policy, 16 << 20));
        for (case, strategy) in cases.iter().zip(&asked.strategies) {
            assert!(strategy.code.contains("mmap("), "{}", strategy.name);
            assert_eq!(kinds::asked(case).size, asked.sample, "{}", strategy.name);
        }
    }
}

#[test]
fn memory_that_is_locked_or_set_aside_is_said() {
    let asked = question((64 << 20) + 4096, 1, Policy::Any).survey().unwrap().asked;
    let memory = |name: &str| {
        let found = asked.strategies.iter().find(|strategy| strategy.name == name);
        found.map(|strategy| strategy.memory)
    };
    let locked = (64 << 20) + 4096;
    assert_eq!(memory("mlock 4k"), Some(Memory { rounding: 0, pool: 0, locked }));
    if let Some(pool) = memory("touch hugetlb-2m") {
        let rounding = (2 << 20) - 4096;
        assert_eq!(pool, Memory { rounding, pool: 66 << 20, locked: 0 });
    }
}

#[test]
fn what_cannot_be_sampled_or_does_not_fit_is_refused_with_what_to_ask_for() {
    let error = question(8 << 20, 2, Policy::Any).survey().unwrap_err();
    assert!(matches!(&error, Refused::Question(why) if why.contains("ask for 16m or more")));
    let error = question(1 << 60, 2, Policy::Any).survey().unwrap_err();
    assert!(matches!(&error, Refused::Host(why) if why.contains("limited by")));
}

proptest! {
    #[test]
    fn a_sample_is_never_more_than_a_quarter(
        size in 1_u64..1 << 40,
        threads in 1_u32..64,
        budget_s in 0.1_f64..100.0,
        strategies in 1_usize..40,
    ) {
        let question = Question { budget_s, ..question(size, threads, Policy::Any) };
        if let Ok(sample) = question.sample(strategies) {
            prop_assert!(sample <= size / SHARE_MAX);
            prop_assert!(sample.is_multiple_of((2 << 20) * u64::from(threads)));
        } else {
            prop_assert!(size / SHARE_MAX < (2 << 20) * u64::from(threads));
        }
    }
}
