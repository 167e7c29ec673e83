//! The rungs: one table, a row for each way to larger pages.
//!
//! The one idea: a row looks at the ground (this machine, this program) and offers what it would
//! do there: what it puts into the environment, what it sets on the machine and has put back, what
//! it does from outside, and what proves that it took. What is missing is a lack with its cure; a
//! row that would change nothing offers nothing.

mod advice;
mod allocators;
mod fit;
mod khugepaged;
mod machine;
mod malloc;
mod outside;
mod own;
mod preload;
mod segment;

use std::path::PathBuf;

use pagelab_interpose::preload::PACKAGE;
use pagelab_record::{
    asked::{Lack, Own, Reach, Rung},
    vocabulary::{
        knob,
        tried::{AS_SET_UP, PLAIN},
    },
};
use pagelab_sys::{
    files::beside,
    machine::{
        Tree, rights,
        thp::{HugePages, Policy},
    },
};

use self::advice::lines;
pub(super) use self::fit::{fit_to, watched};
use pagelab_cli::program::{Loader, Program};

/// What a rung does to a run of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The command of a shell that starts it, in place of its words.
    pub command: Option<String>,
    /// The file that is executed in place of its first word.
    pub build: Option<PathBuf>,
    /// Variables that it gets.
    pub environment: Vec<(String, String)>,
    /// Whether its processes may have transparent huge pages; `None` leaves what is inherited.
    pub thp: Option<bool>,
    /// Settings of the machine while it runs.
    pub settings: Vec<(PathBuf, String)>,
    /// A pool that is set aside for all that it holds: bytes of a page, and the knob.
    pub pool: Option<(u64, PathBuf)>,
    /// What is done to it while it runs.
    pub outside: Option<Outside>,
    /// Whether a library of ours counts what it did in it.
    pub preload: bool,
    /// Whether that library notes who asks for memory.
    pub log: bool,
    /// What shows that it took.
    pub proof: Proof,
    /// What must have been seen of the program for it to make sense.
    pub only: Only,
}

impl Start {
    /// The size in KiB of the folios that it is about, where it is about folios.
    pub fn folio_kib(&self) -> Option<u64> {
        match self.proof {
            Proof::Folios(size) => Some(size >> 10),
            _ => None,
        }
    }
}

/// What is collapsed from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// Anonymous memory.
    Anonymous,
    /// Executable mappings of files.
    Code,
}

/// What shows that the pages of a rung came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Proof {
    /// Nothing is claimed.
    #[default]
    None,
    /// There are none but base pages in anonymous and shared memory.
    BaseOnly,
    /// Kinds of [`pagelab_sys::machine::proc::Holding::KINDS`] that hold some, by number.
    Kinds(&'static [usize]),
    /// Folios of so many bytes.
    Folios(u64),
    /// What the preloaded library counted.
    Counted,
    /// Kind 0, as far as khugepaged or an advice to collapse joined as much on this machine.
    Joined,
}

/// Which programs a rung is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Only {
    /// Any.
    #[default]
    Any,
    /// Those with shared memory.
    Sharing,
    /// Those whose memory comes page by page in blocks that no page of 2 MiB can serve.
    Late,
    /// Those of one process, unless it is asked for by name.
    Alone,
}

const ANONYMOUS: Proof = Proof::Kinds(&[0]);
const SHARED: Proof = Proof::Kinds(&[1]);
const POOL: Proof = Proof::Kinds(&[3]);
/// An allocator takes what it finds.
const ANY: Proof = Proof::Kinds(&[0, 3]);

/// A rung as it would be done here.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What the journal keeps of it.
    pub rung: Rung,
    /// What it does.
    pub start: Start,
}

/// What rungs stand on.
#[derive(Debug)]
pub struct Ground<'g> {
    /// The program.
    pub program: &'g Program,
    /// The kernel's huge pages.
    pub pages: HugePages,
    /// The machine's files.
    pub tree: Tree,
    /// Whether settings may be changed.
    pub is_root: bool,
    /// The library that is preloaded.
    pub library: Result<PathBuf, Lack>,
    /// Whether single mappings are chosen.
    pub fits: bool,
    /// Rungs by the program's own setting.
    pub own: &'g [Own],
}

impl<'g> Ground<'g> {
    /// This machine under a program.
    pub fn of(program: &'g Program) -> Self {
        Self {
            program,
            pages: HugePages::machine(),
            tree: Tree::machine(),
            is_root: rights::is_root(),
            library: library("the library that is preloaded", PACKAGE),
            fits: false,
            own: &[],
        }
    }

    /// Every rung that there is here, with what is lacking.
    pub fn offers(&self) -> Vec<Offer> {
        let mut offers: Vec<Offer> = ROWS.iter().flat_map(|row| row(self)).collect();
        offers.iter_mut().for_each(Offer::advise);
        offers
    }
}

/// Where the library of a package of ours lies.
fn library(need: &str, package: &str) -> Result<PathBuf, Lack> {
    match beside::library(package) {
        Ok(Ok(path)) => Ok(path),
        Ok(Err(missing)) => Err(lack(&format!("{need}, {missing}"), missing.cure.clone())),
        Err(error) => Err(lack(&format!("{need} ({error})"), "mount /proc")),
    }
}

