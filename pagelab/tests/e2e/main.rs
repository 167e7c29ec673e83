//! End to end: the real binary, on the machine that the tests run on.
//!
//! One binary for all topics, so that they share one link, one [`support`], and one lock on the
//! settings of the machine; those of a part lie in the part. A test that lacks something says what
//! and how to get it, and returns.
//! Nothing here asserts a duration, and nothing waits for a fixed time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on is a test that failed")]

#[path = "../../../program/tests/e2e/advise.rs"]
mod advise;
mod arms;
mod bad_input;
mod belongings;
#[path = "../../../emulation/tests/e2e/capture/mod.rs"]
mod capture;
mod children;
mod ci;
mod commands;
mod compare;
mod damage;
mod edges;
#[path = "../../../program/tests/e2e/explain/mod.rs"]
mod explain;
mod fleet;
mod history;
mod interruption;
#[path = "../../../fault/tests/e2e/kinds_anon.rs"]
mod kinds_anon;
#[path = "../../../fault/tests/e2e/kinds_file.rs"]
mod kinds_file;
mod knobs;
#[path = "../../../fault/tests/e2e/lies.rs"]
mod lies;
mod limits;
#[path = "../../../memtype/tests/e2e/memtype.rs"]
mod memtype;
mod output;
#[path = "../../../fault/tests/e2e/path.rs"]
mod path;
#[path = "../../../fault/tests/e2e/populate.rs"]
mod populate;
#[path = "../../../fault/tests/e2e/proof.rs"]
mod proof;
mod reports;
mod runners;
mod sanitized;
mod scripted;
mod second_user;
#[path = "../../../segment/tests/e2e/segment/mod.rs"]
mod segment;
#[path = "../../../segment/tests/e2e/segment_fault.rs"]
mod segment_fault;
#[path = "../../../fault/tests/e2e/stages.rs"]
mod stages;
mod support;
#[path = "../../../fault/tests/e2e/throughput.rs"]
mod throughput;
#[path = "../../../tiering/tests/e2e/tier.rs"]
mod tier;
#[path = "../../../tiering/tests/e2e/tier_program.rs"]
mod tier_program;
#[path = "../../../tiering/tests/e2e/tier_promote.rs"]
mod tier_promote;
#[path = "../../../fault/translation/tests/e2e/tlb.rs"]
mod tlb;
#[path = "../../../emulation/tests/e2e/trace/mod.rs"]
mod trace;
#[path = "../../../program/tests/e2e/tries/mod.rs"]
mod tries;
#[path = "../../../fault/tests/e2e/userfaultfd.rs"]
mod userfaultfd;
