//! Which pages of a program are walked to, seen by the accessed bits of its page table.
//!
//! The one idea: clear the bits, wait, count those that are set again
//! ([`pagelab_sys::memory::accessed`]). The shortest window is what going over the page table
//! takes. Longer ones follow in turns, so that the time between two walks to a page is seen as
//! well. One process of the program is looked at a time; a look stands for the CPU time that its
//! process had since the look before.
//!
//! A look costs the program a CPU, moments of its page table, and each page one dearer walk: so
//! looks may take a fiftieth of the time, and a fifth of a second more, without which a short
//! program with much memory would hardly be seen.

mod smaps;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use pagelab_record::{
    units::whole,
    walks::{Look, Looks, Walked},
};
use pagelab_sys::{
    machine::proc,
    memory::accessed::{clear_accessed, read_accessed},
    process::tree,
    time::{
        monotonic_raw_ns,
        usage::{self, process_cpu_ns},
    },
};

use self::smaps::Mapped;
use super::kind::Place;
use crate::stat::Stat;

/// So many times the shortest window are the others.
const FACTORS: [u64; 4] = [1, 3, 10, 30];
/// In which turn they come: the shortest says most.
const TURNS: [usize; 6] = [0, 1, 2, 0, 1, 3];
/// No window is longer, in nanoseconds.
const LONGEST_NS: u64 = 300_000_000;
/// Looks take one of so many parts of the time, and so many nanoseconds more.
const SHARE: u64 = 50;
const CREDIT_NS: u64 = 200_000_000;
/// So many times as long as a look took is nobody looked at in any case.
const REST: u64 = 5;
/// Nanoseconds before the first look, and at least between two.
const LEAST_NS: u64 = 5_000_000;
/// A part of the time so far that passes between two looks: a long program has not many more.
const PART: u64 = 60;

/// Somebody who looks, in a thread of its own.
#[derive(Debug)]
pub struct Sampler {
    /// Nothing is ever sent: when it is gone, the looking ends.
    stop: Sender<()>,
    thread: io::Result<JoinHandle<Result<Looks, String>>>,
}

impl Sampler {
    /// Looks at a process, and at all that it starts where somebody asks for them.
    pub fn of(pid: u32, with_children: bool) -> Self {
        let (stop, stopped) = mpsc::channel();
        let sleep = move |ns: u64| {
            let told = stopped.recv_timeout(Duration::from_nanos(ns));
            matches!(told, Err(RecvTimeoutError::Timeout))
        };
        let looks = move || Looking::new(pid, with_children).until_stopped(&sleep);
        let thread = thread::Builder::new().spawn(looks);
        Self { stop, thread }
    }

