//! Sources that a library inside the process has opened: write protection that the kernel takes
//! away by itself, and memory that is closed for a moment.
//!
//! The one idea: what both know they know by the yard, which the library and this share. Write
//! protection needs no more of the program than a descriptor: its memory is registered and scanned
//! from here, whatever it maps and however. Loads are seen by the library alone, and only in large
//! memory that the program asked for by name: pages that were not looked at are not spoken of, so
//! that nobody takes them for idle.

use std::{cell::RefCell, io, ops::Range, rc::Rc};

use pagelab_interpose::heat::PACKAGE;
use pagelab_sys::{
    files::beside,
    machine::Tree,
    memory::{Stretch, Walk},
    uffd::{Ability, Theirs},
};

use super::{Lack, Pages, split};
use crate::{
    target::Refused,
    yard::{Program, Said, Yard},
};

/// A yard that several sources stand in.
pub type Shared = Rc<RefCell<Yard>>;

/// The row of a process, or why there is none.
fn row(yard: &Shared, pid: u32) -> Result<Program, Refused> {
    let programs = yard.borrow().programs().map_err(|why| Refused::of(pid, why))?;
    programs.into_iter().find(|program| program.pid == pid).ok_or(Refused::NotLoaded(pid))
}

/// What the library needs of the kernel.
pub(super) fn probe_protection(tree: &Tree) -> Result<(), Lack> {
    if !Ability::WriteProtectAsync.is_here() {
        return Err(Lack::new("the kernel has no asynchronous write protection", "Linux 6.7"));
    }
    probe_closing(tree)
}

/// Closing memory takes a library in the program, and nothing of the kernel.
pub(super) fn probe_closing(_: &Tree) -> Result<(), Lack> {
    match beside::library(PACKAGE) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(missing)) => Err(Lack::new(format!("no {missing}"), missing.cure.clone())),
        Err(why) => Err(Lack::new(format!("its own place: {why}"), "mount /proc")),
    }
}

#[derive(Debug)]
struct Protection {
    pid: u32,
    yard: Shared,
    /// The descriptor, and the row that it is of.
    theirs: Option<(usize, Theirs)>,
    is_armed: bool,
}

pub(super) fn open_protection(yard: &Shared, pid: u32) -> Box<dyn Pages> {
    Box::new(Protection { pid, yard: Rc::clone(yard), theirs: None, is_armed: false })
}

impl Protection {
    /// The row and the descriptor of the program that runs now.
    fn descriptor(&mut self) -> Result<&(usize, Theirs), Refused> {
        let Program { row, descriptor, .. } = row(&self.yard, self.pid)?;
        if self.theirs.as_ref().is_none_or(|(of, _)| *of != row) {
            let refused = |why| Refused::of(self.pid, why);
            let number =
                descriptor.map_err(|errno| refused(io::Error::from_raw_os_error(errno)))?;
            let theirs = Theirs::of(self.pid, number).map_err(|why| match why.raw_os_error() {
                Some(EBADF) => Refused::Closed(self.pid),
                _ => refused(why),
            })?;
            (self.theirs, self.is_armed) = (Some((row, theirs)), false);
        }
        self.theirs.as_ref().ok_or(Refused::Gone(self.pid))
    }
}

/// `EBADF`: the program has closed it.
const EBADF: i32 = 9;
/// `EBUSY`: another descriptor has the memory.
const EBUSY: i32 = 16;

