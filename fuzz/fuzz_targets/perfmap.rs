//! Maps of code that a program made, of any text: no panic, and a name is that of the last line
//! about its address, cut, without control characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::sow;
use pagelab_program::explain::jit::PerfMap;

fuzz_target!(init: sow([SEED.to_vec()]), |input: &[u8]| {
    let map = PerfMap::parse(input.to_vec());
    let mut addresses = vec![0, u64::MAX];
    for number in input.split(|byte| !byte.is_ascii_hexdigit()) {
        let text = str::from_utf8(number).expect("digits");
        if let Ok(start) = u64::from_str_radix(text, 16) {
            addresses.extend([start.wrapping_sub(1), start, start.wrapping_add(1)]);
        }
    }
    for address in addresses {
        let found = map.find(address);
        let last = input.rsplit(|byte| *byte == b'\n').find_map(|line| name(line, address));
        assert_eq!(found, last, "{address:#x}");
        assert!(found.is_none_or(|name| name.chars().count() <= 200 && !name.contains('\x1b')));
    }
});

/// The name in a line, where that is about an address.
fn name(line: &[u8], address: u64) -> Option<String> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let word = str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next().filter(|name| !name.is_empty())?;
    if !(start..start.checked_add(size)?).contains(&address) {
        return None;
    }
    let name = String::from_utf8_lossy(name);
    let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    Some(name.trim().to_owned())
}

/// Functions beside, in and over each other.
const SEED: &[u8] =
    b"1000 100 one\n0x1040 0x20 py::two:/a.py\n2000 10 three\n1ff0 20 JS:*four x:1\n";
