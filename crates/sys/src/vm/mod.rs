//! What only the first process of a test machine uses, its unsafe calls too.
//!
//! `pagelab` itself never comes here.

pub mod guest;
pub mod hostile;
