//! `explain`, `try` and `advise`.

pub(crate) mod advise;
pub(crate) mod explain;
pub(crate) mod resume;
pub(crate) mod tries;
