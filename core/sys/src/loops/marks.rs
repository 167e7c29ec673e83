//! What a program says to whoever emulates its machine: where windows are, and messages.
//!
//! The one idea: a mark is an instruction that does nothing, which the plugin in
//! `emulation/capture/` finds when it is translated. On any other machine nobody hears of it. The
//! windows themselves are in the loops of `touch.rs`, around what a scripted clock has no time for.

use crate::arch;

/// While it lives everything that the processor executes is watched.
#[derive(Debug)]
pub(crate) struct Watched(());

impl Watched {
    pub(crate) fn begin() -> Self {
        arch::mark_watch();
        // What was translated before is let go of between two blocks: a call is the end of one.
        for _ in 0..3 {
            rustix::thread::sched_yield();
        }
        Self(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        arch::mark_rest();
        rustix::thread::sched_yield();
    }
}

/// What a window around [`routine`] holds: instructions, loads, stores, locked operations, and
/// bytes of string instructions.
pub const ROUTINE: [u64; 5] = arch::ROUTINE;

/// Executes a routine of a known length in a window of its own: what counts it is right about it.
pub fn routine() {
    // Present beforehand, so that the window holds nothing else.
    let (mut word, mut bytes) = (1, Box::new([1; 4096]));
    std::hint::black_box(&mut bytes);
    let _watched = Watched::begin();
    arch::marked_routine(&mut word, &mut bytes);
}

/// Says something; what is said is one value of JSON, in whose strings lines may end.
pub fn say(message: &[u8]) {
    // Who emulates the machine reads only what is mapped, and a kernel that balances its nodes
    // takes pages away until they are touched. The second time round there is little left to do,
    // so that it is not likely to do so meanwhile.
    for _ in 0..2 {
        for byte in message.iter().step_by(4096).chain(message.last()) {
            std::hint::black_box(*byte);
        }
    }
    arch::mark_say(message);
}
