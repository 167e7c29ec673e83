//! The kernel's bitmap of idle page frames: loads and stores, of any process.
//!
//! The one idea: a bit that is set stays set until somebody reads or writes the page
//! (`/sys/kernel/mm/page_idle/bitmap`, Linux 4.3, `CONFIG_IDLE_PAGE_TRACKING`). A pass reads the
//! bits of all frames of the process and sets them again. Of a large folio only the first frame
//! has one, so it is hot or idle as a whole. No kernel of the lane has the file: it was read as a
//! fake one only.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use pagelab_sys::{
    machine::{Tree, rights::is_root},
    memory::{Stretch, Walk, frames},
};

use super::{Lack, Pages};
use crate::{PAGE, target::Refused};

const FILE: &str = "sys/kernel/mm/page_idle/bitmap";

/// The bitmap: words of 64 frames, which are read and written whole.
#[derive(Debug)]
pub struct Bitmap(File);

impl Bitmap {
    /// # Errors
    /// When it cannot be opened for both.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().read(true).write(true).open(path)?))
    }

    /// Whether each of these frames was used since it was marked; one that the bitmap does not
    /// reach was. Frames near each other, in rising order, share a call.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn used(&self, frames: &[u64]) -> io::Result<Vec<bool>> {
        let mut word: Option<(u64, u64)> = None;
        let mut found = Vec::with_capacity(frames.len());
        for frame in frames {
            let at = frame / 64;
            let bits = match word {
                Some((known, bits)) if known == at => bits,
                _ => self.word(at)?,
            };
            word = Some((at, bits));
            found.push(bits & (1 << (frame % 64)) == 0);
        }
        Ok(found)
    }

    fn word(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let Some(offset) = at.checked_mul(8) else { return Ok(0) };
        match self.0.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(u64::from_ne_bytes(bytes)),
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            // Beyond the last frame.
            Err(why) if matches!(why.raw_os_error(), Some(6 | 22)) => Ok(0),
            Err(why) => Err(why),
        }
    }

    /// Marks frames as idle: the kernel passes over bits that are 0.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn mark(&self, frames: &[u64]) -> io::Result<()> {
        for some in frames.chunk_by(|left, right| left / 64 == right / 64) {
            let bits = some.iter().fold(0_u64, |bits, frame| bits | 1 << (frame % 64));
            let Some(offset) = (some[0] / 64).checked_mul(8) else { continue };
            match self.0.write_all_at(&bits.to_ne_bytes(), offset) {
                Err(why) if !matches!(why.raw_os_error(), Some(6 | 22)) => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Idle {
    pid: u32,
    path: PathBuf,
    is_armed: bool,
}

pub(super) fn probe(tree: &Tree) -> Result<(), Lack> {
    if tree.bytes("sys/kernel/mm/page_idle").is_none() && !tree.path(FILE).exists() {
        let cure = "a kernel with CONFIG_IDLE_PAGE_TRACKING";
        return Err(Lack::new("the kernel does not track idle pages", cure));
    }
    is_root().then_some(()).ok_or_else(|| Lack::new("page frames are shown to root", "sudo"))
}

pub(super) fn open(tree: &Tree, pid: u32) -> Box<dyn Pages> {
    Box::new(Idle { pid, path: tree.path(FILE), is_armed: false })
}

impl Pages for Idle {
    fn pass(
        &mut self,
        mappings: &[Range<u64>],
        found: &mut dyn FnMut(Stretch),
    ) -> Result<(), Refused> {
        let refused = |why| Refused::of(self.pid, why);
        let bitmap =
            Bitmap::open(&self.path).map_err(|why| Refused::Other { pid: self.pid, why })?;
        let mut walk = Walk::of(self.pid).map_err(refused)?;
        for range in mappings {
            let mut stretches = Vec::new();
            walk.each(range.clone(), &mut |stretch| stretches.push(stretch)).map_err(refused)?;
            for stretch in stretches {
                let mut pages: Vec<(u64, u64)> = Vec::new();
                let step = if stretch.huge { HUGE } else { PAGE };
                frames(self.pid, stretch.start..stretch.end, &mut |address, frame| {
                    if (address - stretch.start).is_multiple_of(step) && frame != 0 {
                        pages.push((address, frame));
                    }
                })
                .map_err(refused)?;
                let numbers: Vec<u64> = pages.iter().map(|(_, frame)| *frame).collect();
                let used = bitmap.used(&numbers).map_err(refused)?;
                bitmap.mark(&numbers).map_err(refused)?;
                for ((start, _), used) in pages.into_iter().zip(used) {
                    let end = (start + step).min(stretch.end);
                    found(Stretch { start, end, written: used && self.is_armed, ..stretch });
                }
            }
        }
        self.is_armed = true;
        Ok(())
    }
}

const HUGE: u64 = 2 << 20;

#[cfg(test)]
mod tests {
    use pagelab_sys::time::monotonic_raw_ns;
    use proptest::prelude::*;

    use super::*;

    fn file(words: &[u64]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn a_frame_is_used_where_its_bit_is_gone() {
        let (_folder, path) = file(&[0b1010, 0, u64::MAX]);
        let bitmap = Bitmap::open(&path).unwrap();
        let used = bitmap.used(&[0, 1, 2, 3, 64, 128, 191, 1 << 60, u64::MAX]).unwrap();
        assert_eq!(used, [true, false, true, false, true, false, false, true, true]);
        bitmap.mark(&[64, 66, 127, 0]).unwrap();
        let words = std::fs::read(&path).unwrap();
        let words: Vec<u64> = words.as_chunks().0.iter().map(|w| u64::from_ne_bytes(*w)).collect();
        assert_eq!(words[1], 1 | 4 | 1 << 63);
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_process_is_read_through_a_file_of_the_tree() {
        let (folder, _path) = file(&[0; 16]);
        let tree = Tree::at(folder.path());
        if probe(&tree).is_err() {
            return eprintln!("skipped: page frames are not shown; to run it: sudo");
        }
        let memory = std::hint::black_box(vec![1_u8; 5 << 12]);
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let mut source = open(&tree, std::process::id());
        let (mut whole, end) = (0, monotonic_raw_ns() + 600_000_000_000);
        for look in 0.. {
            let mut pages = 0;
            let range = start..start + 4 * PAGE;
            source
                .pass(std::slice::from_ref(&range), &mut |stretch| {
                    pages += (stretch.end - stretch.start) / PAGE;
                    // What a file of zeroes says after frames were marked in it is up to the frame.
                    assert!(look > 0 || !stretch.written, "nothing is known at first");
                })
                .unwrap();
            // One that the kernel moves at the moment is not there.
            assert!(pages <= 4 && monotonic_raw_ns() < end, "{pages}");
            whole += u32::from(pages == 4);
            if whole == 2 {
                break;
            }
        }
        assert!(probe(&Tree::at("/nowhere")).is_err());
    }

    proptest! {
        #[test]
        fn no_bitmap_and_no_frame_makes_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            frames in prop::collection::vec(any::<u64>(), 0..32),
        ) {
            let (_folder, path) = file(&[]);
            std::fs::write(&path, bytes).unwrap();
            let bitmap = Bitmap::open(&path).unwrap();
            prop_assert_eq!(bitmap.used(&frames).unwrap().len(), frames.len());
        }
    }
}
