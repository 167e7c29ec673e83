//! The machine's own ceilings, measured in the same run, so that every result is also a share of
//! what is possible.

pub mod bulk;
pub mod syscall;
pub mod timer;

use pagelab_sys::{SysError, machine::Topology, process::Pinned};

/// Binds the case's one thread to the CPU that fault cases use too; it stays there to the end.
fn pin() -> Result<(), SysError> {
    if let Some(cpu) = Topology::machine().default_cpu() {
        std::mem::forget(Pinned::to(cpu)?);
    }
    Ok(())
}
