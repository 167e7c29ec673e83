#![expect(unsafe_code, reason = "functions of the process that loads us; rules below")]
//! The part of QEMU's plugin interface that is used here, found by name when the plugin is loaded.
//!
//! The one idea: no header and no import. Distributions do not ship `qemu-plugin.h`, and a symbol
//! that is looked up can be missing, which is then a sentence and not a linker's error. What is
//! declared has not changed from version 1 of the interface (QEMU 7.2) to version 5 (QEMU 10.2).
//!
//! # Rules
//! 1. A function has the type that QEMU's header gives its name.
//! 2. A [`Block`] or an [`Insn`] comes from QEMU, and is not kept beyond the callback it came in.
//! 3. `GLib` made the array and QEMU filled it: it is valid, and its data are `len` bytes, until it
//!    is freed.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// A block that is being translated.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block(*const c_void);

/// An instruction of a block that is being translated.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Insn(*const c_void);

/// What QEMU says of itself when it loads a plugin.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Info {
    /// Such as `riscv64`.
    pub(crate) target: *const c_char,
    /// The oldest version of the interface that this QEMU serves, and its own.
    pub(crate) version: [c_int; 2],
    /// Whether a machine is emulated, not a process.
    pub(crate) is_system: bool,
    /// Processors that a machine begins with, and may have at most.
    pub(crate) vcpus: [c_int; 2],
}

/// A `GByteArray` of `GLib`: what QEMU reads guest memory into.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Bytes {
    data: *mut u8,
    len: c_uint,
}

/// Called when a block has been translated.
pub(crate) type Translated = extern "C" fn(u64, Block);
/// Called before an instruction is executed.
pub(crate) type Executed = extern "C" fn(c_uint, *mut c_void);
/// Called after an access: vCPU, description, guest address, whatever was registered.
pub(crate) type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);
/// Called when the guest exits.
pub(crate) type Exited = extern "C" fn(u64, *mut c_void);
/// Called when every callback is gone and nothing is translated any more.
pub(crate) type Forgotten = extern "C" fn(u64);

/// A callback does not look at registers.
const NO_REGISTERS: c_int = 0;

/// A callback is for reads and for writes.
///
/// To ask for one kind is not possible: QEMU 7.2 calls who asked for writes after reads too, and
/// who asked for reads after writes only.
const READS_AND_WRITES: c_int = 3;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    /// How many bytes it moves.
    pub(crate) bytes: usize,
    /// Whether it reads.
    pub(crate) reads: bool,
    /// Whether it writes; an atomic access that does both is one access.
    pub(crate) writes: bool,
}

macro_rules! api {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $symbol:literal, $type:ty;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name {
            $($field: $type,)*
        }

        impl $name {
            /// Looks them up in the running process.
            ///
            /// # Errors
            /// When one is missing: which.
            pub(crate) fn of_this_process() -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let missing = || {
                            format!("this QEMU has no {}", $symbol.to_string_lossy())
                        };
                        let address = function($symbol).ok_or_else(missing)?;
                        // SAFETY: rule 1; the address is not null.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
                    },)*
                })
            }
        }
    };
}

api! {
    /// Functions of every QEMU that loads plugins.
    Api {
    translated: c"qemu_plugin_register_vcpu_tb_trans_cb", extern "C" fn(u64, Translated);
    executed: c"qemu_plugin_register_vcpu_insn_exec_cb",
        extern "C" fn(Insn, Executed, c_int, *mut c_void);
    accessed: c"qemu_plugin_register_vcpu_mem_cb",
        extern "C" fn(Insn, Accessed, c_int, c_int, *mut c_void);
    exited: c"qemu_plugin_register_atexit_cb", extern "C" fn(u64, Exited, *mut c_void);
    block_insns: c"qemu_plugin_tb_n_insns", extern "C" fn(Block) -> usize;
    block_insn: c"qemu_plugin_tb_get_insn", extern "C" fn(Block, usize) -> Insn;
    insn_address: c"qemu_plugin_insn_vaddr", extern "C" fn(Insn) -> u64;
    insn_bytes: c"qemu_plugin_insn_size", extern "C" fn(Insn) -> usize;
    access_shift: c"qemu_plugin_mem_size_shift", extern "C" fn(u32) -> c_uint;
    access_stores: c"qemu_plugin_mem_is_store", extern "C" fn(u32) -> bool;
    }
}

