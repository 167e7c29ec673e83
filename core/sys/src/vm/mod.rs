//! What only the first process of a machine uses, its unsafe calls too.
//!
//! On a host `pagelab` never comes here.

pub mod firmware;
pub mod guest;
#[cfg(feature = "hostile")]
pub mod hostile;
