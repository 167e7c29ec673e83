//! Other people's guest memories, replayed beside ours: only with the feature `peers`.
//!
//! The one idea: a peer is used as its own users would, one call for one access, and does what it
//! can do. What it cannot, a policy or an address, is an error that says so, and nothing is
//! added to make it look like ours.

use vm_memory::{ByteValued, Bytes as _, GuestAddress, GuestMemoryError, GuestMemoryMmap};

use crate::{Fault, Kind, Memory, Policy, Unfit, noop::resized};

/// Address bits of the one region: as many as a process can reserve beside others.
const BITS: u32 = 45;

/// The crate `vm-memory`: `read_obj` and `write_obj` on one region.
///
/// Its address space ends at 2^45, and every page of it exists.
#[derive(Debug)]
pub struct VmMemory(GuestMemoryMmap);

impl VmMemory {
    /// A region of zeros.
    ///
    /// # Errors
    /// When a policy is not the default, and when the host does not give the address space.
    pub fn new(policy: &Policy) -> Result<Self, Unfit> {
        if *policy != Policy::default() {
            let what = "vm-memory knows no absent pages, no limit and no wrapping; \
                        leave the policies at their defaults, or leave out peer-vm-memory";
            return Err(Unfit(what.to_owned()));
        }
        let refused = |why: &dyn std::fmt::Display| {
            Unfit(format!("vm-memory cannot reserve 2^{BITS} bytes: {why}"))
        };
        let bytes = 1usize.checked_shl(BITS).ok_or_else(|| refused(&"pointers are too short"))?;
        let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), bytes)]);
        memory.map(Self).map_err(|why| refused(&why))
    }

    #[inline]
    fn get<T: ByteValued>(&self, addr: u64) -> Result<T, Fault> {
        let bytes = size_of::<T>() as u64;
        self.0.read_obj(GuestAddress(addr)).map_err(|why| fault(&why, addr, bytes, Kind::Load))
    }

    #[inline]
    fn put<T: ByteValued>(&self, addr: u64, value: T) -> Result<(), Fault> {
        let bytes = size_of::<T>() as u64;
        let done = self.0.write_obj(value, GuestAddress(addr));
        done.map_err(|why| fault(&why, addr, bytes, Kind::Store))
    }
}

/// Everything that it refuses is an address that is not in the region.
#[cold]
fn fault(_: &GuestMemoryError, addr: u64, bytes: u64, kind: Kind) -> Fault {
    Fault::OutOfRange { addr, bytes, kind }
}

impl Memory for VmMemory {
    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        Ok(match N {
            1 => resized(self.get::<u8>(addr)?.to_le_bytes()),
            2 => resized(self.get::<u16>(addr)?.to_le_bytes()),
            4 => resized(self.get::<u32>(addr)?.to_le_bytes()),
            8 => resized(self.get::<u64>(addr)?.to_le_bytes()),
            _ => {
                let mut value = [0; N];
                self.read(addr, &mut value)?;
                value
            }
        })
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        match N {
            1 => self.put(addr, u8::from_le_bytes(resized(value))),
            2 => self.put(addr, u16::from_le_bytes(resized(value))),
            4 => self.put(addr, u32::from_le_bytes(resized(value))),
            8 => self.put(addr, u64::from_le_bytes(resized(value))),
            _ => self.write(addr, &value),
        }
    }

    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        let bytes = to.len() as u64;
        let done = self.0.read_slice(to, GuestAddress(addr));
        done.map_err(|why| fault(&why, addr, bytes, Kind::Load))
    }

    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        let bytes = from.len() as u64;
        let done = self.0.write_slice(from, GuestAddress(addr));
        done.map_err(|why| fault(&why, addr, bytes, Kind::Store))
    }
}
