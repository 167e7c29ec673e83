//! The thread that waits for messages and resolves what they name.
//!
//! The one idea: read first, wait only when nothing is there. A handler on the faulting CPU that
//! comes back from a resolved fault then finds the next message without asking for one.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

use linux_raw_sys::general as uapi;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::Errno,
};

use super::{descriptor::Uffd, resolver::Resolver, tally::Tally};
use crate::{Called, SysError};

/// Most messages that one call reads.
const MESSAGES: usize = 16;

/// Bytes of a `struct uffd_msg`: the event in byte 0, flags from byte 8, the address from byte 16.
const MESSAGE: usize = size_of::<uapi::uffd_msg>();

/// How a thread waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Asleep, in `poll`.
    Poll,
    /// Awake, reading again and again.
    Spin,
}

/// Tells handlers that no fault will come any more.
#[derive(Debug)]
pub struct Stop {
    event: OwnedFd,
    is_over: AtomicBool,
}

impl Stop {
    /// Not yet.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> Result<Self, SysError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .called("eventfd", "a stop")?;
        Ok(Self { event, is_over: AtomicBool::new(false) })
    }

    /// Ends every [`serve`] that was given this, once it has nothing left to read.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        // A counter below its maximum takes one more.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }
}

/// Resolves faults until `stop`.
///
/// Where the kernel refuses, the range goes back to its ordinary handling, so that who waits goes
/// on; the error stays in the tally.
pub fn serve(uffd: &Uffd, resolver: &Resolver, wait: Wait, stop: &Stop, tally: &Tally) {
    let mut messages = [0_u8; MESSAGES * MESSAGE];
    loop {
        match rustix::io::read(uffd.as_fd(), &mut messages) {
            Ok(bytes) => {
                for message in messages[..bytes].chunks_exact(MESSAGE) {
                    if u32::from(message[0]) != uapi::UFFD_EVENT_PAGEFAULT {
                        tally.strange();
                        continue;
                    }
                    tally.message(word(message, 8));
                    #[expect(clippy::cast_possible_truncation, reason = "an address of ours")]
                    let address = word(message, 16) as usize;
                    if let Err(error) = resolver.resolve(address, tally) {
                        resolver.give_up(error, tally);
                    }
                }
            }
            Err(Errno::AGAIN) => {
                if stop.is_over.load(Ordering::Acquire) {
                    return;
                }
                match wait {
                    Wait::Spin => std::hint::spin_loop(),
                    Wait::Poll => {
                        let wanted = PollFlags::IN;
                        let mut either =
                            [PollFd::new(uffd, wanted), PollFd::new(&stop.event, wanted)];
                        match poll(&mut either, None) {
                            Ok(_) | Err(Errno::INTR) => (),
                            Err(error) => {
                                return resolver.give_up(error.raw_os_error(), tally);
                            }
                        }
                    }
                }
            }
            Err(Errno::INTR) => (),
            Err(error) => return resolver.give_up(error.raw_os_error(), tally),
        }
    }
}

#[inline(always)]
fn word(message: &[u8], at: usize) -> u64 {
    let bytes = message[at..at + 8].try_into().expect("eight bytes are eight bytes");
    u64::from_ne_bytes(bytes)
}
