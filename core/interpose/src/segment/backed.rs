//! What is behind a segment, and what is counted of it.
//!
//! The one idea: three back ends in one list, by the names of the command line. What each needs of
//! the machine is known to whoever starts a program; the library inside takes what is there, leaf
//! by leaf, and what no back end has is ordinary memory, counted.

listed! {
    /// What serves a segment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Backing {
        /// Transparent huge pages.
        #[default]
        Thp => "thp",
        /// Pages of a hugetlb pool, all of them taken when the segment is reserved.
        Hugetlb => "hugetlb",
        /// Frames of the kernel module.
        Module => "module",
    }
}

listed! {
    /// What is counted of the memory behind segments, over all programs that share a sheet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Backed {
        /// Bytes of segments that were reserved by leaves of 1 GiB.
        Giant,
        /// Bytes that were reserved by leaves of 2 MiB.
        Large,
        /// Bytes for which the back end had no leaf: ordinary memory.
        Small,
        /// Bytes for which it had less than was asked for, of which those are a part.
        Short,
        /// Leaves that became ordinary memory, because a change was smaller than they are.
        Demoted,
        /// Changes that were refused: the process would have had too many mappings.
        Bounded,
        /// Changes that were refused because nothing keeps others from writing meanwhile.
        Unsplit,
        /// Bytes that were copied for children of fork.
        Copied,
        /// Children that ended because there was no memory for the copy.
        Lost,
        /// Forks during which other threads could write to a pool or to frames of the module: the
        /// kernel or the module holds no writers, or did not for so long.
        Torn,
        /// Pages of the heap that were left for good in children of fork.
        Left,
        /// Segments whose frames nobody may see here.
        Unseen,
        /// Leaves of 1 GiB that were looked at: contiguous, and aligned as their addresses are.
        GiantSeen,
        /// Of those, the ones that are.
        GiantRight,
        /// Leaves of 2 MiB that were looked at.
        LargeSeen,
        /// Of those, the ones that are.
        LargeRight,
        /// Pages of the module that were looked at: base and offset.
        FramesSeen,
        /// Of those, the ones that are.
        FramesRight,
        /// Bytes of maps that programs got, counted where they are handed over.
        Believed,
        /// Pages of 4 KiB in segments that were present at the end, outside of larger leaves.
        BaseSeen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for backing in Backing::ALL {
            assert_eq!(Backing::named(backing.name().as_bytes()), Some(backing));
        }
        assert_eq!(Backing::named(b"devdax"), None);
    }
}