api! {
    /// What is asked of a whole machine beside: since QEMU 9.2.
    Whole {
        forget: c"qemu_plugin_reset", extern "C" fn(u64, Forgotten);
        insn_data: c"qemu_plugin_insn_data", extern "C" fn(Insn, *mut u8, usize) -> usize;
        read_memory: c"qemu_plugin_read_memory_vaddr",
            extern "C" fn(u64, *mut Bytes, usize) -> bool;
        new_bytes: c"g_byte_array_new", extern "C" fn() -> *mut Bytes;
        free_bytes: c"g_byte_array_free", extern "C" fn(*mut Bytes, c_int) -> *mut u8;
    }
}

impl Whole {
    /// Takes every callback away, has everything translated anew, and calls back in between.
    pub(crate) fn forget(&self, id: u64, call: Forgotten) {
        (self.forget)(id, call);
    }

    /// The bytes of an instruction that is being translated; x86 has no more than 15.
    pub(crate) fn code(&self, insn: Insn) -> ([u8; 15], usize) {
        let mut code = [0; 15];
        let length = (self.insn_data)(insn, code.as_mut_ptr(), code.len());
        (code, length.min(code.len()))
    }

    /// What lies at an address of the processor that runs the callback.
    pub(crate) fn memory(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let bytes = (self.new_bytes)();
        let is_read = (self.read_memory)(at, bytes, length);
        // SAFETY: rule 3.
        let Bytes { data, len } = unsafe { bytes.read() };
        let copied = if is_read && len as usize == length && !data.is_null() {
            // SAFETY: rule 3.
            Some(unsafe { std::slice::from_raw_parts(data, length) }.to_vec())
        } else {
            None
        };
        (self.free_bytes)(bytes, 1);
        copied
    }
}

impl Api {
    /// Asks to be called for every block that is translated, and when the guest exits.
    pub(crate) fn register(&self, id: u64, translated: Translated, exited: Exited) {
        (self.translated)(id, translated);
        (self.exited)(id, exited, std::ptr::null_mut());
    }

    /// The instructions of a block.
    pub(crate) fn insns(self, block: Block) -> impl Iterator<Item = Insn> {
        (0..(self.block_insns)(block)).map(move |index| (self.block_insn)(block, index))
    }

    /// Where an instruction is, and how many bytes it has.
    pub(crate) fn place(&self, insn: Insn) -> (u64, usize) {
        ((self.insn_address)(insn), (self.insn_bytes)(insn))
    }

    /// Asks to be called before each execution of an instruction.
    pub(crate) fn on_execution(&self, insn: Insn, call: Executed, with: *mut c_void) {
        (self.executed)(insn, call, NO_REGISTERS, with);
    }

    /// Asks to be called after each access of an instruction.
    pub(crate) fn on_access(&self, insn: Insn, call: Accessed, with: *mut c_void) {
        (self.accessed)(insn, call, NO_REGISTERS, READS_AND_WRITES, with);
    }

    /// What an access does, from its description.
    #[inline]
    pub(crate) fn effect(&self, info: u32) -> Effect {
        let writes = (self.access_stores)(info);
        let reads = !writes || reads_too(info);
        Effect { bytes: 1 << (self.access_shift)(info), reads, writes }
    }
}

/// Whether an access that writes reads as well.
///
/// The interface cannot tell. In QEMU 7.2 and 10.0 the description has the answer in bits 16 and
/// 17, 2 for a write and 3 for both; should that change, atomic accesses are writes only.
#[inline]
const fn reads_too(info: u32) -> bool {
    info >> 16 & 3 == 3
}

/// A function of this process by name.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: only looks a name up; the name ends with its zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// The version of the interface to claim: QEMU 9 and newer refuse a plugin that says 1, older ones
/// one that says 2, and nothing that is used here differs between them.
///
/// QEMU reads the version before it calls anything, so this is asked by a constructor. The function
/// that it looks for was removed by version 2.
pub(crate) fn version_served() -> c_int {
    if function(c"qemu_plugin_n_vcpus").is_some() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_access_reads_and_writes() {
        assert!(reads_too(0x0003_0013));
        assert!(!reads_too(0x0002_0013));
        assert!(!reads_too(0x0001_0013));
    }

    #[test]
    fn outside_of_qemu_the_first_missing_function_is_named() {
        let error = Api::of_this_process().unwrap_err();
        assert_eq!(error, "this QEMU has no qemu_plugin_register_vcpu_tb_trans_cb");
        assert_eq!(version_served(), 2);
    }
}
