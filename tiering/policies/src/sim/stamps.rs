//! The count of accesses at which something last happened to each page.
//!
//! The one idea: pages are many and lie anywhere, moments are few, for much happens at once. So a
//! page has the number of its moment, in half of the memory that the moment itself would take.

/// A moment of each page, or none.
#[derive(Debug)]
pub(super) struct Stamps {
    /// Which of `moments` it is, from 1 on; 0 for none.
    pages: Vec<u32>,
    moments: Vec<f64>,
}

impl Stamps {
    pub(super) fn new(pages: u32) -> Self {
        Self { pages: vec![0; pages as usize], moments: Vec::new() }
    }

    /// Stamps a page now; returns its stamp before.
    #[inline]
    pub(super) fn replace(&mut self, page: u32, now: f64) -> Option<f64> {
        if self.moments.last() != Some(&now) {
            self.moments.push(now);
        }
        let number = u32::try_from(self.moments.len()).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut self.pages[page as usize], number);
        self.moment(before)
    }

    /// Takes the stamp of a page away.
    #[inline]
    pub(super) fn take(&mut self, page: u32) -> Option<f64> {
        let before = std::mem::take(&mut self.pages[page as usize]);
        self.moment(before)
    }

    /// The number of a page's moment: something to look at, for whoever wants it near.
    #[inline]
    pub(super) fn number(&self, page: u32) -> u32 {
        self.pages[page as usize]
    }

    #[inline]
    fn moment(&self, number: u32) -> Option<f64> {
        self.moments.get((number as usize).wrapping_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_last_stamp_until_it_is_taken() {
        let mut stamps = Stamps::new(3);
        assert_eq!(stamps.replace(0, 5.0), None);
        assert_eq!(stamps.replace(1, 5.0), None);
        assert_eq!(stamps.replace(1, 7.5), Some(5.0));
        assert_eq!((stamps.number(0), stamps.number(1), stamps.number(2)), (1, 2, 0));
        assert_eq!((stamps.take(1), stamps.take(1), stamps.take(2)), (Some(7.5), None, None));
        assert_eq!(stamps.take(0), Some(5.0));
    }
}
