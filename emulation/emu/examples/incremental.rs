//! Incremental checkpoints: how many pages each one has to copy, and that they are enough.
//!
//! `cargo run --release -p pagelab-emu --example incremental [generator] [million operations]`. A
//! trace is replayed into a memory that notes which pages are written. After every interval these
//! pages, and no others, are copied into a second memory, as a checkpoint or a live migration
//! would. Meanwhile a fork of the memory stands for whoever reads the checkpoint while the guest
//! goes on.

use std::error::Error;

use pagelab_emu::{Builder, Fault, Memory, Tlb, memory::PAGE_BYTES};
use pagelab_trace::{Visit, decode, synth::Spec};

/// Checkpoints of a run.
const CHECKPOINTS: usize = 10;

/// Replays the stores and loads of a trace.
struct Guest(Box<Tlb>);

impl Visit for Guest {
    type Stop = Fault;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Fault> {
        self.0.load::<N>(addr).map(drop)
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        self.0.store(addr, value)
    }
}

/// Copies pages from one memory to another.
fn copy(pages: &[u64], from: &mut Tlb, to: &mut Tlb) -> Result<(), Fault> {
    let mut page = [0; PAGE_BYTES];
    for addr in pages.iter().map(|number| number * PAGE_BYTES as u64) {
        from.read(addr, &mut page)?;
        to.write(addr, &page)?;
    }
    Ok(())
}

/// Whether both hold the same pages with the same bytes.
fn same(one: &mut Tlb, other: &mut Tlb) -> Result<bool, Fault> {
    let pages = one.page_numbers();
    let (mut left, mut right) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
    for addr in pages.iter().map(|number| number * PAGE_BYTES as u64) {
        one.read(addr, &mut left)?;
        other.read(addr, &mut right)?;
        if left != right {
            return Ok(false);
        }
    }
    Ok(pages == other.page_numbers())
}

/// Brings the copy up to date at every checkpoint: how many pages it copied, of how many.
fn checkpoints(
    guest: &mut Guest,
    backup: &mut Tlb,
    spec: &Spec,
) -> Result<Vec<[usize; 2]>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let trace: Vec<u8> = spec.stream().flatten().collect();
    let (mut done, interval) = (0, trace.len() / CHECKPOINTS);
    guest.0.mark();
    while done < trace.len() {
        // A piece may end inside a record, which is then the start of the next one.
        let end = trace.len().min(done + interval.max(18));
        done += decode::visit(&trace[done..end], done as u64, guest)?;
        let mut still = guest.0.fork();
        let written = guest.0.written_pages();
        guest.0.mark();
        copy(&written, &mut still, backup)?;
        rows.push([written.len(), still.page_numbers().len()]);
    }
    Ok(rows)
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec = arguments.next().unwrap_or_else(|| "zipf:footprint=64m,stores=0.3".to_owned());
    let millions: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let spec = Spec::parse(&spec)?.with_ops(millions * 1_000_000);
    let mut guest = Guest(Box::new(Builder::new().tlb()));
    let mut backup = Builder::new().tlb();
    let rows = checkpoints(&mut guest, &mut backup, &spec)?;
    println!("{spec}");
    for [copied, pages] in rows {
        println!("{copied:>8} of {pages:>8} pages copied");
    }
    println!("the copy is {}", if same(&mut guest.0, &mut backup)? { "the same" } else { "OTHER" });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_written_since_the_last_checkpoint_are_enough() {
        let spec = Spec::parse("zipf:footprint=4m,stores=0.3").unwrap().with_ops(100_000);
        let mut guest = Guest(Box::new(Builder::new().huge_pages(false).tlb()));
        let mut backup = Builder::new().huge_pages(false).tlb();
        let rows = checkpoints(&mut guest, &mut backup, &spec).unwrap();
        assert!(same(&mut guest.0, &mut backup).unwrap());
        assert!(rows.len() >= 10);
        assert!(rows[1..].iter().all(|[copied, pages]| copied < pages), "{rows:?}");
        guest.0.store_u8(0x1000_0000, 255).unwrap();
        backup.store_u8(0x1000_0000, 254).unwrap();
        assert!(!same(&mut guest.0, &mut backup).unwrap());
    }
}
