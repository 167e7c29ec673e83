//! What a case holds of the machine while its processes run.
//!
//! The one idea: whatever way the runner leaves a case, dropping this puts all of it back.

use std::fs::File;

use pagelab_sys::{
    SysError,
    knobs::{BelongingGuard, KnobGuard, Knobs, Obtained},
    time::usage::process_cpu_ns,
};

use crate::{arm::InForce, need::Need, remedy::Remedy};

/// What one case changed and what belongs to it; the last one is the first one undone.
#[derive(Debug, Default)]
pub(crate) struct Guards<'k> {
    all: Vec<Guard<'k>>,
    /// CPU time that changing settings took this process.
    pub(crate) spent_ns: u64,
}

/// One of them.
#[derive(Debug)]
enum Guard<'k> {
    #[expect(dead_code, reason = "held for its drop, which puts the knob back")]
    Knob(KnobGuard<'k>),
    Belonging(BelongingGuard<'k>),
}

impl<'k> Guards<'k> {
    /// Meets one need, unless what an arm sets would be overruled; else says how a person can.
    pub(crate) fn meet(
        &mut self,
        need: &dyn Need,
        knobs: Option<&'k Knobs>,
        setting: Option<&InForce>,
    ) -> Result<(), String> {
        let Some(remedy) = need.pending() else {
            return if need.check() { Ok(()) } else { Err(need.cure()) };
        };
        let setting = setting.filter(|_| need.of::<InForce>().is_none());
        if let Some(setting) = setting.filter(|setting| setting.is_overruled_by(&remedy)) {
            return Err(setting.cure(need));
        }
        let Some(knobs) = knobs else { return Err(need.cure()) };
        let cpu_ns = || process_cpu_ns(std::process::id()).unwrap_or(0);
        let before_ns = cpu_ns();
        let made = match &remedy {
            Remedy::Set(paths, value) => paths.iter().try_for_each(|path| {
                knobs.set(path, value).map(|guard| self.all.push(Guard::Knob(guard)))
            }),
            Remedy::Create(belonging) => {
                knobs.create(belonging).map(|guard| self.all.push(Guard::Belonging(guard)))
            }
        };
        // A pool grows in the call that asks for it.
        self.spent_ns += cpu_ns().saturating_sub(before_ns);
        made.map_err(|error| error.to_string())?;
        // It may have grown by less than was asked for.
        if matches!(remedy, Remedy::Set(..)) && !need.check() {
            return Err(need.cure());
        }
        Ok(())
    }

    /// What was made for the case.
    pub(crate) fn obtained(&self) -> Vec<Obtained> {
        let belongings = self.all.iter().filter_map(|guard| match guard {
            Guard::Belonging(belonging) => Some(belonging.obtained().clone()),
            Guard::Knob(_) => None,
        });
        belongings.collect()
    }

    /// The way into the group that the case's process is to run in.
    pub(crate) fn door(&self) -> Result<Option<File>, SysError> {
        let mut groups = self.obtained().into_iter().filter_map(|one| match one {
            Obtained::Group(group) => Some(group),
            Obtained::Swap(_) | Obtained::Monitor(_) => None,
        });
        let Some(group) = groups.next() else { return Ok(None) };
        let failed = |error| SysError::new("open", group.path.display().to_string(), error);
        group.door().map(Some).map_err(failed)
    }
}

impl Drop for Guards<'_> {
    fn drop(&mut self) {
        while self.all.pop().is_some() {}
    }
}
