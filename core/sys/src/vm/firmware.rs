#![expect(unsafe_code, reason = "ports are instructions behind a privilege")]
//! What the first process of a machine and whoever emulates it have to do with each other: a stop
//! at one instruction, and files that are handed in.
//!
//! The one idea: both are ports of QEMU's, which no driver of the kernel takes part in, so that a
//! machine that was stopped, saved and resumed with other files has done nothing else. The ports
//! are those of `pvpanic` ("pvpanic device" in QEMU's specifications), on whose word the emulator
//! stops the processor behind the instruction, and of `fw_cfg` ("QEMU Firmware Configuration
//! Device").
//!
//! Rule: a process has the ports only inside of `Ports`, for the kernel does more for a process
//! that has some, and for its children, whenever it goes on with it.

use crate::SysError;

/// `pvpanic`, and what says that its machine wants to be stopped.
const STOP: u16 = 0x505;
const STOPPED: u8 = 1;
/// `fw_cfg`: what is read next is selected, then read a byte at a time.
const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;
/// The list of its files, each 64 bytes: size, selector, 2 bytes of nothing, a name.
const FILES: u16 = 0x19;
const NAME_BYTES: usize = 56;
/// Files at most, and bytes of one: what is handed in is small.
const FILES_MAX: u32 = 1024;
const BYTES_MAX: u32 = 1 << 20;

/// Asks to be stopped; goes on once the emulator does. One without the device stops nothing.
///
/// # Errors
/// When the process may have no ports.
pub fn stop() -> Result<(), SysError> {
    Ports::open()?.write_byte(STOP, STOPPED);
    Ok(())
}

/// A file that the emulator hands in by this name (`-fw_cfg name=NAME`); none where it does not.
///
/// # Errors
/// When the process may have no ports.
pub fn handed(name: &str) -> Result<Option<Vec<u8>>, SysError> {
    let ports = Ports::open()?;
    Ok(file(name, |selector| ports.write_word(SELECTOR, selector), |bytes| ports.read(DATA, bytes)))
}

fn file(
    name: &str,
    mut select: impl FnMut(u16),
    mut read: impl FnMut(&mut [u8]),
) -> Option<Vec<u8>> {
    select(FILES);
    let mut count = [0; 4];
    read(&mut count);
    for _ in 0..u32::from_be_bytes(count).min(FILES_MAX) {
        let ([mut size, mut selector], mut found) = ([[0; 4]; 2], [0; NAME_BYTES]);
        read(&mut size);
        read(&mut selector);
        read(&mut found);
        let length = found.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        let size = u32::from_be_bytes(size);
        if found[..length] == *name.as_bytes() && size <= BYTES_MAX {
            select(u16::from_be_bytes([selector[0], selector[1]]));
            let mut contents = vec![0; usize::try_from(size).ok()?];
            read(&mut contents);
            return Some(contents);
        }
    }
    None
}

/// The right to use ports, while it lives.
struct Ports(());

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unused_self, reason = "only who has the right can ask")]
impl Ports {
    fn open() -> Result<Self, SysError> {
        // SAFETY: changes what this process may do, and nothing else.
        if unsafe { libc::iopl(3) } == 0 {
            return Ok(Self(()));
        }
        Err(SysError::last("iopl", "3"))
    }

    fn write_byte(&self, port: u16, value: u8) {
        // SAFETY: the port is the emulator's, or nothing listens there.
        unsafe {
            std::arch::asm!("out dx, al", in("dx") port, in("al") value,
                            options(nostack, preserves_flags));
        }
    }

    fn write_word(&self, port: u16, value: u16) {
        // SAFETY: as above.
        unsafe {
            std::arch::asm!("out dx, ax", in("dx") port, in("ax") value,
                            options(nostack, preserves_flags));
        }
    }

    fn read(&self, port: u16, bytes: &mut [u8]) {
        for byte in bytes {
            // SAFETY: as above; a port that nothing answers at reads as ones.
            unsafe {
                std::arch::asm!("in al, dx", in("dx") port, out("al") *byte,
                                options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Ports {
    fn drop(&mut self) {
        // SAFETY: gives back what `open` took.
        unsafe { libc::iopl(0) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[expect(clippy::unused_self, reason = "there are none")]
impl Ports {
    fn open() -> Result<Self, SysError> {
        Err(SysError::new("iopl", "3", std::io::ErrorKind::Unsupported))
    }

    fn write_byte(&self, _: u16, _: u8) {}

    fn write_word(&self, _: u16, _: u16) {}

    fn read(&self, _: u16, _: &mut [u8]) {}
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn entry(size: u32, selector: u16, name: &str) -> Vec<u8> {
        let mut bytes = size.to_be_bytes().to_vec();
        bytes.extend(selector.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(name.bytes());
        bytes.resize(64, 0);
        bytes
    }

    /// A device with a list and one file behind each selector from 32 on.
    fn find(name: &str, list: &[u8]) -> Option<Vec<u8>> {
        let (left, list) = (RefCell::new(Vec::new()), list.to_vec());
        let select = |selector| {
            let contents = if selector == FILES {
                list.clone()
            } else {
                vec![u8::try_from(selector).unwrap(); 9]
            };
            *left.borrow_mut() = contents;
        };
        let read = |bytes: &mut [u8]| {
            for byte in bytes {
                let mut left = left.borrow_mut();
                *byte = if left.is_empty() { 0 } else { left.remove(0) };
            }
        };
        file(name, select, read)
    }

    #[test]
    fn a_file_is_found_by_its_whole_name() {
        let mut list = 3_u32.to_be_bytes().to_vec();
        list.extend(entry(7, 32, "opt/orders-of-others"));
        list.extend(entry(3, 33, "opt/orders"));
        list.extend(entry(u32::MAX, 34, "opt/large"));
        assert_eq!(find("opt/orders", &list), Some(vec![33; 3]));
        assert_eq!(find("opt/large", &list), None);
        assert_eq!(find("opt", &list), None);
        // Where nothing listens everything reads as ones.
        assert_eq!(find("opt/orders", &vec![0xFF; 64 * 1024 + 4]), None);
    }
}
