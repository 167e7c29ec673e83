//! Parameters as data: one table for each workload, from which flags, help, completion, suite keys
//! and checks are made.
//!
//! A value is text in a case and has one canonical spelling ([`Param::canonical`]), so that two
//! ways of asking for the same thing are the same case.

use std::fmt;

use pagelab_record::{
    Case,
    units::{format_bytes, parse_bytes},
};
use pagelab_sys::{loops::Stride, machine::thp::HugePages};

use crate::count::{format_count, parse_count};

/// One parameter of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name: the flag without dashes, and the key in a case.
    pub name: &'static str,
    /// What it does, one line.
    pub help: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Value when it is not given.
    pub default: &'static str,
    /// What a comma means.
    pub role: Role,
    /// Values for which its workload asks something of the host: what `doctor` tries.
    pub asks: &'static [&'static str],
}

/// What a comma between values means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A case for each value.
    Axis,
    /// An arm for each value, alternated inside one case.
    Arms,
    /// One value that is a list.
    List,
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A page size: see [`PageSize`]; `all` stands for every one that the kernel offers, `large`
    /// for all of these but the base page.
    Page,
    /// A size in bytes, or `auto`.
    Size,
    /// A size in bytes; `all` stands for each of these.
    Sweep(&'static [&'static str]),
    /// A whole number from 1 to this, or `auto` where the flag says so.
    Count {
        /// Largest value.
        max: u64,
        /// Whether `auto` is a value.
        auto: bool,
    },
    /// Operations a second such as `20k`, or `max`.
    Rate,
    /// `BYTES@STRIDE`, where the stride may be `page`: `8@4k`, `8@page`, `4k@4k`.
    Touch,
    /// CPU numbers such as `0-3`, or one of these words.
    Cpus(&'static [&'static str]),
    /// A memory node's number, or one of these words.
    Node(&'static [&'static str]),
    /// A whole number between these two.
    Number {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A directory, or `auto`.
    Dir,
    /// A count of operations such as `20m` (20 million), `all`, or `auto`.
    Ops,
    /// What a workload reads by itself.
    Own(&'static dyn Values),
}

/// Values that only a workload understands.
pub trait Values: fmt::Debug + Sync {
    /// The canonical spelling of a value.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    fn canonical(&self, value: &str) -> Result<String, String>;

    /// The values that help and completion show.
    fn choices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a value may hold a comma, so that a comma does not stand between two.
    fn has_commas(&self) -> bool {
        false
    }
}

impl Param {
    /// One whose values are cases.
    pub const fn axis(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { name, help: "", kind, default, role: Role::Axis, asks: &[] }
    }

    /// One whose values are arms of a case.
    pub const fn arms(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { role: Role::Arms, ..Self::axis(name, kind, default) }
    }

    /// One whose value is a list.
    pub const fn list(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { role: Role::List, ..Self::axis(name, kind, default) }
    }

    /// With its line of help.
    #[must_use]
    pub const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// With the values for which the host is asked for something.
    #[must_use]
    pub const fn asks(self, asks: &'static [&'static str]) -> Self {
        Self { asks, ..self }
    }

    /// The canonical spelling of a value.
    ///
    /// # Errors
    /// A sentence that names the value and says what is accepted.
    pub fn canonical(&self, value: &str) -> Result<String, String> {
        let value = value.trim();
        // Only what is `auto` by itself is decided by its workload.
        if matches!(self.kind, Kind::Size) && value == "auto" && self.default != value {
            let why = "nothing chooses this size: write a whole number and k, m, g or t";
            return Err(format!("--{} {value}: {why}", self.name));
        }
        self.kind.canonical(value).map_err(|why| format!("--{} {value}: {why}", self.name))
    }

    /// The values that one stands for: `all` for every page size that this kernel offers or every
    /// size of a sweep, `large` for all pages but the base page; else for itself.
    pub(crate) fn meant(&self, value: &str) -> Vec<String> {
        let offered = |least: PageSize| {
            let wanted = PageSize::offered().into_iter().filter(move |page| *page >= least);
            wanted.map(|page| page.to_string()).collect()
        };
        match (self.kind, value) {
            (Kind::Page, "all") => offered(PageSize::Base),
            (Kind::Page, "large") => offered(PageSize::Folio(0)),
            (Kind::Sweep(sizes), "all") => sizes.iter().map(ToString::to_string).collect(),
            _ => vec![value.to_owned()],
        }
    }

    /// The values that help and completion show.
    pub fn choices(&self) -> Vec<String> {
        match self.kind {
            Kind::Choice(words) => words.iter().map(ToString::to_string).collect(),
            Kind::Page => {
                let mut all = PageSize::offered();
                all.push(PageSize::Hugetlb(30));
                let mut words: Vec<String> = all.iter().map(ToString::to_string).collect();
                words.dedup();
                words.extend(["large".to_owned(), "all".to_owned()]);
                words
            }
            Kind::Cpus(words) | Kind::Node(words) => {
                words.iter().map(ToString::to_string).collect()
            }
            Kind::Own(values) => values.choices(),
            Kind::Rate => vec!["max".to_owned()],
            Kind::Size | Kind::Count { .. } | Kind::Touch | Kind::Number { .. } | Kind::Ops => {
                Vec::new()
            }
            Kind::Dir => vec!["auto".to_owned()],
            Kind::Sweep(_) => vec!["all".to_owned()],
        }
    }
}

