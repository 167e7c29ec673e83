//! The bits of pghot's records, and the arithmetic on their time.
//!
//! The one idea: three layouts, one set of functions. Time is a field of so many bits, in units of
//! a power of two of jiffies; what a difference of times means is modulo that.

/// Which record: `CONFIG_PGHOT_PRECISE` or not, or that of the third version of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One byte: frequency in bits 0 and 1, a bucket of 128 jiffies in bits 2 to 6, ready in bit 7.
    Default,
    /// Four bytes: node in bits 0 to 9, frequency in bits 10 to 12, 14 bits of jiffies from bit 13
    /// on, ready in bit 31.
    Precision,
    /// Eight bytes, as the third version describes them: node in bits 0 to 9, frequency in bits 10
    /// to 12, 19 bits of jiffies from bit 13 on, ready in bit 63. Its masks, `(1 << SHIFT) - 1`,
    /// take where a field begins for how long it is; that is not repeated here.
    Wide,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The node to go to; 0 in default mode, which has none.
    pub node: u16,
    /// Accesses, up to 3 or 7.
    pub frequency: u8,
    /// The time field: buckets of 128 jiffies, or jiffies; modulo its bits.
    pub time: u32,
    /// Whether it is to be migrated.
    pub ready: bool,
}

impl Mode {
    /// Bytes of the records of so much memory: one for each base page.
    pub const fn map_bytes(self, memory: u64) -> u64 {
        memory / crate::PAGE_BYTES * (self.bits() as u64 / 8)
    }

    pub(in crate::map) const fn bits(self) -> u32 {
        match self {
            Self::Default => 8,
            Self::Precision => 32,
            Self::Wide => 64,
        }
    }

    /// Bits of the node, of the frequency, of the time; and jiffies of a unit of time as a power.
    #[inline]
    const fn fields(self) -> (u32, u32, u32, u32) {
        match self {
            Self::Default => (0, 2, 5, 7),
            Self::Precision => (10, 3, 14, 0),
            Self::Wide => (10, 3, 19, 0),
        }
    }

    /// The largest frequency.
    pub const fn frequency_max(self) -> u8 {
        match self {
            Self::Default => 3,
            Self::Precision | Self::Wide => 7,
        }
    }

    /// The default of `pghot_promote_freq_window_ms`.
    pub const fn window_ms(self) -> u64 {
        match self {
            Self::Default => 3000,
            Self::Precision | Self::Wide => 5000,
        }
    }

    /// Whether an access from another node than the one before starts the count again.
    pub(super) const fn restarts_by_node(self) -> bool {
        matches!(self, Self::Wide)
    }

    /// The bits of a record.
    #[inline]
    pub fn encode(self, record: Record) -> u64 {
        let (node_bits, frequency_bits, time_bits, _) = self.fields();
        let cut = |value: u64, bits: u32| value & ((1 << bits) - 1);
        cut(record.node.into(), node_bits)
            | cut(record.frequency.into(), frequency_bits) << node_bits
            | cut(record.time.into(), time_bits) << (node_bits + frequency_bits)
            | u64::from(record.ready) << (self.bits() - 1)
    }

    /// The record of those bits; unused ones are ignored.
    #[inline]
    pub fn decode(self, bits: u64) -> Record {
        let (node_bits, frequency_bits, time_bits, _) = self.fields();
        let cut = |shift: u32, bits_: u32| (bits >> shift & ((1 << bits_) - 1)).to_le_bytes();
        let [low, high, ..] = cut(0, node_bits);
        let [a, b, c, d, ..] = cut(node_bits + frequency_bits, time_bits);
        Record {
            node: u16::from_le_bytes([low, high]),
            frequency: cut(node_bits, frequency_bits)[0],
            time: u32::from_le_bytes([a, b, c, d]),
            ready: bits >> (self.bits() - 1) & 1 == 1,
        }
    }

    /// The time field at so many jiffies.
    #[inline]
    pub fn time(self, jiffies: u64) -> u32 {
        let (_, _, time_bits, shift) = self.fields();
        let [a, b, c, d, ..] = (jiffies >> shift & ((1 << time_bits) - 1)).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Jiffies from a time field to now, modulo what the field can hold.
    #[inline]
    pub fn latency(self, now: u64, time: u32) -> u64 {
        let (_, _, time_bits, shift) = self.fields();
        u64::from(self.time(now).wrapping_sub(time) & ((1 << time_bits) - 1)) << shift
    }
}
