//! What a case holds of the machine while its processes run.
//!
//! The one idea: whatever way the runner leaves a case, dropping this puts all of it back.

use std::fs::File;

use pagelab_sys::{
    SysError,
    knobs::{BelongingGuard, KnobGuard, Obtained},
};

/// What one case changed and what belongs to it; the last one is the first one undone.
#[derive(Debug, Default)]
pub(crate) struct Guards<'k>(Vec<Guard<'k>>);

/// One of them.
#[derive(Debug)]
pub(crate) enum Guard<'k> {
    #[expect(dead_code, reason = "held for its drop, which puts the knob back")]
    Knob(KnobGuard<'k>),
    Belonging(BelongingGuard<'k>),
}

impl<'k> Guards<'k> {
    /// Holds one more.
    pub(crate) fn hold(&mut self, guard: Guard<'k>) {
        self.0.push(guard);
    }

    /// What was made for the case.
    pub(crate) fn obtained(&self) -> Vec<Obtained> {
        let belongings = self.0.iter().filter_map(|guard| match guard {
            Guard::Belonging(belonging) => Some(belonging.obtained().clone()),
            Guard::Knob(_) => None,
        });
        belongings.collect()
    }

    /// The way into the group that the case's process is to run in.
    pub(crate) fn door(&self) -> Result<Option<File>, SysError> {
        let mut groups = self.obtained().into_iter().filter_map(|one| match one {
            Obtained::Group(group) => Some(group),
            Obtained::Swap(_) => None,
        });
        let Some(group) = groups.next() else { return Ok(None) };
        let failed = |error| SysError::new("open", group.path.display().to_string(), error);
        group.door().map(Some).map_err(failed)
    }
}

impl Drop for Guards<'_> {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}
