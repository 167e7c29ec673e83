//! Files and folders: made where no link leads, known by what the page cache holds of them.
//!
//! Whatever writes for a case or a user goes through here.

pub mod beside;
pub mod folder;
pub mod pagecache;
pub mod regular;
pub mod scratch;
pub mod shortage;
