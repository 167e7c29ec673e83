//! Makes a trace of an algorithm, without running it: the product of two matrices, in tiles.
//!
//! `cargo run --release -p pagelab-trace --features gz,xz,zst --example make FILE [rows] [tile]`.
//! An algorithm that is written as its loads and stores is a trace, and goes to whatever is a
//! `Visit`: to a file, whose name says how it is compressed, and to statistics, which tell what a
//! tile is good for: how often a TLB of 16 entries misses.

use std::{
    error::Error,
    fs::File,
    path::{Path, PathBuf},
};

use pagelab_trace::{
    Op, Visit, Width,
    file::{self, Writer},
    stats::{Collector, Options},
};

/// Where the matrices are: `C += A * B`, each of `f64`, cut out of larger ones.
const A: u64 = 0x1000_0000;
const B: u64 = 0x2000_0000;
const C: u64 = 0x3000_0000;

/// Bytes from a row to the next.
const ROW_BYTES: u64 = 4096;

/// Hands the product of two matrices of `rows * rows` to a visitor, tile by tile.
fn multiply<V: Visit>(rows: u64, tile: u64, visitor: &mut V) -> Result<(), V::Stop> {
    let place = |base, row, column| base + row * ROW_BYTES + column * 8;
    let tiles = || (0..rows).step_by(usize::try_from(tile).unwrap_or(usize::MAX));
    let inside = |from: u64| from..rows.min(from + tile);
    for (above, left) in tiles().flat_map(|above| tiles().map(move |left| (above, left))) {
        for middle in tiles() {
            for row in inside(above) {
                for column in inside(left) {
                    Op::load(place(C, row, column), Width::W8).visit(visitor)?;
                    for k in inside(middle) {
                        Op::load(place(A, row, k), Width::W8).visit(visitor)?;
                        Op::load(place(B, k, column), Width::W8).visit(visitor)?;
                    }
                    Op::store(place(C, row, column), Width::W8, 0).visit(visitor)?;
                }
            }
        }
    }
    Ok(())
}

/// Writes the trace; a file that is there already is replaced.
fn write(path: &Path, rows: u64, tile: u64) -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::new(file::create(File::create(path)?, path)?);
    multiply(rows, tile, &mut writer)?;
    writer.finish()?.finish()?;
    Ok(())
}

/// Operations, and which of them miss in a TLB of 16 entries.
fn misses(path: &Path) -> Result<[u64; 2], Box<dyn Error>> {
    let mut collector = Collector::new(&Options { tlb: true, ..Options::default() })?;
    file::open(path)?.stream(&mut collector, |_| {})?;
    let stats = collector.finish(0);
    let reach = stats.tlb.first().ok_or("there is no reach of 4k pages")?;
    Ok([stats.ops, reach.tlbs.first().map_or(0, |smallest| smallest.misses)])
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path: PathBuf = arguments.next().ok_or("where to? make FILE [rows] [tile]")?.into();
    let mut number = |default| {
        let Some(text) = arguments.next() else { return Ok(default) };
        let number = text.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
        number.ok_or("rows and tile are numbers from 1 on")
    };
    let (rows, tile) = (number(256)?.min(ROW_BYTES / 8), number(8)?);
    write(&path, rows, tile)?;
    let [ops, misses] = misses(&path)?;
    println!("{ops} operations, of which {misses} miss in a TLB of 16 entries");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_spare_the_tlb() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, tiled] = [48, 8].map(|tile| {
            let path = folder.path().join(format!("{tile}.bin"));
            write(&path, 48, tile).unwrap();
            misses(&path).unwrap()
        });
        let cells = 48 * 48;
        assert_eq!(plain[0], 2 * cells * 48 + 2 * cells);
        assert_eq!(tiled[0], 2 * cells * 48 + 2 * cells * 6);
        assert!(tiled[1] * 4 < plain[1], "{tiled:?} and {plain:?}");
    }
}
