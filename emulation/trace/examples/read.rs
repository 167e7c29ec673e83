//! Reads a trace: what of each page is loaded and stored, with a visitor of one's own.
//!
//! `cargo run --release -p pagelab-trace --features gz,xz,zst --example read FILE`. The first bytes
//! of the file say how it is compressed, and it is read piece by piece, so its length does not
//! matter.

use std::{collections::BTreeMap, convert::Infallible, error::Error, path::Path};

use pagelab_trace::{Visit, file};

/// Bytes loaded from and stored to each page, by its number.
#[derive(Default)]
struct Pages(BTreeMap<u64, [u64; 2]>);

impl Visit for Pages {
    type Stop = Infallible;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.0.entry(addr >> 12).or_default()[0] += N as u64;
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), Infallible> {
        self.0.entry(addr >> 12).or_default()[1] += N as u64;
        Ok(())
    }
}

/// A line for each of the `most` pages with most traffic, and one for all of them.
fn told(path: &Path, most: usize) -> Result<String, Box<dyn Error>> {
    let mut pages = Pages::default();
    let streamed = file::open(path)?.stream(&mut pages, |_| {})?;
    let mut busiest: Vec<_> = pages.0.iter().collect();
    busiest.sort_by_key(|(number, bytes)| (std::cmp::Reverse(bytes.iter().sum::<u64>()), **number));
    let mut text = String::new();
    for (number, [loaded, stored]) in busiest.iter().take(most) {
        text += &format!("{:#x}: {loaded} bytes loaded, {stored} stored\n", **number << 12);
    }
    text += &format!("{} pages in {} bytes of trace\n", busiest.len(), streamed.bytes);
    if streamed.trailing > 0 {
        text += &format!("the last record is cut off: {} bytes are left\n", streamed.trailing);
    }
    Ok(text)
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which trace? read FILE")?;
    print!("{}", told(Path::new(&path), 10)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use pagelab_trace::{Op, Width, raw::encode};

    use super::*;

    #[test]
    fn pages_are_told_busiest_first() {
        let mut trace = Vec::new();
        for at in 0..10 {
            encode(Op::load(0x1000 + at, Width::W1), &mut trace);
            encode(Op::store(0x5000 + 8 * at, Width::W8, at), &mut trace);
        }
        trace.extend([2, 8, 0]); // the start of a record
        let folder = tempfile::tempdir().unwrap();
        for name in ["trace.bin", "trace.bin.gz", "trace.bin.xz", "trace.bin.zst"] {
            let path = folder.path().join(name);
            let mut output = file::create(fs::File::create(&path).unwrap(), &path).unwrap();
            output.write_all(&trace).unwrap();
            output.finish().unwrap();
            let expected = "0x5000: 0 bytes loaded, 80 stored\n2 pages in 280 bytes of trace\n\
                            the last record is cut off: 3 bytes are left\n";
            assert_eq!(told(&path, 1).unwrap(), expected, "{name}");
        }
    }
}
