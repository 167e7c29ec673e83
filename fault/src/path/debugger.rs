//! Windows that a debugger steps through: another witness of how long they are.
//!
//! The one idea: QEMU's stub for gdb executes one instruction and says where the next one lies; it
//! shares nothing with the plugin, which is not even there. The windows are in the middle of those
//! that an earlier boot knows, found again by the address that they begin at and by how often that
//! was come by. A boot differs from another in how full the kernel's batches are by then (it reads
//! a clock and random numbers), so that one window may be longer by a batch that is due: several
//! are stepped through, and what most of them take counts. The protocol goes over stdin and
//! stdout of the emulator ("Remote Protocol" in the manual of GDB); interrupts stay out while it
//! steps (`sstep` in QEMU's "GDB usage").

use std::{
    io::{self, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout},
};

use super::{
    fold::most_often,
    follow::{Folded, follow},
    log::Log,
};

/// Addresses of the kernel begin here.
const KERNEL: u64 = 1 << 63;
/// Steps at most: a window that is never left.
const STEPS_MAX: u64 = 1 << 24;
/// Windows that are stepped through, where the boot knows as many.
const WINDOWS: usize = 3;
/// The number of the program counter among the registers of x86-64.
const PC: &str = "p10";

/// Which windows are stepped through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The first instruction of each, and what lies behind its last.
    from: u64,
    to: u64,
    /// How many windows begin there, up to the first of them.
    nth: usize,
    /// How many they are.
    windows: usize,
    /// What the plugin counted of that one.
    pub(super) counted: Steps,
}

/// Instructions of the kernel and of the program.
pub(super) type Steps = [u64; 2];

impl Target {
    /// From the window in the middle of those that took the path that most took, and no interrupt.
    pub(super) fn of(log: &Log, arm: &str, mode: &Folded) -> Option<Self> {
        let plain = |path: usize| {
            let folded = follow(&log.paths[path], &log.symbols);
            folded.total == mode.total && folded.interrupted.instructions == 0
        };
        let places: Vec<usize> =
            log.samples(arm).filter(|one| plain(one.path)).map(|one| one.place).collect();
        let place = *places.get(places.len() / 2)?;
        let runs = &log.paths[log.windows[place]];
        let folded = follow(runs, &log.symbols);
        let (first, last) = (runs.first()?, runs.last()?);
        let begins =
            |path: &&usize| log.paths[**path].first().is_some_and(|run| run.start == first.start);
        let counted = [folded.total.instructions, folded.user.instructions];
        let nth = log.windows[..=place].iter().filter(begins).count();
        let windows = log.windows[place..].iter().filter(begins).count().min(WINDOWS);
        let to = last.start.wrapping_add(last.bytes);
        Some(Self { from: first.start, to, nth, windows, counted })
    }
}

/// The stub of an emulator that has not begun.
#[derive(Debug)]
pub(super) struct Debugger<W, R> {
    to: W,
    from: R,
}

impl Debugger<ChildStdin, BufReader<ChildStdout>> {
    /// That of a child whose stdin and stdout are pipes.
    pub(super) fn of(child: &mut Child) -> Option<Self> {
        Some(Self { to: child.stdin.take()?, from: BufReader::new(child.stdout.take()?) })
    }
}

impl<W: Write, R: Read> Debugger<W, R> {
    /// Lets the machine run up to the windows, and steps through them: what most of them take.
    ///
    /// # Errors
    /// When the emulator ends before, or says what was not asked.
    pub(super) fn step(mut self, target: &Target) -> io::Result<Steps> {
        // It stops itself where it waits for its orders.
        self.ask("c")?;
        for hit in 0..target.nth {
            if hit > 0 {
                // A machine that goes on from a breakpoint would meet it again.
                self.ask("s")?;
            }
            self.run_to(target.from)?;
        }
        let mut all = vec![self.through(target)?];
        for _ in 1..target.windows {
            self.run_to(target.from)?;
            all.push(self.through(target)?);
        }
        Ok(most_often(all.into_iter()).expect("one was stepped through"))
    }

    /// Has the machine go on until its next instruction is this one.
    fn run_to(&mut self, address: u64) -> io::Result<()> {
        self.ask(&format!("Z0,{address:x},1"))?;
        self.ask("c")?;
        let at = self.pc()?;
        if at != address {
            return Err(io::Error::other(format!("it stopped at {at:#x}")));
        }
        self.ask(&format!("z0,{address:x},1"))?;
        Ok(())
    }

