//! What the library of segments is asked for, and where it counts what came of it.
//!
//! The one idea: these are the words of both sides, of whoever starts a program and of the library
//! inside it, as in [`super::preload`]: nothing that the library calls here allocates. What is
//! asked for are the variables of the publication (`SMM_HEAP=1g`), so that what worked there works
//! here; a value that is none is refused by name before a program starts.

mod backed;
mod names;
mod totals;

use std::fmt;

pub use backed::{Backed, Backing};
pub use names::{NAME_BYTES, count_name};
pub use totals::{ALL_WORDS, Counter, Counts, WORDS};

/// The package whose library it is.
pub const PACKAGE: &str = "pagelab-segment";
/// The variable that names the file of the counts.
pub const SHEET: &str = "PAGELAB_SEGMENT_SHEET";
/// Bytes of that file.
pub const SHEET_BYTES: usize = 4096;
/// The least that a heap can be: mimalloc manages no smaller piece, and its own tables are in it.
pub const HEAP_MIN: u64 = 64 << 20;

/// Of [`AHEAD_OF`] parts of the memory that is available so many are zeroed ahead at most.
pub const AHEAD_SHARE: u64 = 3;
/// See [`AHEAD_SHARE`].
pub const AHEAD_OF: u64 = 4;

listed! {
    /// A variable of the environment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Variable {
        /// Bytes of the heap's segment.
        Heap => "SMM_HEAP",
        /// Bytes of the segment of maps.
        Mmap => "SMM_MMAP",
        /// Bytes of the main stack that are touched ahead.
        Stack => "SMM_STACK",
        /// Bytes of the program's code that are collapsed into huge pages, at most.
        Code => "SMM_CODE",
        /// Whether leaves are of 2 MiB.
        Pmd => "SMM_PMD",
        /// Whether they are of 1 GiB, too.
        Pud => "SMM_PUD",
        /// When memory is zeroed.
        Zero => "SMM_ZERO",
        /// What is behind a segment.
        Backing => "SMM_BACKING",
        /// The program that has segments; all others of a tree have none.
        Only => "SMM_ONLY",
        /// Whether a segment that is full ends the program.
        Strict => "SMM_STRICT",
    }
}

impl Variable {
    /// What may be said.
    const fn example(self) -> &'static str {
        match self {
            Self::Heap => "a size of 64m or more, as SMM_HEAP=1g",
            Self::Mmap => "a size, as SMM_MMAP=11g",
            Self::Stack => "a size, as SMM_STACK=8m",
            Self::Code => "a size, as SMM_CODE=2m",
            Self::Pmd => "0 or 1, as SMM_PMD=1",
            Self::Pud => "0 or 1, as SMM_PUD=1",
            Self::Zero => "fault, release or ahead, as SMM_ZERO=release",
            Self::Backing => "thp, hugetlb or module, as SMM_BACKING=hugetlb",
            Self::Only => "the name of a program's file, as SMM_ONLY=cc1",
            Self::Strict => "0 or 1, as SMM_STRICT=1",
        }
    }
}

listed! {
    /// When memory is zeroed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Zero {
        /// By the fault that needs it.
        #[default]
        Fault => "fault",
        /// When it is given back, by a helper.
        Release => "release",
        /// All of it, before the program begins.
        Ahead => "ahead",
    }
}

/// The size to which segments and what they serve are aligned: the largest page that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Leaf {
    /// 4 KiB.
    #[default]
    Base,
    /// 2 MiB.
    Pmd,
    /// 1 GiB.
    Pud,
}

impl Leaf {
    /// Its bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Base => 4 << 10,
            Self::Pmd => 2 << 20,
            Self::Pud => 1 << 30,
        }
    }
}

/// What a program is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// Bytes of the heap's segment; 0 is none.
    pub heap: u64,
    /// Bytes of the segment of maps; 0 is none.
    pub mmap: u64,
    /// Bytes of the main stack.
    pub stack: u64,
    /// Bytes of code.
    pub code: u64,
    /// The leaf.
    pub leaf: Leaf,
    /// When memory is zeroed.
    pub zero: Zero,
    /// What is behind it.
    pub backing: Backing,
    /// Whether a full segment ends the program.
    pub strict: bool,
}

/// A variable with a value that it cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bad(pub Variable);

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {}", self.0.name(), self.0.example())
    }
}

impl std::error::Error for Bad {}

impl Wish {
    /// Nothing.
    pub const NONE: Self = Self {
        heap: 0,
        mmap: 0,
        stack: 0,
        code: 0,
        leaf: Leaf::Base,
        zero: Zero::Fault,
        backing: Backing::Thp,
        strict: false,
    };

