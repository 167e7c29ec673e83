//! Where a program was: the instruction, and its callers.

use std::rc::Rc;

use pagelab_sys::counts::perf::Stack;

use super::{
    super::{frame::Frame, jit::MapFiles, places::Places},
    Tally,
};

/// Callers that tell call sites apart, the instruction itself among them.
const FRAMES: usize = 5;
/// The same where whole stacks are asked for: as many as the kernel tells, and one.
const STACK: usize = 25;

/// The site of faults in a call that replaced the program which made it.
const EXECVE: &str = "[execve]";

impl Tally {
    /// The callers of a sample.
    pub(super) fn frames(&mut self, pid: u32, chain: &[u64]) -> Vec<Frame> {
        let Self { places, map_files, seen, .. } = self;
        let most = if seen.whole_stacks { STACK } else { FRAMES };
        let mut frame = |address: &u64| frame(places, map_files, pid, *address);
        let mut frames: Vec<Frame> = chain.iter().take(most).map(&mut frame).collect();
        // The functions of an interpreter are many, and all alike: what it runs is further out.
        if places.makes_code(pid) && !frames.iter().any(Frame::is_made) {
            frames.extend(chain.iter().skip(most).map(frame).find(Frame::is_made));
        }
        frames
    }

    /// The callers of a fault in the kernel: `execve` has the registers of the program it ends.
    pub(super) fn frames_of(&mut self, pid: u32, chain: &[u64], kernel: bool) -> Vec<Frame> {
        if kernel && chain.first().is_some_and(|at| self.places.find(pid, *at).is_none()) {
            return vec![Frame { file: EXECVE.into(), at: 0 }];
        }
        self.frames(pid, chain)
    }

    /// Learns who called an instruction.
    pub(super) fn stack(&mut self, pid: u32, stack: &Stack) {
        if !self.seen.callers.has_time() {
            return;
        }
        let chain = self.frames(pid, &stack.chain);
        if !chain.first().is_some_and(|instruction| self.seen.callers.wants(instruction)) {
            return;
        }
        let Self { places, map_files, unwinder, seen, .. } = self;
        let most = if seen.whole_stacks || places.makes_code(pid) { STACK } else { FRAMES };
        let code = |address| {
            let area = places.find(pid, address)?;
            area.executable.then(|| frame(places, map_files, pid, address))
        };
        let (addresses, end) = unwinder.unwind(stack, most, code);
        let way = self.frames(pid, &addresses);
        self.seen.callers.add(&chain, way, end);
    }
}

/// What is at an address: an offset in a file, or an address in what the program made.
fn frame(places: &Places, map_files: &mut MapFiles, pid: u32, address: u64) -> Frame {
    let area = places.find(pid, address);
    match area {
        Some(area) if area.is_file() => {
            let at = address - area.start + area.offset;
            Frame { file: Rc::clone(&area.name), at }
        }
        _ => {
            let file = area.filter(|area| area.is_made_code()).and_then(|_| map_files.of(pid));
            Frame { file: file.unwrap_or_default(), at: address }
        }
    }
}
