//! `fault/path`: what a kernel executes for one fault, instruction by instruction, by function.
//!
//! The one idea: a machine is emulated, and a plugin of its emulator sees every instruction of the
//! real kernel; so the count is the same on every host. The machine's one program is this very
//! executable ([`guest`]), which measures the same case of `fault/latency` there, with a clock that
//! has no time: where it would be read stands a mark that the plugin knows. What lies between two
//! marks is a window: it begins with the touch and ends when the touch has completed.
//!
//! The proof is that of `fault/latency`, taken inside the machine by its own kernel. Nothing here
//! is a time, and nothing is estimated: a number is the path that most samples took (`fold`), and
//! what the others did beside it has a name (`classes`).

mod classes;
mod debugger;
mod disk;
mod emulator;
mod fold;
mod follow;
pub mod guest;
mod initrd;
mod inside;
mod kernel;
mod log;
mod monitor;
mod qemu;
mod saved;
mod symbols;
mod told;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Param, Read, Trial, Witness,
    needs::Memory,
};
use pagelab_record::{Case, vocabulary::arm::OURS};

use self::{
    debugger::Target,
    emulator::Machine,
    inside::{Inside, Parts},
    kernel::{Image, KERNELS, Parameters},
    told::Told,
};
pub(crate) use self::{
    disk::MKE2FS,
    qemu::{EMULATOR, PLUGIN},
};
use pagelab_mappings::space;

const PARAMS: &[Param] = &[
    Param::axis("kernel", Kind::Own(&KERNELS), "6.12").asks(&["6.12"]).help(
        "the kernel that is booted: one that `cargo xtask vm` fetched, or an image (./bzImage)",
    ),
    inside::KIND,
    Param::axis("page", Kind::Choice(PAGES), "4k").help("page size under test"),
    Param::axis("parameters", Kind::Own(&Parameters), "mitigations=off")
        .help("words for the kernel's command line, or none"),
    Param::axis("group", Kind::Choice(&["root", "own"]), "root").help(
        "the program's memory cgroup: own is one below the root, which its pages are charged to",
    ),
    space::SIZE,
    Param::axis("rounds", Kind::Count { max: 1000, auto: false }, "1")
        .help("repetitions after the one that warms up"),
    Param::axis("boots", Kind::Count { max: 1000, auto: false }, "1")
        .help("how often the machine is booted: every boot must find the same path"),
    Param::axis("stepped", Kind::Choice(&["off", "on"]), "off").help(
        "on: a debugger steps through windows of one more boot, most of which must be as long",
    ),
];

/// Page sizes: those of the guest, which nobody knows before it runs.
const PAGES: &[&str] =
    &["4k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m", "hugetlb-2m"];

/// Touches of a repetition, and bytes that they take at most.
const TOUCHES: u64 = 2048;
const SIZE_MAX: u64 = 128 << 20;

/// What it is called.
pub const NAME: &str = PATH.about.name;

/// See the module's documentation.
pub const PATH: Described<Asked> = Described {
    resolve: |case| {
        if !case.is("size", "auto") {
            return case;
        }
        let page = pagelab_bench::PageSize::of(&case).bytes();
        let size = (TOUCHES * page).min(SIZE_MAX);
        case.with("size", &pagelab_record::units::format_bytes(size))
    },
    refuse: |asked| asked.inside.as_ref().map(drop).map_err(Clone::clone),
    refuses: &[(
        "a kind and a page that fault/latency or fault/userfaultfd turns away",
        "the machine measures that very case: see `list fault/latency`",
    )],
    ..Described::new(
        "fault/path",
        "what a kernel executes for one fault, by function: exact, in an emulated machine",
        PARAMS,
        &[("size", "2m")],
        Asked::of,
    )
    .emulated()
};

