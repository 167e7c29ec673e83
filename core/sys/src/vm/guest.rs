#![expect(unsafe_code, reason = "the debug port is an instruction behind a privilege")]
//! What the first process of a virtual machine does: mounts, modules, a raw line out, the end.
//!
//! The one idea: the test kernels have no user space but one static program, so the few calls that
//! an init needs are here. It is not a service manager: nothing is retried and nothing is undone.

use std::{ffi::CString, fs::File, os::fd::AsFd, path::Path};

use rustix::{
    io::Errno,
    mount::MountFlags,
    system::RebootCommand,
    termios::{OptionalActions, tcgetattr, tcsetattr},
};

use crate::{Called, SysError};

/// Mounts a file system of the kernel's own on a directory, which is made where it is missing.
///
/// # Errors
/// When the kernel has no such file system, or the directory cannot be made.
pub fn mount(kind: &str, on: &str) -> Result<(), SysError> {
    match mount_disk(kind, kind, on) {
        // The kernel mounts devtmpfs by itself where it is built to.
        Err(error) if error.is_busy() => Ok(()),
        done => done,
    }
}

/// Mounts the file system on a block device on a directory, which is made where it is missing.
///
/// # Errors
/// When there is no such device or file system, or the directory cannot be made.
pub fn mount_disk(device: &str, kind: &str, on: &str) -> Result<(), SysError> {
    std::fs::create_dir_all(on).called("mkdir", on)?;
    rustix::mount::mount(device, on, kind, MountFlags::empty(), None)
        .called("mount", format_args!("{device} on {on}"))
}

/// Loads the module in a file, `parameters` as on insmod's command line.
///
/// # Errors
/// What the kernel or the module's own init says; the reason is in the kernel's log.
pub fn load_module(file: &Path, parameters: &str) -> Result<(), SysError> {
    let on = format!("{} {parameters}", file.display());
    let image = File::open(file).called("finit_module", &on)?;
    let parameters = CString::new(parameters).called("finit_module", &on)?;
    match rustix::system::finit_module(image, &parameters, 0) {
        Err(Errno::EXIST) => Ok(()),
        done => done.called("finit_module", on),
    }
}

/// Unloads a module that nothing uses.
///
/// # Errors
/// `EWOULDBLOCK` while it is in use, `ENOENT` when it is not loaded.
pub fn unload_module(name: &str) -> Result<(), SysError> {
    let text = CString::new(name).called("delete_module", name)?;
    rustix::system::delete_module(&text, libc::O_NONBLOCK).called("delete_module", name)
}

/// Makes a serial line pass on bytes as they are.
///
/// # Errors
/// When the file is no terminal.
pub fn make_raw(line: impl AsFd) -> Result<(), SysError> {
    let mut settings = tcgetattr(&line).called("tcsetattr", "a serial line")?;
    settings.make_raw();
    tcsetattr(&line, OptionalActions::Now, &settings).called("tcsetattr", "a serial line")
}

/// Gives this process access to I/O ports; whether it has it now. A later lockdown does not revoke
/// it.
pub fn open_ports() -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: changes what this process may do, and nothing else.
    let is_open = unsafe { libc::iopl(3) } == 0;
    #[cfg(not(target_arch = "x86_64"))]
    let is_open = false;
    is_open
}

/// Leaves the machine through QEMU's `isa-debug-exit` at port 0xf4, then by powering it off.
///
/// QEMU's exit status is `2 * status + 1`; a machine without the device ends with 0.
pub fn leave(status: u8) -> ! {
    rustix::fs::sync();
    #[cfg(target_arch = "x86_64")]
    {
        if open_ports() {
            // SAFETY: the port is QEMU's exit device, or nothing listens there.
            unsafe {
                std::arch::asm!(
                    "out 0xf4, eax",
                    in("eax") u32::from(status),
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    }
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    // Nothing is left to try, and a first process that returned would be a panic.
    loop {
        std::thread::park();
    }
}
