//! One memory operation, and whatever consumes a sequence of them.

/// The bit of an address that marks a fetch in a trace that tells fetches from loads of data. No
/// program has data there: it is the half of the kernel on x86-64 as on riscv64.
pub const FETCHED: u64 = 1 << 63;

/// How many bytes an operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// One byte.
    W1,
    /// Two bytes.
    W2,
    /// Four bytes.
    W4,
    /// Eight bytes.
    W8,
}

impl Width {
    /// Every width, narrow to wide.
    pub const ALL: [Self; 4] = [Self::W1, Self::W2, Self::W4, Self::W8];

    /// Its bytes: 1, 2, 4 or 8.
    pub const fn bytes(self) -> usize {
        1 << self as usize
    }

    /// The width of so many bytes, where there is one.
    pub const fn of(bytes: usize) -> Option<Self> {
        match bytes {
            1 => Some(Self::W1),
            2 => Some(Self::W2),
            4 => Some(Self::W4),
            8 => Some(Self::W8),
            _ => None,
        }
    }
}

/// Whether an operation reads or writes, and what it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// A read; a trace does not say what it found.
    Load,
    /// A write of this value; bytes above the width are 0.
    Store(u64),
}

/// One memory operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op {
    /// Address of its first byte.
    pub addr: u64,
    /// How many bytes it moves.
    pub width: Width,
    /// Read or write.
    pub access: Access,
}

impl Op {
    /// A read of `width` bytes at `addr`.
    pub const fn load(addr: u64, width: Width) -> Self {
        Self { addr, width, access: Access::Load }
    }

    /// A write of the low `width` bytes of `value` at `addr`.
    pub const fn store(addr: u64, width: Width, value: u64) -> Self {
        let unused = 64 - (8 << width as u32);
        Self { addr, width, access: Access::Store(value << unused >> unused) }
    }

    /// Hands the operation to a visitor.
    ///
    /// # Errors
    /// What the visitor says.
    pub fn visit<V: Visit>(self, visitor: &mut V) -> Result<(), V::Stop> {
        let Self { addr, width, access } = self;
        match (access, width) {
            (Access::Load, Width::W1) => visitor.load::<1>(addr),
            (Access::Load, Width::W2) => visitor.load::<2>(addr),
            (Access::Load, Width::W4) => visitor.load::<4>(addr),
            (Access::Load, Width::W8) => visitor.load::<8>(addr),
            (Access::Store(value), Width::W1) => visitor.store(addr, low::<1>(value)),
            (Access::Store(value), Width::W2) => visitor.store(addr, low::<2>(value)),
            (Access::Store(value), Width::W4) => visitor.store(addr, low::<4>(value)),
            (Access::Store(value), Width::W8) => visitor.store(addr, low::<8>(value)),
        }
    }
}

/// The low `N` bytes of a value, little-endian; `N` is at most 8.
pub fn low<const N: usize>(value: u64) -> [u8; N] {
    let bytes = value.to_le_bytes();
    std::array::from_fn(|at| bytes[at])
}

/// Little-endian bytes as a number; `N` is at most 8.
#[inline(always)]
pub fn wide<const N: usize>(bytes: [u8; N]) -> u64 {
    let mut all = [0; 8];
    all[..N].copy_from_slice(&bytes);
    u64::from_le_bytes(all)
}

/// Reads an address: decimal, or hexadecimal after `0x`; `None` where the text is none.
pub fn address(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // The library's parser would take a sign.
    let unsigned = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    unsigned.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// What is done with each operation of a trace.
///
/// `N` is the width in bytes: 1, 2, 4 or 8. Implementations should be `#[inline]`: decoders are
/// generic over them.
pub trait Visit {
    /// Why it stops before the end; [`std::convert::Infallible`] where it never does.
    type Stop;

    /// A read of `N` bytes at `addr`.
    ///
    /// # Errors
    /// To stop here.
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Self::Stop>;

    /// A write of `value` at `addr`, little-endian.
    ///
    /// # Errors
    /// To stop here.
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Self::Stop>;
}
