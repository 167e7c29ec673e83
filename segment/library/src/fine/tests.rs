//! Blocks hold what they held, whoever gives them back, and none is lost.

use std::sync::{Mutex, atomic::AtomicBool};

use super::*;
use crate::copies;

const WORD: usize = size_of::<usize>();
/// So many blocks a thread leaves at most.
const BLOCKS: usize = 64;

/// Some of its own, of so many bytes.
fn some(bytes: usize) -> &'static Fine {
    let fine = Box::leak(Box::new(Fine::new()));
    let start = copies::staging(bytes).unwrap();
    fine.begin(&(start..start + bytes));
    fine
}

/// A block, and what each of its bytes is.
struct Block {
    at: *mut u8,
    bytes: usize,
    with: u8,
}

// SAFETY: it is of whoever has it.
unsafe impl Send for Block {}

impl Block {
    fn of(fine: &Fine, to: usize, bytes: usize, with: u8) -> Option<Self> {
        let at = fine.any(to, bytes);
        if at.is_null() {
            return None;
        }
        assert!(fine.has(at.addr()) && at.addr().is_multiple_of(to.max(16)));
        // SAFETY: it was had just now.
        let bytes = unsafe { usable_size(at) };
        let block = Self { at: at.cast(), bytes, with };
        // SAFETY: so many bytes are its own.
        unsafe { block.at.write_bytes(with, bytes) };
        Some(block)
    }

    fn free(self, fine: &Fine) {
        // SAFETY: so many bytes are its own, and all were written.
        let bytes = unsafe { std::slice::from_raw_parts(self.at, self.bytes) };
        assert!(bytes.iter().all(|byte| *byte == self.with), "{:p}", self.at);
        // SAFETY: it is of this, and nobody uses it any more.
        unsafe { fine.free(self.at.cast()) };
    }
}

fn free(fine: &Fine, blocks: impl IntoIterator<Item = Block>) {
    for block in blocks {
        block.free(fine);
    }
}

/// A number below another.
fn below(state: &mut usize, end: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % end
}

#[test]
fn what_mimalloc_wastes_is_wanted_and_a_block_is_as_long_as_was_asked_for() {
    // A block of mimalloc has 5120 bytes.
    assert_eq!([4368, 4096, 5000].map(wants), [true, false, false]);
    assert_eq!([1024, 1025, 49_200, 65_536].map(wants), [false, true, true, true]);
    // Those have whole slices of 64 KiB.
    assert_eq!([130_000, 131_000, 300_000, 1 << 20].map(wants), [false, true, false, false]);
    let fine = some(32 << 20);
    let sizes = (1..200).chain((1000..70_000).step_by(333));
    let blocks: Vec<_> = sizes
        .map(|asked| {
            let block = Block::of(fine, 1, asked, asked.to_le_bytes()[0]).unwrap();
            assert_eq!(block.bytes, asked);
            block
        })
        .collect();
    free(fine, blocks);
}

#[test]
fn what_is_full_is_whole_again_when_all_is_given_back() {
    let fine = some(64 << 20);
    let full = |bytes| -> Vec<_> { std::iter::from_fn(|| Block::of(fine, 1, bytes, 1)).collect() };
    let tops = || {
        fine.shards.each_ref().map(|shard| {
            let mut held = shard.hold().unwrap();
            let source = held.own().allocator();
            source.top.get() - source.start
        })
    };
    for bytes in [4368, 30_000, 4368] {
        let mut blocks = full(bytes);
        assert!(blocks.len() * bytes > 60 << 20, "{}", blocks.len());
        assert_eq!(tops(), [16 << 20; SHARDS]);
        // Every other first, so that none has a free one beside it.
        let mut nth = 0;
        let rest: Vec<_> = blocks
            .extract_if(.., |_| {
                nth += 1;
                nth % 2 == 0
            })
            .collect();
        free(fine, blocks.into_iter().chain(rest));
        assert!(tops().into_iter().all(|top| top <= PMD + (64 << 10)), "{:?}", tops());
    }
    assert!(fine.any(1, 17 << 20).is_null());
}

#[test]
fn a_shard_that_is_held_is_left_alone() {
    let fine = some(32 << 20);
    let one = Block::of(fine, 1, 5000, 1).unwrap();
    let (at, nth) = (one.at, fine.nth(one.at.addr()));
    let shard = &fine.shards[nth];
    let held = shard.hold().unwrap();
    let other = Block::of(fine, 1, 5000, 2).unwrap();
    assert_ne!(fine.nth(other.at.addr()), nth);
    one.free(fine);
    assert!(!shard.left.load(Ordering::Relaxed).is_null());
    drop(held);
    other.free(fine);
    // This thread has by now the shard that served it.
    let others = fine.shards.iter().filter(|other| !ptr::eq(*other, shard));
    let held: Vec<_> = others.map(Shard::hold).collect();
    assert_eq!(Block::of(fine, 1, 5000, 3).unwrap().at, at);
    drop(held);
}

