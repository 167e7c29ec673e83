//! What a process has when it ends or becomes another program, by the kernel's account.
//!
//! `/proc/self/smaps` line by line, through a buffer of this library: a mapping that
//! lies in a segment is counted by its pages, other private anonymous memory as what libc, or a
//! fallback, had outside. What a process tells replaces what it told before, so it may tell as
//! often as it likes. What a forked child has of its parent is the parent's to tell, as far as the
//! child becomes another program, and so are the pages of the stack that were touched ahead.

use std::{ffi::CStr, ops::Range, sync::atomic::Ordering};

use pagelab_interpose::kernel;
use pagelab_interpose::proc_maps::{Mapping, sizes};
use pagelab_interpose::segment::Counted;

use crate::{begin, breaks, count, filtered, heap, helper, kept, own::OWN, pages, witness};

const MAPS: &CStr = c"/proc/self/smaps";
/// No line that counts is longer; the rest of one is left out.
const LINE: usize = 128;

/// Where a mapping lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Heap,
    Mmap,
    Stack,
    Outside,
}

/// What is told.
const TOLD: [Counted; 8] = [
    Counted::Told,
    Counted::HeapLarge,
    Counted::HeapSmall,
    Counted::MmapLarge,
    Counted::MmapSmall,
    Counted::Outside,
    Counted::StackLarge,
    Counted::Kept,
];

/// Tells it; nothing in a process that borrows the memory of another.
pub(crate) fn tell() {
    if !count::is_open()
        || filtered::is_set()
        || !helper::is_own_process()
        || OWN.is_telling.swap(true, Ordering::Acquire)
    {
        return;
    }
    // A program that never began a segment has nothing to look at, and a forked child that took
    // nothing of one has its parent's memory.
    let is_parents = OWN.is_forked.load(Ordering::Relaxed)
        && OWN.taken_before.load(Ordering::Relaxed) == count::taken();
    let now = if begin::is_any() && !is_parents {
        // The witness first: whoever reads `smaps` takes leaves of 1 GiB out of the page table, as
        // the kernel's walk splits each that it meets, and of the module's none is left then
        // (Linux 6.12).
        witness::tell();
        look()
    } else {
        Some([1, 0, 0, 0, 0, 0, 0, 0])
    };
    if let Some(now) = now {
        TOLD.into_iter().zip(now).for_each(|(counted, now)| count::tell(counted, now));
    }
    OWN.is_telling.store(false, Ordering::Release);
}

/// Tells it before this process becomes another program. A forked child does not: what it has is a
/// copy of its parent's, and would count twice.
pub(crate) fn tell_before_exec() {
    if !OWN.is_forked.load(Ordering::Relaxed) {
        tell();
    }
}

/// In a child of fork, which has told nothing.
pub(crate) fn after_fork_in_child() {
    OWN.is_forked.store(true, Ordering::Relaxed);
    OWN.taken_before.store(count::taken(), Ordering::Relaxed);
    count::after_fork_in_child();
    OWN.is_telling.store(false, Ordering::Release);
}

/// Looks at all mappings. Not a part of what a child that has nothing to look at has on its stack.
#[inline(never)]
fn look() -> Option<[usize; TOLD.len()]> {
    let file = kernel::open(MAPS, libc::O_RDONLY).ok()?;
    let segments =
        [heap::AREA.range(), breaks::AREA.range(), pages::AREA.range(), begin::STACK.range()];
    let ahead = if OWN.is_forked.load(Ordering::Relaxed) { 0 } else { begin::STACK.range().len() };
    let mut teller = Teller { place: Place::Outside, segments, ahead, had: [0; 4], large: [0; 4] };
    let (mut line, mut length) = ([0; LINE], 0);
    let mut buffer = [0; 4096];
    loop {
        let count = kernel::read(file, &mut buffer);
        if count == 0 {
            break;
        }
        for byte in &buffer[..count] {
            if *byte == b'\n' {
                teller.line(&line[..length]);
                length = 0;
            } else if length < LINE {
                line[length] = *byte;
                length += 1;
            }
        }
    }
    kernel::close(file);
    Some(teller.counts())
}

struct Teller {
    place: Place,
    /// Of the heap, the break, maps, and the stack as far as it was touched ahead.
    segments: [Range<usize>; 4],
    /// Bytes of the stack that this process itself touched ahead.
    ahead: usize,
    had: [usize; 4],
    large: [usize; 4],
}

impl Teller {
    fn line(&mut self, line: &[u8]) {
        // A name that was cut or is no text says nothing here.
        let line = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        if let Some(mapping) = Mapping::of_line(line) {
            let is_in = |segment: &Range<usize>| segment.contains(&mapping.addresses().start);
            self.place = match self.segments.iter().position(is_in) {
                Some(0 | 1) => Place::Heap,
                Some(2) => Place::Mmap,
                Some(_) => Place::Stack,
                None if mapping.name == "[stack]" => Place::Stack,
                None => Place::Outside,
            };
        } else if let Some((name, bytes)) = sizes(line).next() {
            let bytes = usize::try_from(bytes).unwrap_or(0);
            if ["Anonymous", "Private_Hugetlb"].contains(&name) {
                self.had[self.place as usize] += bytes;
            }
            if ["AnonHugePages", "Private_Hugetlb"].contains(&name) {
                self.large[self.place as usize] += bytes;
            }
        }
    }

    /// In the order of [`TOLD`].
    fn counts(&self) -> [usize; TOLD.len()] {
        let of = |place: Place| {
            let large = self.large[place as usize];
            (large, self.had[place as usize].saturating_sub(large))
        };
        let (heap, mmap) = (of(Place::Heap), of(Place::Mmap));
        let outside = self.had[Place::Outside as usize];
        // Of what was touched ahead no more is in huge pages, however far the stack has grown.
        let stack = of(Place::Stack).0.min(self.ahead);
        [1, heap.0, heap.1, mmap.0, mmap.1, outside, stack, kept::bytes()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_where_their_mapping_lies() {
        let segments = [0x1000..0x2000, 0..0, 0x4000..0x5000, 0..0];
        let (had, large) = ([0; 4], [0; 4]);
        let mut teller = Teller { place: Place::Outside, segments, ahead: 0, had, large };
        for line in [
            "1000-2000 rw-p 0 00:00 0",
            "Anonymous: 8 kB",
            "AnonHugePages: 4 kB",
            "4800-5000 rw-p 0 00:00 0",
            "Anonymous: 16 kB",
            "9000-a000 rw-p 0 00:00 0 /\u{e9}",
            "Anonymous: 32 kB",
        ] {
            teller.line(line.as_bytes());
        }
        assert_eq!(teller.had.map(|bytes| bytes >> 10), [8, 16, 0, 32]);
        assert_eq!(teller.large.map(|bytes| bytes >> 10), [4, 0, 0, 0]);
    }

    #[test]
    fn of_the_stack_no_more_is_in_huge_pages_than_this_process_touched_ahead() {
        let large = |ahead| {
            let segments = [0..0, 0..0, 0..0, 0x1000..0x2000];
            let (had, large) = ([0; 4], [0; 4]);
            let mut teller = Teller { place: Place::Outside, segments, ahead, had, large };
            for line in ["1000-2000 rw-p 0 00:00 0 [stack]", "AnonHugePages: 6144 kB"] {
                teller.line(line.as_bytes());
            }
            teller.counts()[6] >> 20
        };
        assert_eq!([8 << 20, 4 << 20, 0].map(large), [6, 4, 0]);
    }
}
