//! Populating a part of an area, or for loads only.
//!
//! The one idea: `MADV_POPULATE_*` (since Linux 5.14) takes the faults inside one call and, unlike
//! `MAP_POPULATE` and `MAP_LOCKED`, says when it could not. Several threads may each call it for
//! their part.
//!
//! Rule: (1) every range lies in one window of a mapped area, which its `Area` owns; populating
//! changes no contents.

use crate::{Area, SysError, memory::area::populate};

impl Area {
    /// `MADV_POPULATE_WRITE` of the bytes `from..to` of the windows laid end to end.
    ///
    /// # Errors
    /// When memory is short.
    ///
    /// # Panics
    /// When the bytes are not all in the area.
    pub fn populate_write_part(&self, from: usize, to: usize) -> Result<(), SysError> {
        self.populate_part(from, to, true)
    }

    /// `MADV_POPULATE_READ`: present for loads, as the zero page where nothing was stored.
    ///
    /// # Errors
    /// When memory is short.
    pub fn populate_read(&self) -> Result<(), SysError> {
        self.populate_part(0, self.layout().bytes(), false)
    }

    fn populate_part(&self, from: usize, to: usize, write: bool) -> Result<(), SysError> {
        let layout = self.layout();
        assert!(from <= to && to <= layout.bytes(), "populate outside the area");
        let base = self.base_ptr() as usize;
        let mut at = from;
        while at < to {
            let end = to.min((at / layout.window + 1) * layout.window);
            let start = base + layout.offset(at);
            populate(start, end - at, write)?;
            at = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Area,
        memory::{Advice, Backing, Layout, Residency, Scanner, has_populate_write},
    };

    fn scanned(populate: impl Fn(&Area)) -> Residency {
        let layout = Layout { window: 8 << 12, stride: 16 << 12, windows: 4 };
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
        let _ = area.advise(Advice::NoHugePage);
        populate(&area);
        Scanner::open().unwrap().scan(&area).unwrap()
    }

    #[test]
    fn a_part_that_crosses_windows_is_present_and_nothing_else() {
        let _alone = crate::alone();
        if has_populate_write() {
            crate::counted(16, || {
                scanned(|area| area.populate_write_part(4 << 12, 20 << 12).unwrap()).present
            });
        }
    }

    #[test]
    fn populated_for_loads_is_the_zero_page() {
        let _alone = crate::alone();
        if has_populate_write() {
            let found = scanned(|area| area.populate_read().unwrap());
            assert_eq!(found.present, 32);
            assert!(found.zero.is_none_or(|zero| zero == 32), "{found:?}");
        }
    }
}
