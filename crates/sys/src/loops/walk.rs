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

    /// Loads from each line, once; says how many.
    #[inline(never)]
    pub fn walk(&self) -> u64 {
        let lines = self.words.len() / WORDS;
        let (mut line, mut sum) = (0, 0);
        for _ in 0..lines {
            sum += std::hint::black_box(self.words[line * WORDS]);
            line += STEP;
            line = if line < lines { line } else { line % lines };
        }
        sum
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
