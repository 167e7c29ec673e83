//! A log that is kept in memory, for whoever reads it when the program has ended.

use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
};

/// Bytes of it, at most.
const MOST: usize = 1 << 30;

/// What was written so far; whoever writes has a copy of it.
#[derive(Debug, Clone, Default)]
pub(in crate::commands) struct Kept(Rc<RefCell<Vec<u8>>>);

impl Kept {
    /// All of it.
    pub(in crate::commands) fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.borrow_mut();
        if kept.len() + bytes.len() > MOST {
            return Err(io::Error::other("what was seen takes 1 GiB: choose a longer --interval"));
        }
        kept.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