    /// What was seen, or why nothing was.
    ///
    /// # Errors
    /// When the process is not this user's, or the kernel has no such bits.
    pub fn close(self) -> Result<Looks, String> {
        // Whoever asks from now on is told.
        drop(self.stop);
        let thread = self.thread.map_err(|error| format!("no thread to look with: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("whoever looked has failed".to_owned()))
    }
}

#[derive(Debug)]
struct Looking {
    pid: u32,
    with_children: bool,
    begun_ns: u64,
    /// How much longer reading takes than clearing.
    reads: f64,
    text: Vec<u8>,
    /// By the places of the table of places.
    taken: Vec<Look>,
    /// What each process had had on the CPU at the look before.
    had_ns: BTreeMap<u32, u64>,
    places: BTreeSet<Place>,
    refused: Option<io::Error>,
}

impl Looking {
    fn new(pid: u32, with_children: bool) -> Self {
        Self {
            pid,
            with_children,
            begun_ns: monotonic_raw_ns(),
            reads: 2.0,
            text: Vec::new(),
            taken: Vec::new(),
            // Of a process that runs already, what it did before is no concern of ours.
            had_ns: if with_children {
                BTreeMap::new()
            } else {
                process_cpu_ns(pid).map(|ns| (pid, ns)).into_iter().collect()
            },
            places: BTreeSet::new(),
            refused: None,
        }
    }

    /// Looks again and again; `sleep` says whether to go on.
    fn until_stopped(mut self, sleep: &dyn Fn(u64) -> bool) -> Result<Looks, String> {
        let mut rest = LEAST_NS;
        let mut turn = 0;
        let mut spent_ns = 0;
        while sleep(rest) {
            let before = usage::thread();
            let mut all = vec![self.pid];
            if self.with_children {
                all.extend(tree::below(self.pid));
            }
            let pid = all[turn % all.len()];
            let level = TURNS[turn / all.len() % TURNS.len()];
            turn += 1;
            // Whoever has just ended is not refused.
            if let Err(error) = self.look(pid, level, sleep)
                && pid == self.pid
                && fs::exists(format!("/proc/{pid}")).unwrap_or(false)
                && error.raw_os_error() != Some(ESRCH)
            {
                self.refused.get_or_insert(error);
            }
            let spent = usage::thread().since(before);
            let (look_ns, gone_ns) =
                (spent.user_ns + spent.system_ns, monotonic_raw_ns() - self.begun_ns);
            spent_ns += look_ns;
            // Until one more of its kind is paid for.
            let owed = (spent_ns + look_ns).saturating_sub(CREDIT_NS).saturating_mul(SHARE);
            let least = LEAST_NS.max(look_ns.saturating_mul(REST)).max(gone_ns / PART);
            rest = owed.saturating_sub(gone_ns).max(least);
        }
        self.finish()
    }

    /// One look.
    fn look(&mut self, pid: u32, level: usize, sleep: &dyn Fn(u64) -> bool) -> io::Result<()> {
        let cpu_ns = || process_cpu_ns(pid).unwrap_or(0);
        let before = (Stat::of(pid).unwrap_or_default(), shared_pages(pid));
        let mut cpu = [cpu_ns(); 4];
        let cleared = clear_accessed(pid)?;
        cpu[1] = cpu_ns();
        let shortest = (cleared.took_ns() as f64 * (1.0 + self.reads) / 2.0).max(1.0);
        let wait = whole(shortest).saturating_mul(FACTORS[level] - 1).min(LONGEST_NS);
        if wait > 0 && !sleep(wait) {
            return Ok(());
        }
        cpu[2] = cpu_ns();
        let read = read_accessed(pid, &mut self.text)?;
        cpu[3] = cpu_ns();
        let after = (Stat::of(pid).unwrap_or_default(), shared_pages(pid));
        self.reads = read.took_ns() as f64 / cleared.took_ns().max(1) as f64;
        let window_ns = cleared.until(read);
        let mut seen = smaps::seen(&String::from_utf8_lossy(&self.text));
        // What came meanwhile was marked by its fault.
        let (faults, files) =
            (after.0.faults.0.saturating_sub(before.0.faults.0), after.1.saturating_sub(before.1));
        subtract(&mut seen, files, is_file);
        subtract(&mut seen, faults, |place| !is_file(place));
        if window_ns > 0 && !seen.is_empty() {
            self.places.extend(seen.iter().filter(|(_, m)| m.walked.most > 0).map(|(p, _)| *p));
            let had_ns = self.had_ns.insert(pid, cpu[3]).unwrap_or(0);
            let mut walked = vec![Walked::default(); Place::WORDS.len()];
            for (place, mapped) in &seen {
                walked[*place as usize] = mapped.walked;
            }
            self.taken.push(Look {
                stands_ns: cpu[3].saturating_sub(had_ns),
                level: level as u64,
                window_ns,
                cpu_ns: u64::midpoint(cpu[2], cpu[3]).saturating_sub(u64::midpoint(cpu[0], cpu[1])),
                resident: seen.iter().map(|(_, mapped)| mapped.resident).sum(),
                walked,
            });
        }
        Ok(())
    }

    fn finish(self) -> Result<Looks, String> {
        let Self { taken, places, refused, .. } = self;
        if let (true, Some(error)) = (taken.is_empty(), refused) {
            return Err(error.to_string());
        }
        let of_places = |look: Look| Look {
            walked: places.iter().map(|place| look.walked[*place as usize]).collect(),
            ..look
        };
        Ok(Looks {
            looks: taken.into_iter().map(of_places).collect(),
            places: places.iter().map(|place| place.name().to_owned()).collect(),
        })
    }
}

/// `ESRCH`: there is no such process any more.
const ESRCH: i32 = 3;

fn is_file(place: Place) -> bool {
    matches!(place, Place::PrivateFile | Place::SharedFile | Place::Shmem)
}

/// Takes so many pages off what was seen in some places, from each in proportion.
fn subtract(seen: &mut [(Place, Mapped)], pages: u64, is_it: impl Fn(Place) -> bool) {
    let mine = || seen.iter().filter(|(place, _)| is_it(*place));
    let all: u64 = mine().map(|(_, mapped)| mapped.walked.least).sum();
    if pages == 0 || all == 0 {
        return;
    }
    let left = |count: u64| {
        let off = u128::from(count) * u128::from(pages) / u128::from(all);
        count.saturating_sub(u64::try_from(off).unwrap_or(u64::MAX))
    };
    for (_, mapped) in seen.iter_mut().filter(|(place, _)| is_it(*place)) {
        let Walked { least, most, whole } = mapped.walked;
        let unknown = most.saturating_sub(least);
        mapped.walked =
            Walked { least: left(least), most: left(least) + unknown, whole: left(whole) };
    }
}

/// Pages of files and of shared memory that a process has, as the kernel counts them all the time.
fn shared_pages(pid: u32) -> u64 {
    let text = proc::text(pid, "statm").unwrap_or_default();
    text.split_whitespace().nth(2).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn walked(least: u64) -> Walked {
        Walked { least, most: least + 10, whole: least / 2 }
    }

    #[test]
    fn what_came_meanwhile_is_taken_off_in_proportion_and_never_below_nothing() {
        let mapped = |least| Mapped { resident: 1000, walked: walked(least) };
        let mut seen = vec![
            (Place::Heap, mapped(100)),
            (Place::Anonymous, mapped(300)),
            (Place::PrivateFile, mapped(50)),
        ];
        subtract(&mut seen, 200, |place| !is_file(place));
        let least: Vec<u64> = seen.iter().map(|(_, mapped)| mapped.walked.least).collect();
        assert_eq!(least, [50, 150, 50]);
        assert_eq!(seen[0].1.walked, Walked { least: 50, most: 60, whole: 25 });
        subtract(&mut seen, u64::MAX, |_| true);
        assert!(seen.iter().all(|(_, mapped)| mapped.walked.least == 0));
    }

    #[test]
    fn only_places_that_were_walked_to_are_told() {
        let mut looking = Looking::new(u32::MAX, true);
        let mut all = vec![Walked::default(); Place::WORDS.len()];
        all[Place::Heap as usize] = walked(4);
        looking.places = BTreeSet::from([Place::Heap]);
        looking.taken.push(Look { walked: all, ..Look::default() });
        let looks = looking.finish().unwrap();
        assert_eq!(
            (looks.places, &*looks.looks[0].walked),
            (vec!["heap".to_owned()], &[walked(4)][..])
        );
    }

    #[test]
    fn a_process_that_is_not_there_was_not_looked_at() {
        let left = Cell::new(3);
        let goes_on = |_| left.replace(left.get() - 1) > 0;
        let looked = Looking::new(u32::MAX, false).until_stopped(&goes_on);
        assert_eq!((looked, left.get()), (Ok(Looks::default()), -1), "gone, not refused");
        // Whatever it came to until it is told.
        assert_eq!(Sampler::of(u32::MAX, false).close(), Ok(Looks::default()));
    }

    #[test]
    fn this_process_is_looked_at_where_the_kernel_has_such_bits() {
        if clear_accessed(std::process::id()).is_err() {
            return;
        }
        let left = Cell::new(20);
        let goes_on = |_| left.replace(left.get() - 1) > 1;
        let looks = Looking::new(std::process::id(), false).until_stopped(&goes_on).unwrap();
        assert!(looks.looks.iter().all(|look| look.window_ns > 0 && look.resident > 0));
        assert!(!looks.looks.is_empty());
    }
}
