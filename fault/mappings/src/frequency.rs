//! What a case asks of the processors' frequency: parameters and needs.
//!
//! The one idea: both are settings of the whole machine, so a run with root makes them what the
//! case says, on every processor, and puts them back; a machine without them, as most guests are,
//! skips the case.

use pagelab_bench::{Kind, Need, Needed, Param, Read, Remedy};
use pagelab_record::{Case, vocabulary::Check};
use pagelab_sys::machine::frequency::{Frequency, Governor};

/// The governor that is told a speed, and forgets it when another takes over.
const USERSPACE: &str = "userspace";
/// The value of both that leaves the machine as it is.
const AS_IS: &str = "as-is";

/// Who governs the frequency.
pub const GOVERNOR: Param = Param::axis(
    "governor",
    Kind::Choice(&[AS_IS, "performance", "powersave", "schedutil", "ondemand", "conservative"]),
    AS_IS,
)
.asks(&["performance"])
.help("frequency governor of every processor meanwhile, put back afterwards; as-is: untouched");
/// Whether the frequency may exceed the rated one.
pub const TURBO: Param = Param::axis("turbo", Kind::Choice(&[AS_IS, "off", "on"]), AS_IS)
    .asks(&["off"])
    .help("turbo of all processors meanwhile, put back afterwards; as-is: untouched");

/// What a case asks of the frequency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    governor: Option<String>,
    turbo: Option<bool>,
}

impl Asked {
    /// What a complete case says; nothing where the workload has no such parameters.
    pub fn of(case: &Case) -> Self {
        let said = |name| case.text(name).filter(|value| *value != AS_IS);
        Self {
            governor: said("governor").map(str::to_owned),
            turbo: said("turbo").map(|value| value == "on"),
        }
    }

    /// What that needs of the machine.
    pub fn needs(&self) -> impl Iterator<Item = Needed> {
        let governor = self.governor.clone().map(|name| Governed(name).needed());
        governor.into_iter().chain(self.turbo.map(|is_on| Turbo(is_on).needed()))
    }
}

/// This governor for every processor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Governed(pub String);

impl Governed {
    /// Whether a driver has it, as far as the kernel says.
    fn is_offered(&self, by: &Governor) -> bool {
        by.available.is_empty() || by.available.contains(&self.0)
    }
}

impl Need for Governed {
    fn name(&self) -> String {
        format!("the frequency governor {} on every processor", self.0)
    }

    fn check(&self) -> bool {
        let found = Frequency::machine().governors();
        !found.is_empty() && found.iter().all(|governor| governor.now == self.0)
    }

    fn cure(&self) -> String {
        let found = Frequency::machine().governors();
        if found.is_empty() {
            return "use a machine whose kernel governs the frequency (cpufreq); a guest's host does"
                .to_owned();
        }
        if found.iter().any(|governor| governor.now == USERSPACE) {
            return format!(
                "choose a governor other than {USERSPACE} first: the speed that it was told could \
                 not be put back"
            );
        }
        match found.iter().find(|one| !self.is_offered(one)) {
            Some(one) => format!("choose among {}", one.available.join(", ")),
            None => self.remedy().and_then(|remedy| remedy.by_hand()).unwrap_or_default(),
        }
    }

    fn lasting(&self) -> Option<(Check, String)> {
        Some((
            Check::FrequencyInForce,
            format!("readings of every frequency governor that were {}", self.0),
        ))
    }

    fn overrules(&self) -> Option<&'static str> {
        Some("governor")
    }

    fn remedy(&self) -> Option<Remedy> {
        let found = Frequency::machine().governors();
        let may = |one: &Governor| self.is_offered(one) && one.now != USERSPACE;
        let is_possible = !found.is_empty() && found.iter().all(may);
        let paths = found.into_iter().map(|governor| governor.path).collect();
        is_possible.then(|| Remedy::Set(paths, self.0.clone()))
    }
}

/// Turbo allowed, or forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turbo(pub bool);

impl Turbo {
    fn word(self) -> &'static str {
        if self.0 { "on" } else { "off" }
    }
}

impl Need for Turbo {
    fn name(&self) -> String {
        format!("turbo {}", self.word())
    }

    fn check(&self) -> bool {
        Frequency::machine().turbo().is_some_and(|turbo| turbo.is_on == self.0)
    }

    fn cure(&self) -> String {
        let by_hand = self.remedy().and_then(|remedy| remedy.by_hand());
        by_hand.unwrap_or_else(|| {
            "use a machine whose kernel has the switch (intel_pstate/no_turbo or cpufreq/boost); a \
             guest's host does"
                .to_owned()
        })
    }

    fn lasting(&self) -> Option<(Check, String)> {
        Some((Check::FrequencyInForce, format!("readings of turbo that were {}", self.word())))
    }

    fn overrules(&self) -> Option<&'static str> {
        Some("turbo")
    }

    fn remedy(&self) -> Option<Remedy> {
        let turbo = Frequency::machine().turbo()?;
        Some(Remedy::set(turbo.path.clone(), turbo.value(self.0)))
    }
}