/// Frames of the kernel module are copied one after the other before a fork, and this library's own
/// memory is the child's as it was at the fork: what is left meanwhile must be in both or in none.
#[test]
fn what_is_left_while_a_fork_copies_is_not_left_by_halves() {
    let fine = some(32 << 20);
    let is_over = AtomicBool::new(false);
    let torn = std::thread::scope(|scope| {
        for with in 1..=2 {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let one = || Block::of(fine, 1, 5000, with);
                    let blocks: Vec<_> = std::iter::repeat_with(one).take(BLOCKS).collect();
                    free(fine, blocks.into_iter().flatten());
                }
            });
        }
        let torn = (0..300).find(|_| {
            fine.before_fork();
            fork_wait::before_fork();
            let copies = fine.shards.each_ref().map(copy);
            let is_torn = std::iter::zip(&fine.shards, copies).any(|(shard, (start, words))| {
                let mut next = shard.left.load(Ordering::Acquire).addr();
                for _ in 0..=2 * BLOCKS {
                    if next == 0 {
                        break;
                    }
                    next = *words.get(next.wrapping_sub(start) / WORD).unwrap_or(&next);
                }
                next != 0
            });
            fork_wait::after_fork();
            fine.after_fork();
            is_torn
        });
        is_over.store(true, Ordering::Relaxed);
        torn
    });
    assert_eq!(torn, None);
}

/// Where a shard that is held begins, and all of its words.
fn copy(shard: &Shard) -> (usize, Vec<usize>) {
    // SAFETY: whoever asks has its lock.
    let source = unsafe { (*shard.own.get()).allocator() };
    // SAFETY: mapped so far; others may write there meanwhile.
    let word = |at| unsafe { ptr::with_exposed_provenance::<usize>(at).read_volatile() };
    (source.start, (source.start..source.top.get()).step_by(WORD).map(word).collect())
}

#[test]
fn threads_that_give_each_other_blocks_find_what_they_held() {
    let fine = some(64 << 20);
    let between = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 1..=6_usize {
            let between = &between;
            scope.spawn(move || {
                let mut state = thread * 0x9e37_79b9;
                let mut own = Vec::new();
                for _ in 0..20_000 {
                    let bytes = [64, 5000, 70_000][below(&mut state, 3)];
                    let to = [1, 1, 256, 4096][below(&mut state, 4)];
                    let with = below(&mut state, 256).to_le_bytes()[0];
                    match below(&mut state, 4) {
                        0 | 1 => {
                            let bytes = 1 + below(&mut state, bytes);
                            own.extend(Block::of(fine, to, bytes, with));
                        }
                        2 if !own.is_empty() => {
                            let one = own.swap_remove(below(&mut state, own.len()));
                            between.lock().unwrap().push(one);
                        }
                        _ => {
                            if let Some(block) = between.lock().unwrap().pop() {
                                block.free(fine);
                            }
                        }
                    }
                    if own.len() > 200 {
                        own.swap_remove(below(&mut state, 200)).free(fine);
                    }
                }
                free(fine, own);
            });
        }
    });
    free(fine, between.into_inner().unwrap());
    for shard in &fine.shards {
        let mut held = shard.hold().unwrap();
        held.take_back();
        let source = held.own().allocator();
        let (start, had) = (source.start, source.top.get() - source.start);
        // A block of nearly all that the shard had of the kernel begins where the shard does,
        // unless another one is left. For one that is larger dlmalloc asks for all bytes again.
        if let Some(bytes) = had.checked_sub(4096).filter(|bytes| *bytes > 0) {
            // SAFETY: takes a number.
            let at = unsafe { held.own().c_malloc(bytes) };
            assert!((start..start + 64).contains(&at.addr()), "{at:p} of {had} from {start:#x}");
        }
    }
}

#[test]
fn a_child_of_a_fork_finds_every_shard_free() {
    let fine = some(32 << 20);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for block in [5000, 1100, 40_000].map(|bytes| Block::of(fine, 1, bytes, 9)) {
                        free(fine, block);
                    }
                }
            });
        }
        for _ in 0..50 {
            fine.before_fork();
            // SAFETY: the child calls nothing that may wait for a thread that it has not.
            let pid = unsafe { libc::fork() };
            fine.after_fork();
            if pid == 0 {
                let is_free = fine.shards.iter().all(|shard| shard.hold().is_some());
                let blocks = [1; 8].map(|with| Block::of(fine, 1, 4368, with));
                let is_served = blocks.iter().all(Option::is_some);
                free(fine, blocks.into_iter().flatten());
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(!(is_free && is_served))) };
            }
            let mut status = -1;
            // SAFETY: writes a number.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
