//! What the plugin is told: `out=PATH,base=ADDRESS` and the rest, each once.
//!
//! Every mistake is a sentence; nothing is guessed and nothing unknown is passed over.

use std::path::PathBuf;

use pagelab_trace::op::address;

/// What to capture, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// The trace.
    pub(crate) out: PathBuf,
    /// Host address of guest address 0: what QEMU was given as `-B`.
    pub(crate) base: u64,
    /// The capture ends when it has so many operations.
    pub(crate) max: Option<u64>,
    /// What instruction fetches are.
    pub(crate) fetch: Fetch,
    /// Where the guest's memory goes, as it is before the first instruction.
    pub(crate) image: Option<PathBuf>,
    /// A file that holds the buffer, for whoever wants what is in it when the guest is killed.
    pub(crate) shared: Option<PathBuf>,
}

/// What becomes of instruction fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// They are loads like others.
    On,
    /// They are left out.
    Off,
    /// Each instruction is one load, of its first byte, at an address that no data has.
    Apart,
}

impl Options {
    /// Reads the arguments that QEMU hands over.
    ///
    /// # Errors
    /// When one is unknown, is given twice or makes no sense, or one that is needed is missing.
    pub(crate) fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut out, mut base, mut max, mut fetch) = (None, None, None, None);
        let (mut image, mut shared) = (None, None);
        for argument in arguments {
            let (key, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("`{argument}` is not of the form key=value"))?;
            let wrong = |must: &str| format!("{key}={value}: {must}");
            match key {
                "out" => once(&mut out, key, absolute(value)?)?,
                "image" => once(&mut image, key, absolute(value)?)?,
                "shared" => once(&mut shared, key, absolute(value)?)?,
                "base" => {
                    let address = address(value).filter(|address| *address > 0);
                    let must = "an address above 0, the same as QEMU's -B";
                    once(&mut base, key, address.ok_or_else(|| wrong(must))?)?;
                }
                "max" => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    let must = "a number of operations above 0";
                    once(&mut max, key, number.ok_or_else(|| wrong(must))?)?;
                }
                "fetch" => {
                    let what = match value {
                        "on" => Fetch::On,
                        "off" => Fetch::Off,
                        "apart" => Fetch::Apart,
                        _ => return Err(wrong("on, off or apart")),
                    };
                    once(&mut fetch, key, what)?;
                }
                _ => {
                    let known = "out, base, max, fetch, image, shared";
                    return Err(format!("no option is called `{key}`; there are {known}"));
                }
            }
        }
        Ok(Self {
            out: out.ok_or("out=PATH is missing: where the trace goes")?,
            base: base.ok_or("base=ADDRESS is missing: the same as QEMU's -B")?,
            max,
            fetch: fetch.unwrap_or(Fetch::On),
            image,
            shared,
        })
    }
}

fn once<T>(slot: &mut Option<T>, key: &str, value: T) -> Result<(), String> {
    if slot.replace(value).is_some() {
        return Err(format!("{key} is given twice"));
    }
    Ok(())
}

/// The guest may change its directory; the capture's files stay where they were asked for.
fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("`{path}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_a_default() {
        let options = Options::parse(["out=/a", "base=0x1000"]).unwrap();
        let expected = Options {
            out: "/a".into(),
            base: 0x1000,
            max: None,
            fetch: Fetch::On,
            image: None,
            shared: None,
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn everything_can_be_said() {
        let all = ["base=4096", "fetch=off", "image=/i", "max=12", "out=/o=o", "shared=/s"];
        let options = Options::parse(all).unwrap();
        let expected = Options {
            out: "/o=o".into(),
            base: 4096,
            max: Some(12),
            fetch: Fetch::Off,
            image: Some("/i".into()),
            shared: Some("/s".into()),
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn a_relative_path_stays_where_it_is_when_the_guest_moves() {
        let options = Options::parse(["out=t", "base=1"]).unwrap();
        assert_eq!(options.out, std::env::current_dir().unwrap().join("t"));
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, named) in [
            (&["out=/a"][..], "base=ADDRESS is missing"),
            (&["base=1"], "out=PATH is missing"),
            (&["out=/a", "base=0"], "base=0: an address above 0"),
            (&["out=/a", "base=0xg"], "base=0xg"),
            (&["out=/a", "base=1", "max=0"], "max=0: a number"),
            (&["out=/a", "base=1", "fetch=yes"], "fetch=yes: on, off or apart"),
            (&["out=/a", "base=1", "base=1"], "base is given twice"),
            (&["out=/a", "base=1", "speed=9"], "no option is called `speed`"),
            (&["out"], "`out` is not of the form"),
            (&["out=", "base=1"], "``"),
        ] {
            let error = Options::parse(arguments.iter().copied()).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
