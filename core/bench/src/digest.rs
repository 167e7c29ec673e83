//! What bytes are, as a name: SHA-256 in hexadecimal digits.

use std::{
    fs::File,
    io::{self, Read},
};

use sha2::{Digest, Sha256};

/// Of some bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Of what is left of a file.
///
/// # Errors
/// When it cannot be read.
pub fn of_file(mut file: &File) -> io::Result<String> {
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_of_its_bytes() {
        // Published with FIPS 180-2.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_bytes(b"abc"), abc);
        // Not the file of that name, which a build may replace meanwhile.
        let own = "/proc/self/exe";
        let bytes = std::fs::read(own).unwrap();
        assert_eq!(of_file(&File::open(own).unwrap()).unwrap(), of_bytes(&bytes));
    }
}
