//! A program that serves: when it is ready, who loads it, and what that says of it.
//!
//! The one idea: a server's own time says nothing, its client's does. The client runs once it is
//! ready and is no part of it: neither its memory nor its CPU time count. What it prints may hold
//! scores, each with which way is the better one.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, Read, Seek},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    str::FromStr,
    time::Duration,
};

use pagelab_record::verdict::Better;
use regex_lite::Regex;

/// What is read of anybody's output, at most.
const OUTPUT_BYTES: u64 = 16 << 20;
/// So long may a connection to this machine itself take.
const CONNECT: Duration = Duration::from_millis(200);

/// A client's load on a server.
#[derive(Debug, Clone)]
pub struct Load {
    /// When it may begin.
    pub ready: Ready,
    /// The command of a shell that makes it.
    pub client: OsString,
    /// What its output says.
    pub scores: Vec<Score>,
}

/// When a server may be loaded.
#[derive(Debug, Clone)]
pub enum Ready {
    /// As soon as somebody answers at this port of this machine.
    Port(u16),
    /// As soon as its output has such a line.
    Line(Regex),
}

impl FromStr for Ready {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(port) = text.strip_prefix("port:") {
            let port = port.parse().map_err(|_| format!("{port} is no port"))?;
            return Ok(Self::Port(port));
        }
        let line = text.strip_prefix("line:").ok_or("expected port:NUMBER or line:REGEX")?;
        Regex::new(line).map(Self::Line).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port:{port}"),
            Self::Line(line) => write!(f, "line:{line}"),
        }
    }
}

impl Ready {
    /// Whether somebody else is where the server will be.
    pub fn is_taken(&self) -> Option<u16> {
        match self {
            Self::Port(port) if answers(*port) => Some(*port),
            Self::Port(_) | Self::Line(_) => None,
        }
    }

    /// Whether the server is ready, by what it has written so far.
    pub(super) fn is_met(&self, files: [&mut File; 2]) -> bool {
        match self {
            Self::Port(port) => answers(*port),
            Self::Line(line) => {
                files.into_iter().any(|file| content(file).is_ok_and(|text| line.is_match(&text)))
            }
        }
    }
}

fn answers(port: u16) -> bool {
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    TcpStream::connect_timeout(&at, CONNECT).is_ok()
}

/// A number in the output of a client.
#[derive(Debug, Clone)]
pub struct Score {
    /// What it is called.
    pub name: String,
    /// Which way is the better one.
    pub better: Better,
    /// Its place: the first group, or all of the match.
    pub pattern: Regex,
}

impl FromStr for Score {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected more:NAME=REGEX or less:NAME=REGEX, by which way is better";
        let (way, rest) = text.split_once(':').ok_or(expected)?;
        let better = match way {
            "more" => Better::More,
            "less" => Better::Less,
            _ => return Err(expected.to_owned()),
        };
        let (name, pattern) = rest.split_once('=').ok_or(expected)?;
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        Ok(Self { name: name.to_owned(), better, pattern })
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.better {
            Better::More => "more",
            Better::Less => "less",
        };
        write!(f, "{way}:{}={}", self.name, self.pattern)
    }
}

impl Score {
    /// The last such number of an output; `None` where there is none above 0.
    pub(super) fn of(&self, output: &str) -> Option<f64> {
        let found = self.pattern.captures_iter(output).last()?;
        let text = found.get(1).or_else(|| found.get(0))?.as_str();
        let number: f64 = text.replace(',', "").trim().parse().ok()?;
        (number > 0.0 && number.is_finite()).then_some(number)
    }
}

/// What a file holds, up to a bound.
pub(super) fn content(file: &mut File) -> io::Result<String> {
    // Whoever writes there has a position of their own only where the file was opened twice.
    let mut again = pagelab_sys::memory::memfd::reopen(file)?;
    again.rewind()?;
    let mut bytes = Vec::new();
    again.take(OUTPUT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Starts a command of a shell whose output goes to a file.
pub(super) fn shell(command: &OsString, output: &File) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null());
    shell.stdout(output.try_clone()?).stderr(output.try_clone()?);
    shell.spawn()
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpListener};

    use super::*;

    #[test]
    fn a_score_is_the_last_number_that_its_pattern_finds() {
        let score: Score = "less:p99=p99: ([0-9.,]+) ms".parse().unwrap();
        assert_eq!((score.name.as_str(), score.better), ("p99", Better::Less));
        assert_eq!(score.to_string(), "less:p99=p99: ([0-9.,]+) ms");
        assert_eq!(score.of("p99: 3.5 ms\np99: 1,204.25 ms\n"), Some(1204.25));
        assert_eq!(score.of("p50: 3 ms"), None);
        assert_eq!(score.of("p99: 0 ms"), None, "nothing can be divided by it");
        let whole: Score = "more:rate=[0-9]+".parse().unwrap();
        assert_eq!((whole.better, whole.of("a 12 b 15")), (Better::More, Some(15.0)));
        for wrong in ["rate=[0-9]", "most:rate=x", "more:rate", "more:rate=("] {
            assert!(wrong.parse::<Score>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_is_ready_when_it_says_so_or_answers() {
        let mut file = tempfile::tempfile().unwrap();
        let mut other = tempfile::tempfile().unwrap();
        let ready: Ready = "line:ready to .*connections".parse().unwrap();
        assert!(!ready.is_met([&mut file, &mut other]));
        other.write_all(b"...\nready to accept connections\n").unwrap();
        assert!(ready.is_met([&mut file, &mut other]) && ready.is_taken().is_none());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ready: Ready = format!("port:{port}").parse().unwrap();
        assert_eq!(ready.to_string(), format!("port:{port}"));
        assert!(ready.is_met([&mut file, &mut other]) && ready.is_taken() == Some(port));
        drop(listener);
        assert!(ready.is_taken().is_none());
        for wrong in ["6379", "port:x", "port:70000", "line:("] {
            assert!(wrong.parse::<Ready>().is_err(), "{wrong}");
        }
    }
}