impl Kind {
    /// Whether a value may hold a comma, so that a comma does not stand between two.
    pub fn has_commas(self) -> bool {
        match self {
            Self::Cpus(_) => true,
            Self::Own(values) => values.has_commas(),
            _ => false,
        }
    }

    fn canonical(self, value: &str) -> Result<String, String> {
        match self {
            Self::Choice(words) => {
                let found = words.iter().find(|word| **word == value);
                found.map(ToString::to_string).ok_or_else(|| one_of(words))
            }
            Self::Page if matches!(value, "all" | "large") => Ok(value.to_owned()),
            Self::Sweep(_) if value == "all" => Ok(value.to_owned()),
            Self::Page => PageSize::parse(value).map(|page| page.to_string()),
            Self::Size | Self::Count { auto: true, .. } | Self::Dir if value == "auto" => {
                Ok(value.to_owned())
            }
            Self::Size | Self::Sweep(_) => match parse_bytes(value)? {
                0 => Err("a size is not 0".to_owned()),
                bytes => Ok(format_bytes(bytes)),
            },
            Self::Count { max, .. } => match value.parse::<u64>() {
                Ok(count) if (1..=max).contains(&count) => Ok(count.to_string()),
                _ => Err(format!("expected a whole number from 1 to {max}")),
            },
            Self::Rate if value == "max" => Ok(value.to_owned()),
            Self::Rate => match parse_count(value) {
                Ok(rate @ 1..=100_000_000) => Ok(rate.to_string()),
                _ => Err("expected a number a second from 1 to 100m, or max".to_owned()),
            },
            Self::Touch => {
                let touch = Touch::parse(value)?;
                Ok(touch.to_string())
            }
            Self::Cpus(words) if words.contains(&value) => Ok(value.to_owned()),
            Self::Cpus(words) => match pagelab_sys::machine::parse_list(value) {
                Some(cpus) if !cpus.is_empty() => Ok(pagelab_sys::machine::format_list(&cpus)),
                _ => Err(format!("expected CPU numbers such as 0-3, or {}", one_of(words))),
            },
            Self::Node(words) if words.contains(&value) => Ok(value.to_owned()),
            Self::Node(words) => match value.parse::<usize>() {
                Ok(node) => Ok(node.to_string()),
                Err(_) => Err(format!("expected a node's number, or {}", one_of(words))),
            },
            Self::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(number.to_string()),
                _ => Err(format!("expected a whole number from {min} to {max}")),
            },
            Self::Dir => match std::path::absolute(value) {
                Ok(path) => Ok(path.display().to_string()),
                Err(_) => Err("expected a directory, or auto".to_owned()),
            },
            Self::Ops if matches!(value, "all" | "auto") => Ok(value.to_owned()),
            Self::Ops => parse_count(value).map(format_count),
            Self::Own(values) => values.canonical(value),
        }
    }
}

fn one_of(words: &[&str]) -> String {
    format!("expected one of {}", words.join(", "))
}

/// A page size under test. Which mechanism serves it is part of the name: a 2 MiB transparent huge
/// page and a 2 MiB hugetlb page are two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageSize {
    /// The base page.
    Base,
    /// A large folio below the PMD size ("mTHP"), in bytes.
    Folio(u64),
    /// A PMD-sized transparent huge page.
    Thp,
    /// A page of a hugetlb pool, 2 to this power.
    Hugetlb(u32),
}

