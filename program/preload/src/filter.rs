//! A program that forbids itself system calls: no order is followed any more, and no call is made
//! that the program does not make.

use std::ffi::{c_int, c_ulong};

use pagelab_interpose::{filter_calls, preload::Orders};

fn before(_: bool) {
    crate::follow(Orders::default());
    crate::units::rest();
}

fn is_ignored(_: c_int, _: c_ulong) -> bool {
    false
}

filter_calls!(before, is_ignored);
