//! Generated traces: patterns with parameters, and equivalents of the two published traces.
//!
//! The one idea: a trace is named by a [`Spec`], a text such as `zipf:footprint=1g` with a number
//! of operations and a seed, and the same name gives the same bytes on every machine and in every
//! version. A generator is a state machine that hands operations to a [`Visit`]; a trace never sits
//! in memory unless somebody puts it there. [`GENERATORS`] is the table of them all.
//!
//! What a trace does not hold is what was in memory before: [`Spec::image`] is that.

mod exec_block;
mod fib;
mod machine;
mod parameter;
mod patterns;
mod random;
mod stream;
mod zipf;

use std::fmt;

use self::machine::{Cut, Limit, Machine};
pub use self::{
    parameter::{Parameter, Unit},
    random::mix,
    stream::Stream,
};
use crate::{
    image::{Image, Segment},
    op::Visit,
};

/// A row of [`GENERATORS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// Its name.
    pub name: &'static str,
    /// One line: what the trace looks like.
    pub summary: &'static str,
    /// What it can be told, beside the number of operations and the seed.
    pub parameters: &'static [Parameter],
    /// Operations where no number is asked for.
    pub ops: u64,
    kind: Kind,
}

/// Which state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sequential,
    Uniform,
    Zipf,
    PointerChase,
    Fib,
    ExecBlock,
    Sparse,
}

const BASE: Parameter =
    Parameter::new("base", "address of the first byte", Unit::Address, "0x10000000");
const FOOTPRINT: Parameter =
    Parameter::new("footprint", "bytes that may be touched", Unit::Bytes, "1g");
const STORES: Parameter = Parameter::new("stores", "share of stores, 0 to 1", Unit::Share, "0");
const WIDTH: Parameter =
    Parameter::new("width", "bytes of an operation: 1, 2, 4, 8 or mixed", Unit::Width, "8");

/// Every generator, in the order that help prints them.
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "sequential",
        summary: "addresses that rise by a stride, over and over",
        parameters: &[
            FOOTPRINT,
            Parameter::new("stride", "bytes from one operation to the next", Unit::Bytes, "8"),
            WIDTH,
            STORES,
            BASE,
        ],
        ops: 10_000_000,
        kind: Kind::Sequential,
    },
    Generator {
        name: "uniform",
        summary: "random addresses, all as likely",
        parameters: &[FOOTPRINT, WIDTH, STORES, BASE],
        ops: 10_000_000,
        kind: Kind::Uniform,
    },
    Generator {
        name: "zipf",
        summary: "random addresses in items of which few are hot: Zipf's law, scattered",
        parameters: &[
            FOOTPRINT,
            Parameter::new("item", "bytes of what is hot or cold as a whole", Unit::Bytes, "4k"),
            Parameter::new("exponent", "how steep the law is, 0 to 4", Unit::Exponent, "0.99"),
            WIDTH,
            STORES,
            BASE,
        ],
        ops: 10_000_000,
        kind: Kind::Zipf,
    },
    Generator {
        name: "pointer-chase",
        summary: "u64 loads along one random cycle that visits every line",
        parameters: &[
            FOOTPRINT,
            Parameter::new("stride", "bytes of a line, or of a page", Unit::Bytes, "64"),
            BASE,
        ],
        ops: 10_000_000,
        kind: Kind::PointerChase,
    },
    Generator {
        name: "fib",
        summary: "the published Fib: instruction fetches of one loop, and one store",
        parameters: &[],
        ops: 117_000_007,
        kind: Kind::Fib,
    },
    Generator {
        name: "exec-block",
        summary: "like the published ExecBlock: a RISC-V guest that executes an Ethereum block",
        parameters: &[],
        ops: 200_000_000,
        kind: Kind::ExecBlock,
    },
    Generator {
        name: "sparse",
        summary: "u64 operations on pages strewn over the address space: the adversary of caches",
        parameters: &[
            Parameter::new("pages", "pages that are touched", Unit::Count, "20000"),
            Parameter::new("bits", "they lie below 2 to this power, 13 to 64", Unit::Count, "45"),
            Parameter { default: "0.333333", ..STORES },
        ],
        ops: 3_000_000,
        kind: Kind::Sparse,
    },
];

/// A generated trace: the same spec gives the same operations everywhere.
///
/// Its text is the generator and its parameters: `sequential:stride=64,stores=0.5`. What is left
/// out has its default; [`fmt::Display`] leaves out nothing. Operations and seed are apart.
///
/// ```
/// use pagelab_trace::{decode, stats::{Collector, Options}, synth::Spec};
///
/// let spec = Spec::parse("sequential:footprint=1m,stride=4k")?.with_ops(1000);
/// assert_eq!(
///     spec.to_string(),
///     "sequential:footprint=1m,stride=4k,width=8,stores=0,base=0x10000000"
/// );
/// // Pushed into a visitor, or pulled as bytes: the same operations.
/// let mut pushed = Collector::new(&Options::default()).unwrap();
/// let Ok(()) = spec.generate(&mut pushed);
/// let mut pulled = Collector::new(&Options::default()).unwrap();
/// for piece in spec.stream() {
///     decode::visit(&piece, 0, &mut pulled).unwrap();
/// }
/// let stats = pushed.finish(0);
/// assert_eq!(stats.reuse.cold, 256);
/// assert_eq!(stats, pulled.finish(0));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    generator: &'static Generator,
    /// Operations of the trace.
    pub ops: u64,
    /// What random choices start from.
    pub seed: u64,
    values: Vec<u64>,
}

