//! What the emulator is told while its machine waits: to save it, to load it, to let it go on.
//!
//! The one idea: the machine stops itself, at one instruction, and nothing here is a matter of
//! time: each step waits for the word of the emulator that the one before is done. The protocol is
//! QMP ("QEMU QMP Reference Manual"), over stdin and stdout of the emulator.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read as _, Write},
    process::{Child, ChildStdin, ChildStdout},
};

use serde_json::{Value, json};

/// Bytes of a message, which is a line, at most.
const MESSAGE_MAX: u64 = 1 << 20;

/// The monitor of an emulator that has just been started.
#[derive(Debug)]
pub(super) struct Monitor<W, R> {
    to: W,
    from: R,
    /// Heard while an answer was awaited.
    events: VecDeque<Value>,
}

impl Monitor<ChildStdin, BufReader<ChildStdout>> {
    /// That of a child whose stdin and stdout are pipes.
    pub(super) fn of(child: &mut Child) -> Option<Self> {
        Some(Self::new(child.stdin.take()?, BufReader::new(child.stdout.take()?)))
    }
}

impl<W: Write, R: BufRead> Monitor<W, R> {
    fn new(to: W, from: R) -> Self {
        Self { to, from, events: VecDeque::new() }
    }

    /// Takes up the conversation. Nothing else is understood before.
    ///
    /// # Errors
    /// When the emulator ends, or does not understand.
    pub(super) fn greet(&mut self) -> io::Result<()> {
        self.ask("qmp_capabilities", &json!({}))?;
        let events = json!([{ "capability": "events", "state": true }]);
        self.ask("migrate-set-capabilities", &json!({ "capabilities": events })).map(drop)
    }

    /// Waits until the machine has stopped itself.
    ///
    /// # Errors
    /// When it ends before.
    pub(super) fn await_stop(&mut self) -> io::Result<()> {
        while self.event()?["event"] != "STOP" {}
        Ok(())
    }

    /// Saves the machine in a file.
    ///
    /// # Errors
    /// What the emulator says, which goes on being there.
    pub(super) fn save(&mut self, path: &str) -> io::Result<()> {
        self.migrate("migrate", path)
    }

    /// Has a machine that was started to be loaded (`-incoming defer`) be what is in a file.
    ///
    /// # Errors
    /// What the emulator says; as a rule it ends.
    pub(super) fn load(&mut self, path: &str) -> io::Result<()> {
        self.migrate("migrate-incoming", path)
    }

    fn migrate(&mut self, command: &str, path: &str) -> io::Result<()> {
        self.ask(command, &json!({ "uri": format!("file:{path}") }))?;
        loop {
            let event = self.event()?;
            match event["data"]["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => {
                    // One that could not load is about to end.
                    let told = self.ask("query-migrate", &json!({})).unwrap_or_default();
                    let why = told["error-desc"].as_str().unwrap_or("no reason");
                    return Err(io::Error::other(format!("{command}: {why}")));
                }
                _ => (),
            }
        }
    }

    /// Lets the machine go on, and waits until the emulator has no more to say. A kernel that stops
    /// it again has a driver of the device by which it stopped itself, and has panicked: that is
    /// its end, too.
    ///
    /// # Errors
    /// When it cannot go on.
    pub(super) fn go_on(mut self) -> io::Result<()> {
        self.ask("cont", &json!({}))?;
        if self.await_stop().is_ok() {
            self.ask("quit", &json!({}))?;
        }
        Ok(())
    }

    /// What the emulator returns.
    fn ask(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let asked = json!({ "execute": command, "arguments": arguments });
        writeln!(self.to, "{asked}")?;
        self.to.flush()?;
        loop {
            let said = self.hear()?;
            if let Some(error) = said.get("error") {
                let why = error["desc"].as_str().unwrap_or("no reason");
                return Err(io::Error::other(format!("{command}: {why}")));
            }
            if let Some(returned) = said.get("return") {
                return Ok(returned.clone());
            }
            self.events.push_back(said);
        }
    }

    fn event(&mut self) -> io::Result<Value> {
        self.events.pop_front().map_or_else(|| self.hear(), Ok)
    }

    fn hear(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        self.from.by_ref().take(MESSAGE_MAX).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: &str = "{\"QMP\":{}}\r\n{\"return\":{}}\r\n{\"return\":{}}\r\n";
    const OK: &str = "{\"return\":{}}\r\n";
    const STOP: &str = "{\"event\":\"GUEST_PANICKED\"}\n{\"event\":\"STOP\"}\n";
    const DONE: &str = "{\"event\":\"MIGRATION\",\"data\":{\"status\":\"completed\"}}\n";

    #[test]
    fn a_machine_is_saved_once_it_has_stopped_and_goes_on_until_its_end() {
        let mut asked = Vec::new();
        // What is done before its answer is heard is not forgotten.
        let said = [GREETING, STOP, DONE, OK, OK].concat();
        let mut monitor = Monitor::new(&mut asked, said.as_bytes());
        monitor.greet().unwrap();
        monitor.await_stop().unwrap();
        monitor.save("/a").unwrap();
        monitor.go_on().unwrap();
        let asked = String::from_utf8(asked).unwrap();
        assert!(asked.contains("\"uri\":\"file:/a\"") && asked.ends_with("\"cont\"}\n"), "{asked}");
    }

    #[test]
    fn a_kernel_that_stops_again_is_ended() {
        let mut asked = Vec::new();
        let said = [OK, STOP, OK].concat();
        Monitor::new(&mut asked, said.as_bytes()).go_on().unwrap();
        assert!(String::from_utf8(asked).unwrap().ends_with("\"quit\"}\n"));
    }

    #[test]
    fn what_the_emulator_cannot_do_is_said() {
        let refused =
            "{\"error\":{\"class\":\"GenericError\",\"desc\":\"nvme is non-migratable\"}}";
        let failed =
            "{\"return\":{}}\n{\"event\":\"MIGRATION\",\"data\":{\"status\":\"failed\"}}\n";
        let full = [failed, "{\"return\":{\"error-desc\":\"No space left on device\"}}\n"].concat();
        for (said, why) in [
            (refused, "migrate-incoming: nvme is non-migratable"),
            (failed, "migrate-incoming: no reason"),
            (&full, "migrate-incoming: No space left"),
            (OK, "EOF"),
            ("{]", "column 2"),
        ] {
            let error = Monitor::new(Vec::new(), said.as_bytes()).load("/a").unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