/// Reads what a machine's plugin wrote and folds it, as a case does: instructions of the path that
/// most samples took, in all and by function.
///
/// # Errors
/// Which line is none of a log, or why there is no path.
pub fn folded(text: &str) -> Result<(u64, Vec<(String, u64)>), String> {
    let log = log::Log::read(text)?;
    let boot = fold::fold(&log).map_err(|error| error.to_string())?;
    let own = boot.mode.own.into_iter().map(|(name, counts)| (name, counts.instructions));
    Ok((boot.mode.total.instructions, own.collect()))
}

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    kernel: Image,
    parameters: String,
    boots: u32,
    is_stepped: bool,
    has_group: bool,
    size: u64,
    parts: Parts,
    /// The case that the machine measures, or why there is none.
    inside: Result<Inside, String>,
}

impl Asked {
    fn of(case: &Case) -> Self {
        let word = |name| case.get(name).expect("the case is complete");
        Self {
            kernel: Image::of(word("kernel")),
            parameters: kernel::words(word("parameters")).to_owned(),
            boots: case.number("boots").expect("a number"),
            is_stepped: case.is("stepped", "on"),
            has_group: case.is("group", "own"),
            size: case.bytes("size").expect("the case is resolved"),
            parts: Parts::of(word("kind")),
            inside: Inside::of(case),
        }
    }

    /// Bytes of its disk: for a file, its file system and the journal of that.
    fn disk(&self) -> u64 {
        if self.parts.has_disk { 2 * self.size + (128 << 20) } else { 0 }
    }

    /// MiB of the machine: for what is touched, its copy and what swaps it, beside a kernel; in
    /// steps, so that cases of about one size have the same machine.
    fn memory_mib(&self) -> u64 {
        (((4 * self.size) >> 20) + 768).next_multiple_of(256)
    }
}

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let mut needs = vec![
            EMULATOR.needed(),
            PLUGIN.needed(),
            self.kernel.clone().needed(),
            Memory(self.footprint()).needed(),
        ];
        if self.parts.has_disk {
            needs.push(MKE2FS.needed());
        }
        needs
    }

    fn footprint(&self) -> u64 {
        // QEMU takes what the machine touched.
        (self.memory_mib() << 20) + (256 << 20) + self.disk()
    }

    fn seconds(&self) -> f64 {
        f64::from(self.boots + u32::from(self.is_stepped)) * (6.0 + self.size as f64 / 32e6)
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let inside = self.inside.clone().map_err(Error::Case)?;
        let machine = Machine {
            kernel: self.kernel.find().map_err(Error::Case)?,
            parameters: self.parameters.clone(),
            memory_mib: self.memory_mib(),
            has_two_nodes: self.parts.has_two_nodes,
            disk: self.disk(),
            has_modules: self.parts.has_modules,
            has_group: self.has_group,
        };
        let Self { boots, is_stepped, .. } = *self;
        Ok(vec![Box::new(Booted { machine, inside, boots, is_stepped, told: None })])
    }
}

/// The arm: some boots of one machine.
#[derive(Debug)]
struct Booted {
    machine: Machine,
    inside: Inside,
    boots: u32,
    is_stepped: bool,
    told: Option<Told>,
}

impl Trial for Booted {
    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let (mut all, mut target) = (Vec::new(), None);
        let (mut booted, mut unsaved) = (0, None);
        for boot in 0..self.boots {
            let ran = if boot == 0 {
                self.machine.run(&self.inside)?
            } else {
                self.machine.boot(&self.inside)?
            };
            let boot = fold::fold(&ran.log)?;
            target = Target::of(&ran.log, OURS, &boot.mode);
            all.push(boot);
            booted += u64::from(ran.is_booted);
            unsaved = unsaved.or(ran.unsaved);
        }
        let mut told = Told::of(all, booted, unsaved)?;
        if self.is_stepped {
            let target = target.ok_or_else(|| Error::Case("no window is the mode's".to_owned()))?;
            let steps = self.machine.step(&self.inside, &target)?;
            told.stepped = Some([target.counted, steps]);
        }
        told.observe(meter);
        self.told = Some(told);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.told.take().expect("run comes before verify").testify(witness);
        Ok(())
    }
}