impl Pages for Protection {
    fn pass(
        &mut self,
        mappings: &[Range<u64>],
        found: &mut dyn FnMut(Stretch),
    ) -> Result<(), Refused> {
        let pid = self.pid;
        let yard = Rc::clone(&self.yard);
        let (row, theirs) = self.descriptor()?;
        let mut scanned = Vec::new();
        for range in mappings {
            let done = yard.borrow().between_calls(*row, || theirs.register(range.clone()));
            // What nobody may store to cannot be registered, and is passed over by the scan; what
            // has gone meanwhile is there no more. What the program has registered with a
            // descriptor of its own is its own.
            match done.map_err(|why| Refused::of(pid, why))? {
                Some(Err(why)) if why.raw_os_error() == Some(EBUSY) => {}
                _ => scanned.push(range),
            }
        }
        let mut walk = Walk::protecting(pid).map_err(|why| Refused::of(pid, why))?;
        let is_armed = std::mem::replace(&mut self.is_armed, true);
        for range in scanned {
            let found = &mut |stretch: Stretch| {
                found(Stretch { written: stretch.written && is_armed, ..stretch });
            };
            walk.each(range.clone(), found).map_err(|why| Refused::of(pid, why))?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Closing {
    pid: u32,
    yard: Shared,
    asked: u64,
    said: Said,
}

pub(super) fn open_closing(yard: &Shared, pid: u32) -> Box<dyn Pages> {
    Box::new(Closing { pid, yard: Rc::clone(yard), asked: 0, said: Said::default() })
}

impl Pages for Closing {
    /// Whether a sweep has ended: until then nothing is known of what comes late in it.
    fn is_ready(&mut self) -> Result<bool, Refused> {
        let swept = row(&self.yard, self.pid)?.swept;
        let said = self.yard.borrow_mut().take(self.pid);
        let said = said.map_err(|why| Refused::of(self.pid, why))?;
        self.said.looked.extend(said.looked);
        self.said.seen.extend(said.seen);
        if self.asked == 0 {
            self.done()?;
        }
        // A program that has nothing to look at sweeps, too; one whose thread never began does not.
        Ok(swept >= self.asked)
    }

    /// Asks for another sweep, not before what came of the last one is carried out: of pages that
    /// are closed Linux 6.1 to 6.4 say that they are not there, and move none (`follow_page`).
    fn done(&mut self) -> Result<(), Refused> {
        let asked = self.yard.borrow_mut().ask();
        self.asked = asked.map_err(|why| Refused::of(self.pid, why))?;
        Ok(())
    }

    fn pass(
        &mut self,
        mappings: &[Range<u64>],
        found: &mut dyn FnMut(Stretch),
    ) -> Result<(), Refused> {
        let Said { mut looked, mut seen } = std::mem::take(&mut self.said);
        looked.sort_unstable_by_key(|range| range.start);
        seen.sort_unstable();
        let refused = |why| Refused::of(self.pid, why);
        let mut walk = Walk::of(self.pid).map_err(refused)?;
        let mut end = 0;
        for window in looked {
            // What was looked at twice is walked over once.
            let window = window.start.max(end)..window.end.max(end);
            end = window.end;
            let mapped = mappings.iter().filter_map(|range| both(range, &window));
            for range in mapped.collect::<Vec<_>>() {
                walk.each(range, &mut |stretch| split(stretch, &seen, found)).map_err(refused)?;
            }
        }
        Ok(())
    }
}

/// What two ranges have in common.
fn both(left: &Range<u64>, right: &Range<u64>) -> Option<Range<u64>> {
    let both = left.start.max(right.start)..left.end.min(right.end);
    (!both.is_empty()).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;

    #[test]
    fn a_stretch_falls_into_what_was_seen_and_what_was_not() {
        let stretch = |start: u64, end: u64, written| Stretch {
            start: start * PAGE,
            end: end * PAGE,
            written,
            huge: false,
        };
        let mut found = Vec::new();
        let seen: Vec<u64> = [1, 4, 5, 5, 9, 20].map(|page| page * PAGE).into();
        split(stretch(4, 10, false), &seen, &mut |part| found.push(part));
        let expected =
            [stretch(4, 5, true), stretch(5, 6, true), stretch(6, 9, false), stretch(9, 10, true)];
        assert_eq!(found, expected);
        assert_eq!(both(&(0..5), &(3..9)), Some(3..5));
        assert_eq!(both(&(0..5), &(5..9)), None);
    }
}