/// What there is for a process that runs already: it as it is, and collapsed; `None` where there
/// are no huge pages.
pub fn beside() -> Option<[Offer; 2]> {
    let loader = Loader::Unknown;
    let program = Program {
        words: Vec::new(),
        loader,
        is_setuid: false,
        is_narrow: false,
        is_static_glibc: false,
        asan: None,
    };
    let ground = Ground::of(&program);
    let mut offers = [as_set_up(&ground).pop()?, outside::collapse(&ground).pop()?];
    // Its policy was set by whoever started it.
    for offer in &mut offers {
        offer.start.thp = None;
        offer.advise();
    }
    Some(offers)
}

/// The table, in the order of a report.
const ROWS: &[fn(&Ground<'_>) -> Vec<Offer>] = &[
    plain,
    as_set_up,
    malloc::thp,
    malloc::hugetlb,
    preload::malloc_keep,
    preload::populate,
    preload::maps_thp,
    machine::thp_always,
    khugepaged::khugepaged,
    machine::mthp,
    machine::shared_memory,
    preload::shared_pool,
    fit::fit_none,
    fit::fit,
    fit::fit_all,
    allocators::allocators,
    segment::segment,
    outside::collapse,
    outside::code,
    own::own,
];

use beside::PRELOAD;

/// The variable that has a library loaded before those that it names now.
fn preloaded(library: &str) -> (String, String) {
    (PRELOAD.to_owned(), beside::preloaded(library).to_string_lossy().into_owned())
}

fn lack(need: &str, cure: impl Into<String>) -> Lack {
    Lack { need: need.to_owned(), cure: cure.into() }
}

fn rung(name: &str, how: &str, reach: Reach, page: u64) -> Rung {
    Rung { name: name.to_owned(), how: how.to_owned(), reach, page, ..Rung::default() }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn plain(ground: &Ground<'_>) -> Vec<Offer> {
    let takes_tunables = ground.program.takes_tunables();
    let start = Start {
        environment: if takes_tunables { malloc::tunable("0") } else { Vec::new() },
        thp: Some(false),
        proof: Proof::BaseOnly,
        ..Start::default()
    };
    let how = "base pages only: malloc's tunable and transparent huge pages off for it";
    vec![Offer { rung: rung(PLAIN, how, Reach::Program, 0), start }]
}

fn as_set_up(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "as the machine and the environment are now";
    let mut rung = rung(AS_SET_UP, how, Reach::Program, 0);
    let pmd = ground.pages.pmd_size();
    let always = pmd.filter(|pmd| ground.pages.policy(*pmd) == Some(Policy::Always));
    rung.knob = always.map(knob::page);
    vec![Offer { rung, start: Start::default() }]
}

/// What lets `madvise` have huge pages where nobody may have them now.
fn admitting(ground: &Ground<'_>) -> Result<Vec<(PathBuf, String)>, Lack> {
    let Some(pmd) = ground.pages.pmd_size() else {
        return Err(lack("transparent huge pages", "a kernel with CONFIG_TRANSPARENT_HUGEPAGE"));
    };
    match ground.pages.policy(pmd) {
        Some(Policy::Never) if ground.is_root => Ok(policy(ground, pmd, "madvise")),
        Some(Policy::Never) => Err(lack(
            "transparent huge pages that a program may ask for",
            format!("echo madvise | sudo tee {}", ground.pages.global_path().display()),
        )),
        _ => Ok(Vec::new()),
    }
}

/// The settings that give the PMD size this policy, by way of the global one where it inherits.
fn policy(ground: &Ground<'_>, pmd: u64, word: &str) -> Vec<(PathBuf, String)> {
    let global = ground.pages.global_path();
    let own = ground.pages.enabled_path(pmd).filter(|own| *own != global);
    let inherits = |path: &PathBuf| Tree::machine().choice(path).as_deref() == Some("inherit");
    let own = own.filter(|own| !inherits(own)).map(|own| (own, "inherit".to_owned()));
    own.into_iter().chain([(global, word.to_owned())]).collect()
}

/// The pool of the machine's usual size of page: bytes of a page, and the knob.
fn pool(ground: &Ground<'_>, rung: &mut Rung) -> Option<(u64, PathBuf)> {
    let size = ground.tree.field_number("proc/meminfo", "Hugepagesize").map(|kib| kib << 10);
    rung.page = size.unwrap_or(2 << 20);
    if !ground.is_root {
        rung.lacks.push(lack("the right to set pages aside", "run as root: sudo pagelab try"));
    }
    let pools = ground.pages.pools();
    let Some(pool) = pools.into_iter().find(|pool| Some(pool.page_size) == size) else {
        rung.lacks.push(lack("a hugetlb pool", "a kernel with CONFIG_HUGETLBFS"));
        return None;
    };
    Some((pool.page_size, pool.path))
}

/// What a pool costs others.
const POOL_COST: &str = "the pool serves nobody else, used or not; a copy on write that finds it \
                         empty ends the program with SIGBUS";

#[cfg(test)]
mod tests;