impl PageSize {
    /// Reads `4k`, `64k`, `2m`, `hugetlb-2m`, `hugetlb-1g`, and the kernel's own spellings.
    ///
    /// # Errors
    /// A sentence that lists what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let accepted = || {
            format!(
                "`{text}` is no page size: 4k, a power of two from 8k to 1m, 2m, hugetlb-2m, \
                 hugetlb-1g, large, or all"
            )
        };
        if let Some(size) = text.strip_prefix("hugetlb-") {
            return match parse_bytes(size).map_err(|_| accepted())? {
                bytes if bytes == 2 << 20 => Ok(Self::Hugetlb(21)),
                bytes if bytes == 1 << 30 => Ok(Self::Hugetlb(30)),
                _ => Err(accepted()),
            };
        }
        match parse_bytes(text).map_err(|_| accepted())? {
            4096 => Ok(Self::Base),
            bytes if bytes == 2 << 20 => Ok(Self::Thp),
            bytes if bytes.is_power_of_two() && (8192..=1 << 20).contains(&bytes) => {
                Ok(Self::Folio(bytes))
            }
            _ => Err(accepted()),
        }
    }

    /// The page size of a case.
    ///
    /// # Panics
    /// When the case has no canonical `page`; a case is checked before it is used.
    pub fn of(case: &Case) -> Self {
        Self::parse(case.get("page").expect("the case has a page")).expect("the page is canonical")
    }

    /// Whether it is a large folio below the PMD size.
    pub fn is_folio(self) -> bool {
        matches!(self, Self::Folio(_))
    }

    /// Its bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Base => 4096,
            Self::Folio(bytes) => bytes,
            Self::Thp => 2 << 20,
            Self::Hugetlb(shift) => 1 << shift,
        }
    }

    /// Every page size that this kernel offers, smallest first, hugetlb last; 1 GiB pages only
    /// where the CPU has them.
    pub fn offered() -> Vec<Self> {
        let huge = HugePages::machine();
        let folios = huge.sizes();
        let pmd = huge.pmd_size();
        let mut all = vec![Self::Base];
        all.extend(folios.iter().filter(|size| **size < 2 << 20).map(|size| Self::Folio(*size)));
        if pmd == Some(2 << 20) {
            all.push(Self::Thp);
        }
        for pool in huge.pools() {
            all.push(Self::Hugetlb(pool.page_size.trailing_zeros()));
        }
        all.sort_unstable();
        all
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Hugetlb(_) = self {
            f.write_str("hugetlb-")?;
        }
        f.write_str(&format_bytes(self.bytes()))
    }
}

/// How a range is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Bytes written at each step.
    pub bytes: u64,
    /// Distance of the steps; `None` is one step a page, whatever the page.
    pub stride: Option<u64>,
}

impl Touch {
    /// Reads `8@4k`, `8@page`, `4k@4k`.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let accepted = || {
            "expected BYTES@STRIDE with BYTES a multiple of 8 that is not above STRIDE, and STRIDE \
             a power of two, or `page`"
                .to_owned()
        };
        let (bytes, stride) = text.split_once('@').ok_or_else(accepted)?;
        let bytes = parse_bytes(bytes)?;
        let stride = if stride == "page" { None } else { Some(parse_bytes(stride)?) };
        let fits = stride.is_none_or(|stride| bytes <= stride && stride.is_power_of_two());
        if bytes == 0 || !bytes.is_multiple_of(8) || !fits || (stride.is_none() && bytes > 4096) {
            return Err(accepted());
        }
        Ok(Self { bytes, stride })
    }

    /// The stride in bytes for a page size.
    ///
    /// # Panics
    /// Where an address does not hold 64 bits, which no supported machine is.
    pub fn on(self, page: PageSize) -> Stride {
        let step = self.stride.unwrap_or(page.bytes());
        let narrow = |bytes| usize::try_from(bytes).expect("addresses have 64 bits");
        Stride { step: narrow(step), bytes: narrow(self.bytes) }
    }
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stride = self.stride.map_or_else(|| "page".to_owned(), format_bytes);
        write!(f, "{}@{stride}", format_bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests;
