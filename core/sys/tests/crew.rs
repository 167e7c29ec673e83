//! Forked workers: while one test forks and waits, nothing else of this program runs.

#![expect(clippy::expect_used, reason = "a test that cannot go on is a test that failed")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use pagelab_sys::process::{Barrier, crew::processes};

/// Held by each test: whoever waits for its workers takes any child of the process, and a fork
/// copies what other threads are about.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn forked_workers_meet_and_return_numbers() {
    let _alone = alone();
    let barrier = Barrier::new(4).expect("memory");
    let results = processes(4, |worker| {
        barrier.wait();
        barrier.wait();
        [worker as u64, u64::from(std::process::id())]
    });
    let results = results.expect("four workers");
    assert_eq!(results.iter().map(|r| r[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(results.iter().all(|r| r[1] != u64::from(std::process::id())));
}

#[test]
fn a_worker_that_panics_is_an_error() {
    let _alone = alone();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let results = processes(2, |worker| [u64::from(worker == 1 || panic!("on purpose"))]);
    std::panic::set_hook(hook);
    assert!(results.is_err());
}
