//! The state machines behind the generators, as one type, and the limit that ends them.

use super::{
    Kind, Spec,
    exec_block::ExecBlock,
    fib::Fib,
    patterns::{PAGE_BYTES, Pattern},
};
use crate::op::Visit;

/// A generator at work. It never ends by itself.
#[derive(Debug)]
pub(super) enum Machine {
    Pattern(Box<Pattern>),
    Fib(Fib),
    ExecBlock(Box<ExecBlock>),
}

impl Machine {
    /// The machine of a spec, which must pass [`check`].
    pub(super) fn new(spec: &Spec) -> Self {
        if let Err(why) = spec.check() {
            panic!("{why}");
        }
        match spec.generator.kind {
            Kind::Fib => Self::Fib(Fib::default()),
            Kind::ExecBlock => Self::ExecBlock(Box::new(ExecBlock::new(spec.ops, spec.seed))),
            _ => Self::Pattern(Box::new(Pattern::new(spec))),
        }
    }

    /// Some operations, a few thousand most often.
    ///
    /// # Errors
    /// What the visitor says.
    pub(super) fn step<V: Visit>(&mut self, sink: &mut V) -> Result<(), V::Stop> {
        match self {
            Self::Pattern(pattern) => pattern.step(sink),
            Self::Fib(fib) => fib.step(sink),
            Self::ExecBlock(exec_block) => exec_block.step(sink),
        }
    }
}

/// Whether parameters fit each other.
///
/// # Errors
/// A sentence that says which do not.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    let [footprint, stride, item, base] =
        ["footprint", "stride", "item", "base"].map(|name| spec.value(name));
    let widest = match (spec.generator.kind, spec.value("width")) {
        (Kind::PointerChase, _) | (_, 0) => 8,
        (_, width) => width,
    };
    let what = match spec.generator.kind {
        Kind::Fib | Kind::ExecBlock => None,
        Kind::Sparse => {
            let bits = spec.value("bits");
            if !(13..=64).contains(&bits) {
                return Err(format!("bits={bits} is not from 13 to 64"));
            }
            let pages = 1 << (bits - u64::from(PAGE_BYTES.ilog2()));
            let asked = spec.value("pages");
            (asked > pages).then(|| format!("below 2^{bits} are {pages} pages, not {asked}"))
        }
        _ if footprint - 1 > u64::MAX - base => {
            Some("base and footprint reach over the end of the address space".to_owned())
        }
        _ if footprint < widest => Some(format!("the footprint has no room for {widest} bytes")),
        Kind::Zipf if item < widest => Some(format!("an item has no room for {widest} bytes")),
        Kind::Zipf if footprint < item => Some("the footprint has no room for an item".to_owned()),
        Kind::PointerChase if stride < widest => {
            Some(format!("a stride has no room for {widest} bytes"))
        }
        Kind::PointerChase if footprint < stride => {
            Some("the footprint has no room for a stride".to_owned())
        }
        _ => None,
    };
    what.map_or(Ok(()), Err)
}

/// Why a limited visitor stops.
#[derive(Debug)]
pub(super) enum Cut<S> {
    /// It has seen all it should.
    Full,
    /// What the visitor behind it said.
    Stop(S),
}

/// A visitor that stops after so many operations.
#[derive(Debug)]
pub(super) struct Limit<'v, V> {
    left: u64,
    visitor: &'v mut V,
}

impl<'v, V> Limit<'v, V> {
    pub(super) fn new(ops: u64, visitor: &'v mut V) -> Self {
        Self { left: ops, visitor }
    }

    /// How many operations it would still take.
    pub(super) fn left(&self) -> u64 {
        self.left
    }
}

impl<V: Visit> Limit<'_, V> {
    #[inline(always)]
    fn count(&mut self) -> Result<(), Cut<V::Stop>> {
        if self.left == 0 {
            return Err(Cut::Full);
        }
        self.left -= 1;
        Ok(())
    }
}

impl<V: Visit> Visit for Limit<'_, V> {
    type Stop = Cut<V::Stop>;

    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Self::Stop> {
        self.count()?;
        self.visitor.load::<N>(addr).map_err(Cut::Stop)
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Self::Stop> {
        self.count()?;
        self.visitor.store(addr, value).map_err(Cut::Stop)
    }
}
