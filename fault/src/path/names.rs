//! The names of `fault/path`.

/// How the table is called whose name goes on with the release of the kernel that ran.
pub(crate) const KERNEL: &str = "kernel/";
/// How the tables of classes begin: samples, instructions more than the mode (least, middle, most),
/// samples from one to the next.
pub(crate) const CLASS: &str = "class/";
/// How the tables begin of functions in which the first sample of a class differs from the mode:
/// the class, `/`, the function.
pub(crate) const DIFFERS: &str = "differs/";
/// Distinct lines (the first row) and pages (the second) of each sort of memory.
pub(crate) const PLACES_TABLE: &str = "places";

/// Series.
pub(crate) mod series {
    pub(crate) const INSTRUCTIONS: &str = "instructions";
}

/// Counters.
pub(crate) mod counter {
    pub(crate) const USER: &str = "user";
    pub(crate) const SAMPLES: &str = "samples";
    pub(crate) const SAMPLES_IN_MODE: &str = "samples_in_mode";
    /// In the mode or in a class with a name.
    pub(crate) const SAMPLES_NAMED: &str = "samples_named";
    /// That an interrupt came into and left: what it did is cut out of them.
    pub(crate) const SAMPLES_INTERRUPTED: &str = "samples_interrupted";
    /// Instructions that were cut out, of all samples.
    pub(crate) const INTERRUPTED: &str = "interrupted_instructions";
    /// In which the task gave the processor away: what others did meanwhile is cut out of them.
    pub(crate) const SAMPLES_AWAY: &str = "samples_that_waited";
    /// Instructions of the scheduler and of other tasks, of all samples.
    pub(crate) const AWAY: &str = "instructions_of_other_tasks";
    pub(crate) const BOOTS: &str = "boots";
    /// Of the boots, those of a machine that was saved where it waited for its case.
    pub(crate) const RESUMED: &str = "boots_resumed";

    /// What the path that most samples took has of something.
    pub(crate) fn of_mode(what: &str) -> String {
        format!("mode_{what}")
    }

    /// Windows that are no samples: something else took part in them that cannot be cut out.
    pub(crate) fn disturbed(by: &str) -> String {
        format!("disturbed_by_{by}")
    }
}
