//! What a preloaded library is ordered to do, and where it counts what came of it.
//!
//! The one idea: these are the words of both sides, of whoever orders and of the library, which
//! lives in somebody's program: nothing that the library calls here allocates, locks or opens
//! anything. Orders are a variable of the environment, so that what the program starts inherits
//! them; counts are words of a page that all its processes share.

pub mod log;

use std::{fmt, str};

/// The package whose library it is.
pub const PACKAGE: &str = "pagelab-preload";
/// The variable that holds the orders.
pub const ORDERS: &str = "PAGELAB_PRELOAD";
/// The variable that names the file of the counts.
pub const SHEET: &str = "PAGELAB_PRELOAD_SHEET";
/// Bytes of that file.
pub const SHEET_BYTES: usize = 4096;

listed! {
    /// What may be ordered; each for what is of so many bytes or more.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Order {
        /// Private anonymous maps are made present (`MADV_POPULATE_WRITE`, Linux 5.14).
        Populate => "populate",
        /// They are to have huge pages (`MADV_HUGEPAGE`).
        Huge => "huge",
        /// They are made present and collapsed into huge pages (`MADV_COLLAPSE`, Linux 6.1).
        Collapse => "collapse",
        /// Shared memory takes pages of the hugetlb pool, which have so many bytes.
        Pool => "pool",
        /// Maps and what malloc gives are noted on the log, by the site that asked ([`log`]).
        Watch => "watch",
        /// Those whose unit is listed ([`log::UNITS`]) are to have huge pages.
        Units => "units",
        /// What malloc gives of another unit is to have none (`MADV_NOHUGEPAGE`).
        Spare => "spare",
    }
}

impl Order {
    /// Those that are about units.
    pub const OF_UNITS: [Self; 3] = [Self::Watch, Self::Units, Self::Spare];
}

/// The orders of a library: `populate=1048576,huge=2097152`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Orders {
    from: [Option<u64>; Order::ALL.len()],
}

impl Orders {
    /// One more: for what is of so many bytes or more.
    #[must_use]
    pub fn with(mut self, order: Order, bytes: u64) -> Self {
        self.from[order as usize] = Some(bytes);
        self
    }

    /// From how many bytes on something is ordered.
    pub const fn from(&self, order: Order) -> Option<u64> {
        self.from[order as usize]
    }

    /// The orders of a variable; a word that is none is nothing to do.
    pub fn parse(text: &[u8]) -> Self {
        let mut orders = Self::default();
        for word in text.split(|byte| *byte == b',') {
            let pair = str::from_utf8(word).ok().and_then(|word| word.split_once('='));
            let Some((name, bytes)) = pair else { continue };
            if let Some(order) = Order::named(name.as_bytes()) {
                orders.from[order as usize] = bytes.parse().ok();
            }
        }
        orders
    }
}

impl fmt::Display for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = Order::ALL.into_iter().filter_map(|order| Some((order, self.from(order)?)));
        for (nth, (order, bytes)) in given.enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(f, "{comma}{}={bytes}", order.name())?;
        }
        Ok(())
    }
}

listed! {
    /// What is counted, over all processes that share a sheet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Counted {
        /// Programs that were loaded with the library.
        Programs,
        /// Calls that the orders were for.
        Asked,
        /// Bytes for which an order was carried out.
        Bytes,
        /// Calls for which the kernel refused it; they got what they would have got.
        Refused,
        /// The error number of the last refusal.
        Errno,
    }
}

/// What was counted on a sheet: its first words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts(pub [u64; Counted::ALL.len()]);

impl Counts {
    /// One of them.
    pub const fn get(&self, counted: Counted) -> u64 {
        self.0[counted as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_order_is_nothing_to_do() {
        assert_eq!(Orders::parse(b""), Orders::default());
        assert_eq!(Orders::parse(b"populate,huge=,collapse=-1,pools=4,\xff=1"), Orders::default());
        let orders = Orders::parse(b"dance=1,huge=2097152,populate=x");
        assert_eq!(orders, Orders::default().with(Order::Huge, 2 << 20));
        assert_eq!(orders.to_string(), "huge=2097152");
    }

    proptest! {
        #[test]
        fn orders_are_read_as_they_were_written(from in any::<[Option<u64>; 7]>()) {
            let orders = Orders { from };
            prop_assert_eq!(Orders::parse(orders.to_string().as_bytes()), orders);
        }
    }
}