    /// What some variables say; one that is not set, or empty, says nothing.
    ///
    /// # Errors
    /// With the first variable that says what it cannot say.
    pub fn read<'v>(value: impl Fn(Variable) -> Option<&'v [u8]>) -> Result<Self, Bad> {
        let said = |variable| value(variable).filter(|text| !text.is_empty());
        let size = |variable| said(variable).map_or(Some(0), bytes).ok_or(Bad(variable));
        let is_on = |variable| match said(variable) {
            None | Some(b"0") => Ok(false),
            Some(b"1") => Ok(true),
            Some(_) => Err(Bad(variable)),
        };
        let heap = size(Variable::Heap)?;
        if heap > 0 && heap < HEAP_MIN {
            return Err(Bad(Variable::Heap));
        }
        let leaf = match (is_on(Variable::Pmd)?, is_on(Variable::Pud)?) {
            (_, true) => Leaf::Pud,
            (true, false) => Leaf::Pmd,
            (false, false) => Leaf::Base,
        };
        let zero = match said(Variable::Zero) {
            None => Some(Zero::Fault),
            Some(name) => Zero::named(name),
        };
        let backing = said(Variable::Backing).map_or(Some(Backing::Thp), Backing::named);
        Ok(Self {
            heap,
            mmap: size(Variable::Mmap)?,
            stack: size(Variable::Stack)?,
            code: size(Variable::Code)?,
            leaf,
            zero: zero.ok_or(Bad(Variable::Zero))?,
            backing: backing.ok_or(Bad(Variable::Backing))?,
            strict: is_on(Variable::Strict)?,
        })
    }

    /// Whether segments are mapped when they are taken, and not as a whole before.
    pub fn is_on_demand(&self) -> bool {
        self.backing == Backing::Thp && self.zero != Zero::Ahead
    }

    /// The variables that say it.
    pub fn variables(&self) -> [(Variable, String); 9] {
        let is_on = |on: bool| u8::from(on).to_string();
        [
            (Variable::Heap, self.heap.to_string()),
            (Variable::Mmap, self.mmap.to_string()),
            (Variable::Stack, self.stack.to_string()),
            (Variable::Code, self.code.to_string()),
            (Variable::Pmd, is_on(self.leaf >= Leaf::Pmd)),
            (Variable::Pud, is_on(self.leaf >= Leaf::Pud)),
            (Variable::Zero, self.zero.name().to_owned()),
            (Variable::Backing, self.backing.name().to_owned()),
            (Variable::Strict, is_on(self.strict)),
        ]
    }
}

/// A size as the publication writes it: a number, and k, m or g.
pub fn bytes(text: &[u8]) -> Option<u64> {
    let (digits, shift) = match text {
        [digits @ .., b'k' | b'K'] => (digits, 10),
        [digits @ .., b'm' | b'M'] => (digits, 20),
        [digits @ .., b'g' | b'G'] => (digits, 30),
        digits => (digits, 0),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    number.checked_mul(1 << shift)
}

listed! {
    /// What is counted, over all programs that share a sheet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Counted {
        /// Programs that began with segments.
        Programs,
        /// Programs that began without: others than the one that was named.
        Others,
        /// Programs that were started with an environment of their own, without the library.
        Emptied,
        /// Processes that told what they had when they ended; forked ones are among them.
        Told,
        /// Segments that the kernel did not give.
        Unreserved,
        /// The error number of the last one.
        Errno,
        /// Maps that were served.
        Maps,
        /// Their bytes.
        MapBytes,
        /// Bytes of heaps that were present in huge pages at the end.
        HeapLarge,
        /// Bytes of heaps that were present in smaller pages.
        HeapSmall,
        /// The same of maps.
        MmapLarge,
        /// The same of maps.
        MmapSmall,
        /// Private anonymous memory outside, which libc or a fallback had.
        Outside,
        /// Bytes of main stacks that were touched ahead.
        Stack,
        /// Of those, in huge pages.
        StackLarge,
        /// Bytes of code that were collapsed.
        Code,
        /// The error number where the kernel did not; 1 << 32 where there is no whole huge page.
        CodeErrno,
        /// Calls that asked for small pages in a segment, which has its own.
        Ignored,
        /// Programs that a full segment ended.
        Ended,
        /// Processes that forbade themselves calls (seccomp), and told what they had before.
        Filtered,
        /// Bytes that were given back and were kept at the end.
        Kept,
        /// Bytes that were kept, and went to the kernel because nobody took them again.
        Returned,
        /// Bytes that a helper zeroed.
        HelperBytes,
        /// Its CPU time, all of it.
        HelperNs,
        /// Helpers that began.
        Helpers,
        /// Bytes that a thread of the program zeroed which took them sooner.
        OwnBytes,
        /// The CPU time of that.
        OwnNs,
        /// Bytes that were made present before a program began.
        AheadBytes,
        /// The CPU time of that.
        AheadNs,
    }
}

/// No whole huge page lies within a program's code.
pub const CODE_TOO_SMALL: u64 = 1 << 32;

listed! {
    /// Why memory came from the kernel instead of a segment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Reason {
        /// The heap was full.
        HeapFull => "heap-full",
        /// Memory of the heap with a larger alignment than its allocator serves.
        Aligned => "aligned",
        /// The segment of maps had no room.
        MmapFull => "mmap-full",
        /// A map of a file.
        File => "file",
        /// Shared memory.
        Shared => "shared",
        /// A map at an address that the program chose.
        Placed => "placed",
        /// A stack, pages of a pool, locked memory.
        Own => "own",
        /// The break.
        Break => "break",
        /// A map that grew, and had parts with rights of their own.
        Moved => "moved",
        /// A map that may not be read and written, where leaves cannot have rights of their own.
        Rights => "rights",
        /// A call in the midst of another, as in a signal handler.
        Busy => "busy",
    }
}

impl Reason {
    /// As in "3 calls because ...".
    pub const fn because(self) -> &'static str {
        match self {
            Self::HeapFull => "the heap was full",
            Self::Aligned => "they wanted an alignment beyond 64 KiB",
            Self::MmapFull => "the segment of maps had no room",
            Self::File => "they were of files",
            Self::Shared => "they were of shared memory",
            Self::Placed => "the program chose the address",
            Self::Own => "they were stacks, locked, or of a pool",
            Self::Break => "they moved the break",
            Self::Moved => "a part had rights of its own",
            Self::Rights => "they were not to be read and written, as leaves of a pool are",
            Self::Busy => "they came in the midst of another",
        }
    }
}

#[cfg(test)]
mod tests;