    /// Steps through the window that begins here.
    fn through(&mut self, target: &Target) -> io::Result<Steps> {
        let (mut steps, mut before) = ([0; 2], None);
        let mut at = target.from;
        for _ in 0..STEPS_MAX {
            // The next piece of a string: the processor has one instruction.
            if before.replace(at) != Some(at) {
                steps[usize::from(at < KERNEL)] += 1;
            }
            self.ask("s")?;
            at = self.pc()?;
            if at == target.to {
                return Ok(steps);
            }
        }
        Err(io::Error::other("the window was never left"))
    }

    fn pc(&mut self) -> io::Result<u64> {
        let said = self.ask(PC)?;
        let value = u64::from_str_radix(&said, 16).ok().filter(|_| said.len() == 16);
        // In the order of the machine's bytes.
        value.map(u64::swap_bytes).ok_or_else(|| io::Error::other(format!("{PC}: {said}")))
    }

    /// Asks, and waits for the answer.
    fn ask(&mut self, what: &str) -> io::Result<String> {
        self.send(what)?;
        let said = self.hear()?;
        // An error, an end, or what the stub does not know.
        if said.is_empty() || said.starts_with(['E', 'W', 'X']) {
            return Err(io::Error::other(format!("{what}: {said}")));
        }
        Ok(said)
    }

    fn send(&mut self, what: &str) -> io::Result<()> {
        let sum = what.bytes().fold(0_u8, u8::wrapping_add);
        self.to.write_all(format!("${what}#{sum:02x}").as_bytes())?;
        self.to.flush()
    }

    /// The next packet; what lies before it are acknowledgements.
    fn hear(&mut self) -> io::Result<String> {
        let (mut packet, mut is_open) = (String::new(), false);
        loop {
            let mut byte = [0];
            self.from.read_exact(&mut byte)?;
            match byte[0] {
                b'$' => (packet, is_open) = (String::new(), true),
                b'#' if is_open => break,
                byte if is_open => packet.push(char::from(byte)),
                _ => (),
            }
        }
        self.from.read_exact(&mut [0; 2])?;
        self.to.write_all(b"+")?;
        self.to.flush()?;
        Ok(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stepped(answers: &[String], target: &Target) -> (io::Result<Steps>, String) {
        let mut asked = Vec::new();
        let said = answers.iter().fold("+".to_owned(), |said, one| said + "$" + one + "#00");
        let debugger = Debugger { to: &mut asked, from: said.as_bytes() };
        let steps = debugger.step(target);
        (steps, String::from_utf8(asked).unwrap())
    }

    fn at(address: u64) -> String {
        format!("{:016x}", address.swap_bytes())
    }

    #[test]
    fn most_windows_count_by_whose_steps_they_are_and_a_string_is_one() {
        let target = Target { from: 16, to: 32, nth: 2, windows: 3, counted: [0; 2] };
        let ok = || "OK".to_owned();
        let stop = || "T05thread:01;".to_owned();
        let hit = [ok(), stop(), at(16), ok()];
        let through = |steps: &[u64]| -> Vec<String> {
            steps.iter().chain(&[32]).flat_map(|address| [stop(), at(*address)]).collect()
        };
        let string = [KERNEL, KERNEL + 1, KERNEL + 1, KERNEL + 1, KERNEL + 3, 16, 20];
        let batch = [KERNEL, KERNEL + 1, KERNEL + 3, KERNEL + 5, KERNEL + 7, 16, 20];
        let mut answers = vec![stop()];
        answers.extend(hit.clone());
        answers.push(stop());
        for steps in [&batch, &string, &string] {
            answers.extend(hit.clone());
            answers.extend(through(steps));
        }
        let (steps, asked) = stepped(&answers, &target);
        assert_eq!(steps.unwrap(), [3, 3]);
        assert_eq!(asked.matches("$Z0,10,1#").count(), 4);
        assert!(asked.starts_with("$c#63+$Z0,10,1#74+$c"), "{asked}");
    }

    #[test]
    fn an_emulator_that_ends_or_stops_elsewhere_is_an_error() {
        let target = Target { from: 16, to: 32, nth: 1, windows: 1, counted: [0; 2] };
        let (ok, stop) = (|| "OK".to_owned(), || "T05".to_owned());
        for (answers, why) in [
            (vec!["W00".to_owned()], "c: W00"),
            (vec![stop(), ok(), stop(), at(8)], "stopped at 0x8"),
            (vec![stop(), ok(), stop(), "xx".to_owned()], "p10: xx"),
            (vec![stop(), ok()], "fill whole buffer"),
        ] {
            let error = stepped(&answers, &target).0.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
