//! What a program does between two faults: it uses other memory.
//!
//! The one idea: a loop that does nothing but fault has the kernel's code and data in its caches,
//! and few programs are that loop. Loading from each line of as much memory as a cache holds, in an
//! order that no prefetcher follows to the end, leaves little of them in it.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// Words in a cache line.
const WORDS: usize = LINE_BYTES / size_of::<u64>();
/// Lines from one load to the next.
const STEP: usize = 37;

/// Memory that is walked over.
#[derive(Debug)]
pub struct Walk {
    words: Vec<u64>,
}

impl Walk {
    /// Over so many bytes, rounded up to lines, present from now on.
    pub fn over(bytes: usize) -> Self {
        // A number of lines that the step does not divide comes by each of them.
        let lines = bytes.div_ceil(LINE_BYTES).max(1);
        let lines = lines + usize::from(lines.is_multiple_of(STEP));
        Self { words: vec![1; lines * WORDS] }
    }

    /// Bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Loads from each line, once; the sum of what was there.
    ///
    /// Nothing in the loop is a call: a build without optimisation, in which tests and emulated
    /// machines run, spent half of a cold case in it.
    #[inline(never)]
    pub fn walk(&self) -> u64 {
        let words = &*self.words;
        let (mut left, mut at, mut sum) = (words.len() / WORDS, 0, 0_u64);
        while left > 0 {
            sum += words[at];
            at += STEP * WORDS;
            if at >= words.len() {
                at %= words.len();
            }
            left -= 1;
        }
        std::hint::black_box(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_loaded_once_whatever_the_size() {
        for bytes in [1, 64, 37 * 64, 74 * 64, 4096, 37 * 4096] {
            let mut walk = Walk::over(bytes);
            let lines = walk.bytes() / LINE_BYTES;
            assert!(walk.bytes() >= bytes && lines <= bytes.div_ceil(LINE_BYTES) + 1);
            // The sum tells one line from another by its bit.
            walk.words.fill(0);
            for line in 0..lines.min(60) {
                walk.words[line * WORDS] = 1 << line;
            }
            assert_eq!(walk.walk(), (1 << lines.min(60)) - 1, "{bytes}");
        }
    }
}
