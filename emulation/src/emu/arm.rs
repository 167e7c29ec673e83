//! What is compared in a replay: a backend of emulated memory, and how the trace is decoded.

use std::fmt;

use pagelab_bench::{Error, Values};
use pagelab_emu::{
    Policy,
    replay::Decoder,
    table::{BASE, Backend, MEMORIES, backend},
};
use pagelab_record::Case;

/// The alias of fast-mem's best configuration, decoded as fast-mem does.
const BASE_ALIAS: &str = "base";
/// Ends the name of an arm whose trace is decoded with bounds checks.
const SAFE: &str = "/safe";

/// Stands for every backend that can be an arm of the workload.
pub const ALL: &str = "all";

/// Backends as values of a parameter: see [`Arm`].
#[derive(Debug)]
pub(super) struct Backends;

impl Values for Backends {
    fn canonical(&self, value: &str) -> Result<String, String> {
        if value == ALL {
            Ok(value.to_owned())
        } else {
            Arm::parse(value).map(|arm| arm.to_string())
        }
    }

    fn choices(&self) -> Vec<String> {
        let mut words = Arm::names();
        words.push(ALL.to_owned());
        words
    }
}

/// A backend and a decoder.
#[derive(Debug, Clone, Copy)]
pub struct Arm {
    /// The backend.
    pub backend: &'static Backend,
    /// The decoder.
    pub decoder: Decoder,
    is_base: bool,
}

impl Arm {
    /// Reads `tlb`, `tlb/safe`, or `base`.
    ///
    /// # Errors
    /// A sentence that lists the names there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == BASE_ALIAS {
            return Ok(Self { backend: backend(BASE)?, decoder: Decoder::Safe, is_base: true });
        }
        let (name, decoder) = match text.strip_suffix(SAFE) {
            Some(name) => (name, Decoder::Safe),
            None => (text, Decoder::Fast),
        };
        let unknown = |_| {
            format!(
                "expected one of {}; each but {BASE_ALIAS} also with {SAFE}",
                Self::names().join(", ")
            )
        };
        Ok(Self { backend: backend(name).map_err(unknown)?, decoder, is_base: false })
    }

    /// The arms of a complete case.
    ///
    /// # Panics
    /// When the case has no canonical `backend`; a case is checked before it is used.
    pub fn of(case: &Case) -> Vec<Self> {
        let names = case.get("backend").expect("the case has backends");
        names.split(',').map(|name| Self::parse(name).expect("backends are canonical")).collect()
    }

    /// The case with every backend in place of `all`; `only` says which of them the workload takes.
    pub fn resolve(case: Case, only: impl Fn(&Backend) -> bool) -> Case {
        let asked = case.get("backend").unwrap_or_default();
        if !asked.split(',').any(|name| name == ALL) {
            return case;
        }
        let every = MEMORIES.iter().filter(|backend| only(backend)).map(|backend| backend.name);
        let others = asked.split(',').filter(|name| *name != ALL && backend(name).is_err());
        let names: Vec<&str> = others.chain(every).collect();
        let names = names.join(",");
        case.with("backend", &names)
    }

    /// Those that can be had on this host, and a warning for each other one.
    ///
    /// # Errors
    /// When none can.
    pub fn fitting(arms: Vec<Self>) -> Result<(Vec<Self>, Vec<String>), Error> {
        let (mut fit, mut left_out) = (Vec::new(), Vec::new());
        for arm in arms {
            match (arm.backend.make)(&Policy::default()) {
                Ok(_) => fit.push(arm),
                Err(unfit) => left_out.push(format!("{arm} is left out: {unfit}")),
            }
        }
        if fit.is_empty() { Err(Error::Case(left_out.join("; "))) } else { Ok((fit, left_out)) }
    }

    /// Whether one of them is there twice.
    pub fn has_twins(arms: &[Self]) -> bool {
        let is_twin = |(at, arm): (usize, &Self)| {
            arms[..at].iter().any(|earlier| earlier.to_string() == arm.to_string())
        };
        arms.iter().enumerate().any(is_twin)
    }

    /// How its trace is decoded, in a word.
    pub fn decoder_name(&self) -> &'static str {
        match self.decoder {
            Decoder::Fast => "fast",
            Decoder::Safe => "safe",
        }
    }

    /// Every name that stands for an arm by itself.
    pub fn names() -> Vec<String> {
        let table = MEMORIES.iter().map(|backend| backend.name.to_owned());
        std::iter::once(BASE_ALIAS.to_owned()).chain(table).collect()
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_base {
            return f.write_str(BASE_ALIAS);
        }
        f.write_str(self.backend.name)?;
        f.write_str(if self.decoder == Decoder::Safe { SAFE } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_an_arm_with_either_decoder() {
        for name in Arm::names() {
            assert_eq!(Arm::parse(&name).unwrap().to_string(), name);
            if name != BASE_ALIAS {
                let safe = format!("{name}{SAFE}");
                let arm = Arm::parse(&safe).unwrap();
                assert_eq!((arm.to_string(), arm.decoder), (safe, Decoder::Safe));
            }
        }
        let base = Arm::parse(BASE_ALIAS).unwrap();
        assert_eq!((base.backend.name, base.decoder), (BASE, Decoder::Safe));
    }

    #[test]
    fn all_is_every_backend_once_and_what_stands_beside_it() {
        let case = Case::default().with("backend", "base,noop,all");
        let names = Arm::resolve(case, |_| true).get("backend").unwrap().to_owned();
        let table: Vec<&str> = MEMORIES.iter().map(|backend| backend.name).collect();
        assert_eq!(names, format!("base,{}", table.join(",")));
        let case = Case::default().with("backend", "tlb");
        assert_eq!(Arm::resolve(case.clone(), |_| true), case);
    }

    #[test]
    fn what_is_no_arm_is_answered_with_those_there_are() {
        for text in ["", "tbl", "base/safe", "tlb/unsafe", "/safe"] {
            let Err(error) = Arm::parse(text) else { panic!("{text}") };
            assert!(error.contains("noop") && error.contains("/safe"), "{error}");
        }
    }
}
