//! Areas of this process, by what the kernel says of them.

use super::*;
use crate::{loops::Stride, memory::Scanner, time::usage};

const STRIDE: Stride = Stride { step: BASE_PAGE, bytes: 8 };

/// A touched area and the faults of touching it; the first round takes those of the code.
fn touched(layout: Layout, backing: Backing) -> (Area, u64) {
    let once = || {
        let area = Area::mapped(layout, backing, 2 << 20).unwrap();
        area.advise(Advice::NoHugePage).unwrap();
        let before = usage::thread().minor_faults;
        area.touch(0, layout.bytes(), STRIDE);
        let faults = usage::thread().minor_faults - before;
        (area, faults)
    };
    drop(once());
    once()
}

#[test]
fn the_base_is_where_it_was_asked_for() {
    let _alone = crate::alone();
    for (align, skew) in [(4096, 0), (2 << 20, 0), (2 << 20, 1 << 20), (1 << 30, 0)] {
        let layout = Layout::contiguous(8 << 20);
        let area = Area::reserve(layout, Backing::Anonymous, align, skew).unwrap();
        assert_eq!(area.base() % align, skew);
    }
}

#[test]
fn every_page_faults_once_and_is_present_afterwards() {
    let _alone = crate::alone();
    let layout = Layout::contiguous(64 * BASE_PAGE);
    for backing in [Backing::Anonymous, Backing::Fixed, Backing::Brk] {
        // A process without other threads: whose heap ends where it was left.
        let found = |_| {
            let (mut area, faults) = touched(layout, backing);
            let present = Scanner::open().unwrap().scan(&area).unwrap().present;
            area.release().unwrap();
            [faults, present]
        };
        crate::counted([64, 64], || crate::process::crew::processes(1, found).unwrap()[0]);
    }
}

#[test]
fn windows_leave_gaps_that_are_not_mapped() {
    let _alone = crate::alone();
    let layout = Layout::windowed(4 << 20);
    assert_eq!((layout.windows, layout.bytes()), (4, 4 << 20));
    assert_eq!(layout.offset((1 << 20) + 5), (2 << 20) + 5);
    assert_eq!(layout.position((2 << 20) + 5), (1 << 20) + 5);
    crate::counted(1024, || touched(layout, Backing::Anonymous).1);
}

#[test]
fn fixed_lies_on_a_gibibyte() {
    let _alone = crate::alone();
    let layout = Layout::contiguous(BASE_PAGE);
    let area = Area::reserve(layout, Backing::Fixed, BASE_PAGE, 0).unwrap();
    assert_eq!(area.base() % (1 << 30), 0);
}
