//! Forked workers, in a test program of one thread: forking needs that.

#![expect(clippy::print_stdout, reason = "a test program without a harness reports itself")]

use pagelab_sys::process::{Barrier, crew::processes};

fn main() {
    forked_workers_meet_and_return_numbers();
    a_worker_that_panics_is_an_error();
    println!("2 passed, 0 failed");
}

fn forked_workers_meet_and_return_numbers() {
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

fn a_worker_that_panics_is_an_error() {
    std::panic::set_hook(Box::new(|_| ()));
    assert!(processes(2, |worker| [u64::from(worker == 1 || panic!("on purpose"))]).is_err());
    let _ = std::panic::take_hook();
}
