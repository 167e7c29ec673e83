//! What a repetition must leave: the formula of the witness.
//!
//! With K touches, of which F = K / batch meet a missing or protected page:
//!
//! - messages, requests and bytes follow from F alone;
//! - a fault that a thread resolves is one exception and one completed fault, because the kernel
//!   makes the access again before it returns. A fault that ends in `SIGBUS` is an exception and no
//!   completed fault (`mm_account_fault` in mm/memory.c), and the access is made again by the
//!   processor: a second exception where the page is still not what the access needs;
//! - a completed fault is minor, or major where the kernel had to try twice under the lock of the
//!   address space (before faults under a VMA's lock, Linux 6.4): their sum is what is claimed.

use pagelab_sys::loops::Access;

use super::choice::{Choice, Handler, Way};

/// Numbers of one repetition, all exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Expected {
    pub(super) messages: u64,
    pub(super) written: u64,
    pub(super) protected: u64,
    pub(super) minor: u64,
    pub(super) signals: u64,
    pub(super) poisoned: u64,
    pub(super) resolved: u64,
    pub(super) bytes: u64,
    /// Faults that the kernel completed, minor and major.
    pub(super) completed: u64,
    /// Exceptions that the processor took.
    pub(super) exceptions: u64,
    /// Base pages present, and those of them that are the zero page and that a PMD maps.
    pub(super) present: u64,
    pub(super) zero: u64,
    pub(super) huge: u64,
    /// Base pages write-protected before the first touch.
    pub(super) protected_before: u64,
}

impl Expected {
    /// What differs by kernel, in all faults alike or in none: Linux 6.1 leaves a page read-only
    /// when its write protection ends without a fault to be resumed, so that the store faults once
    /// more.
    pub(super) fn of_this_kernel(self, choice: &Choice, completed: u64) -> Self {
        let touches = (choice.size / choice.page) as u64;
        let by_signal = choice.handler == Handler::Sigbus && choice.way == Way::Unprotect;
        if !by_signal || completed != touches {
            return self;
        }
        Self { completed, exceptions: self.exceptions + touches, ..self }
    }

    pub(super) fn of(choice: &Choice) -> Self {
        let touches = (choice.size / choice.page) as u64;
        let faults = touches / choice.batch as u64;
        let pages = (choice.size / 4096) as u64;
        let if_so = |so: bool, count: u64| if so { count } else { 0 };
        let is_signal = choice.handler == Handler::Sigbus;
        let messages = if_so(choice.handler.is_thread(), faults);
        let resolved = if_so(choice.handler != Handler::None, faults);
        let poisons = choice.way == Way::Poison;
        // The page needs work of the kernel's own after it was resolved.
        let again = match choice.way {
            Way::ZeroPageWrite | Way::Async => touches,
            _ => 0,
        };
        let completed = match choice.way {
            Way::Poison => 0,
            Way::ZeroPageWrite | Way::Async => again,
            _ => if_so(!is_signal, faults),
        };
        let exceptions = match choice.way {
            Way::Poison => touches + if_so(is_signal, faults),
            _ if is_signal => faults + again,
            _ => again.max(faults),
        };
        Self {
            messages,
            written: if_so(choice.way.access() == Access::Write, messages),
            protected: if_so(choice.way.protects(), messages),
            minor: if_so(choice.way == Way::Continue, messages),
            signals: if_so(is_signal, faults),
            poisoned: if_so(poisons, touches),
            resolved,
            bytes: resolved * choice.unit() as u64,
            completed,
            exceptions,
            present: if_so(!poisons, pages),
            zero: if_so(choice.way == Way::ZeroPage, pages),
            huge: if_so(choice.is_hugetlb() && !poisons, pages),
            protected_before: if_so(choice.way.protects(), pages),
        }
    }
}
