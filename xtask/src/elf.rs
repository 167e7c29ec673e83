//! Just enough of ELF to answer one question: does this executable need a dynamic loader?
//!
//! Read by hand because a machine without `file` builds releases too; 64-bit little-endian only,
//! which is what we ship.

use anyhow::{Result, ensure};

const PT_INTERP: u32 = 3;

/// Whether an executable runs by itself, whatever the machine's C library.
pub(crate) fn is_static(file: &[u8]) -> Result<bool> {
    ensure!(file.get(..6) == Some(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let headers = usize::try_from(u64::from_le_bytes(field(file, 0x20)?))?;
    let size = usize::from(u16::from_le_bytes(field(file, 0x36)?));
    let count = usize::from(u16::from_le_bytes(field(file, 0x38)?));
    for index in 0..count {
        let kind = u32::from_le_bytes(field(file, headers.saturating_add(index * size))?);
        if kind == PT_INTERP {
            return Ok(false);
        }
    }
    Ok(true)
}

fn field<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = file.get(at..).and_then(<[u8]>::first_chunk);
    bytes.copied().ok_or_else(|| anyhow::anyhow!("the file ends before byte {at:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(kinds: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x20] = 64;
        file[0x36] = 56;
        file[0x38] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            file.extend(kind.to_le_bytes());
            file.extend([0; 52]);
        }
        file
    }

    #[test]
    fn an_interpreter_makes_it_dynamic() {
        assert!(is_static(&executable(&[1, 2, 6])).unwrap());
        assert!(!is_static(&executable(&[6, PT_INTERP, 1])).unwrap());
    }

    #[test]
    fn what_is_not_elf_or_ends_early_is_an_error() {
        assert!(is_static(b"#!/bin/sh").is_err());
        assert!(is_static(&executable(&[1, 1])[..100]).is_err());
        let mut far = executable(&[1]);
        far[0x20..0x28].fill(0xff);
        assert!(is_static(&far).is_err());
    }

    #[test]
    fn the_running_test_says_what_it_is() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(is_static(&own).unwrap(), cfg!(target_feature = "crt-static"));
    }
}
