//! The table of generators: what a program can be told to access.

use crate::spec::{Parameter, Row, Spec};

/// A row of [`GENERATORS`].
#[derive(Debug)]
pub struct Generator {
    /// Its name.
    pub name: &'static str,
    /// One line: what is accessed.
    pub summary: &'static str,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    pub(super) kind: Kind,
}

/// Which pattern.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Uniform,
    Even,
    Zipf,
    Gups,
    Pmbench,
    Chase,
    Phases,
    Stream,
    SlightlyLarger,
}

/// Every generator, in the order that help prints them.
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "uniform",
        summary: "every page as likely as another",
        parameters: &[],
        kind: Kind::Uniform,
    },
    Generator {
        name: "even",
        summary: "every page as often as another, counts fixed beforehand, in random order",
        parameters: &[],
        kind: Kind::Even,
    },
    Generator {
        name: "zipf",
        summary: "few pages are hot, scattered over the set: Zipf's law",
        parameters: &[Parameter::real("exponent", "how steep the law is", 0.99, 0.0, 4.0)],
        kind: Kind::Zipf,
    },
    Generator {
        name: "gups",
        summary: "random updates, most of them of a scattered hot set that moves",
        parameters: &[
            Parameter::real("hot", "share of pages that are hot", 0.1, 0.0001, 1.0),
            Parameter::real("share", "share of accesses that go to them", 0.9, 0.0, 1.0),
            Parameter::count("moves", "how often another set becomes hot", 1.0, 0.0, 1000.0),
        ],
        kind: Kind::Gups,
    },
    Generator {
        name: "pmbench",
        summary: "a bell curve around the middle of the set",
        parameters: &[Parameter::real(
            "sigma",
            "its standard deviation as a share of the set; 0.155: 80 % on 40 % of the pages",
            0.155,
            0.001,
            10.0,
        )],
        kind: Kind::Pmbench,
    },
    Generator {
        name: "chase",
        summary: "one random cycle through every page, over and over",
        parameters: &[],
        kind: Kind::Chase,
    },
    Generator {
        name: "phases",
        summary: "most accesses stay in one part of the set, then in the next",
        parameters: &[
            Parameter::count("parts", "parts of the set", 8.0, 1.0, 1000.0),
            Parameter::count("steps", "changes of part, and one", 8.0, 1.0, 10_000.0),
            Parameter::real("share", "share of accesses that stay inside", 0.9, 0.0, 1.0),
        ],
        kind: Kind::Phases,
    },
    Generator {
        name: "stream",
        summary: "from the first page to the last, over and over",
        parameters: &[Parameter::count("touches", "accesses to a page in a row", 64.0, 1.0, 1e9)],
        kind: Kind::Stream,
    },
    Generator {
        name: "slightly-larger",
        summary: "uniform over a little more than the top tier holds, nothing else accessed",
        parameters: &[Parameter::real("excess", "how much more", 0.1, 0.0, 100.0)],
        kind: Kind::SlightlyLarger,
    },
];

impl Row for Generator {
    const KIND: &'static str = "generator";

    fn rows() -> &'static [Self] {
        GENERATORS
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// A generator with its parameters: `gups:hot=0.1,moves=4`.
pub type WorkSpec = Spec<Generator>;