impl Spec {
    /// The generator of that name, with its defaults and seed 1.
    ///
    /// # Errors
    /// A sentence that lists the names there are.
    pub fn new(name: &str) -> Result<Self, String> {
        let Some(generator) = GENERATORS.iter().find(|generator| generator.name == name) else {
            let names: Vec<&str> = GENERATORS.iter().map(|generator| generator.name).collect();
            return Err(format!("no generator is called `{name}`; there are {}", names.join(", ")));
        };
        let values = generator.parameters.iter().map(Parameter::default_value).collect();
        Ok(Self { generator, ops: generator.ops, seed: 1, values })
    }

    /// Reads `GENERATOR` or `GENERATOR:NAME=VALUE,NAME=VALUE`.
    ///
    /// # Errors
    /// A sentence that says which part makes no sense and what is accepted there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = Self::new(name)?;
        let mut given = Vec::new();
        for pair in parameters.split(',').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(format!("`{pair}` in `{text}` is no NAME=VALUE"));
            };
            if given.contains(&name) {
                return Err(format!("`{text}` gives `{name}` twice"));
            }
            given.push(name);
            spec.set(name, value)?;
        }
        spec.check()?;
        Ok(spec)
    }

    /// Sets one parameter. Whether the values fit each other is judged by [`Self::check`].
    ///
    /// # Errors
    /// A sentence that names the parameters there are, or says what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let generator = self.generator;
        let position = generator.parameters.iter().position(|parameter| parameter.name == name);
        let Some(position) = position else {
            let names: Vec<&str> =
                generator.parameters.iter().map(|parameter| parameter.name).collect();
            return Err(match names.as_slice() {
                [] => format!("`{}` has no parameters, and no `{name}`", generator.name),
                names => format!(
                    "`{}` has no parameter `{name}`; it has {}",
                    generator.name,
                    names.join(", ")
                ),
            });
        };
        self.values[position] = generator.parameters[position].parse(value)?;
        Ok(())
    }

    /// Whether the parameters fit each other.
    ///
    /// # Errors
    /// A sentence that says which do not.
    pub fn check(&self) -> Result<(), String> {
        machine::check(self).map_err(|why| format!("{}: {why}", self.generator.name))
    }

    /// The same with so many operations.
    #[must_use]
    pub fn with_ops(self, ops: u64) -> Self {
        Self { ops, ..self }
    }

    /// Its row in the table.
    pub fn generator(&self) -> &'static Generator {
        self.generator
    }

    /// The value of a parameter in its unit's smallest part; 0 where there is none of that name.
    fn value(&self, name: &str) -> u64 {
        let mut parameters = self.generator.parameters.iter();
        parameters.position(|parameter| parameter.name == name).map_or(0, |at| self.values[at])
    }

    /// Hands every operation to a visitor.
    ///
    /// # Errors
    /// What the visitor says.
    ///
    /// # Panics
    /// When [`Self::check`] fails.
    pub fn generate<V: Visit>(&self, sink: &mut V) -> Result<(), V::Stop> {
        let mut machine = Machine::new(self);
        let mut limit = Limit::new(self.ops, sink);
        loop {
            match machine.step(&mut limit) {
                Ok(()) => {}
                Err(Cut::Full) => return Ok(()),
                Err(Cut::Stop(stop)) => return Err(stop),
            }
        }
    }

    /// The trace as bytes of the raw format, a piece at a time.
    ///
    /// # Panics
    /// When [`Self::check`] fails.
    pub fn stream(&self) -> Stream {
        Stream::new(self)
    }

    /// What memory holds before the first operation: the pages of code and constants, that the
    /// trace reads and never writes. With it preloaded, no read of such a trace is absent.
    pub fn image(&self) -> Image {
        let pages: &[(u64, u64)] = match self.generator.kind {
            Kind::Fib => &[fib::TEXT],
            Kind::ExecBlock => &exec_block::TEXT,
            _ => &[],
        };
        Image { segments: pages.iter().map(|&(first, end)| text(first, end)).collect() }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.generator.name)?;
        for (index, (parameter, &value)) in
            self.generator.parameters.iter().zip(&self.values).enumerate()
        {
            f.write_str(if index == 0 { ":" } else { "," })?;
            write!(f, "{}={}", parameter.name, parameter.format(value))?;
        }
        Ok(())
    }
}

/// Pages with bytes that tell every address from every other.
fn text(first_page: u64, end_page: u64) -> Segment {
    let (addr, end) = (first_page << 12, end_page << 12);
    let words = (addr..end).step_by(8).map(mix);
    Segment { addr, bytes: words.flat_map(u64::to_le_bytes).collect() }
}
