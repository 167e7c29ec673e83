//! The rungs of single mappings: those that are worth it, and all that gain.
//!
//! The one idea: the library that is preloaded advises memory as the program asks for it, by who
//! asks; malloc's heap has its tunable, and then whatever else malloc gives is advised against
//! ([`crate::fit`]). Which they are is written into the start when it is known. The library stands
//! before every call of malloc, which an author who writes the same advice does not pay for: so
//! there is a rung on which it advises nothing.

use pagelab_interpose::preload::{ORDERS, Order, Orders, log};
use pagelab_record::{
    asked::{Reach, Rung},
    vocabulary::tried,
};
use pagelab_sys::machine::thp::Policy;

use super::{
    ANONYMOUS, Ground, Offer, Start, lack, malloc, plain, policy,
    preload::{loaded, not_preloaded},
    rung, words,
};
use crate::fit::record::Chosen;

/// Memory of so many bytes can hold a huge page.
const LEAST: u64 = 2 << 20;

pub(super) fn fit(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "the mappings that are worth it ask for huge pages, and no others";
    offered(ground, tried::FIT, how)
}

pub(super) fn fit_all(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "every mapping that gains asks for huge pages, whatever memory it takes";
    offered(ground, tried::FIT_ALL, how)
}

/// What the others are set beside: plain, but for the library.
pub(super) fn fit_none(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "base pages with the library that advises mappings, which advises none: its own cost";
    let fits = ground.fits && ground.pages.pmd_size().is_some();
    let offers = plain(ground).into_iter().filter(|_| fits);
    let with_library = |Offer { mut start, .. }: Offer| {
        let mut rung = rung(tried::FIT_NONE, how, Reach::Program, 0);
        rung.lacks.extend(not_preloaded(ground));
        start.environment.extend(loaded(ground, Orders::default()));
        start.preload = true;
        fit_to(&mut start, &Chosen::default());
        Offer { rung, start }
    };
    offers.map(with_library).collect()
}

fn offered(ground: &Ground<'_>, name: &str, how: &str) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size().filter(|_| ground.fits) else { return Vec::new() };
    let mut rung = rung(name, how, Reach::Program, pmd);
    rung.lacks.extend(not_preloaded(ground));
    let settings = asking(ground, pmd, &mut rung);
    if !settings.is_empty() {
        rung.reach = Reach::Machine;
    }
    rung.keep = words(&["the list of mappings says where, and with what call"]);
    "nothing: what it starts inherits it".clone_into(&mut rung.cost);
    let environment = loaded(ground, Orders::default());
    let start = Start { environment, thp: Some(true), settings, preload: true, ..Start::default() };
    vec![Offer { rung, start: Start { proof: ANONYMOUS, ..start } }]
}

/// What lets whoever asks have huge pages, and nobody else.
fn asking(ground: &Ground<'_>, pmd: u64, rung: &mut Rung) -> Vec<(std::path::PathBuf, String)> {
    match ground.pages.policy(pmd) {
        Some(Policy::Always | Policy::Never) if ground.is_root => policy(ground, pmd, "madvise"),
        Some(Policy::Always | Policy::Never) => {
            let path = ground.pages.global_path();
            let cure = format!("echo madvise | sudo tee {}", path.display());
            let need = "transparent huge pages for whoever asks for them, and nobody else";
            rung.lacks.push(lack(need, cure));
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Orders for what was chosen.
pub(in crate::ladder) fn fit_to(start: &mut Start, chosen: &Chosen) {
    let mut orders = Orders::default().with(Order::Units, LEAST);
    if chosen.heap {
        orders = orders.with(Order::Spare, LEAST);
    }
    let keys: Vec<String> = chosen.keys.iter().map(|key| format!("{key:x}")).collect();
    start
        .environment
        .retain(|(name, _)| ![ORDERS, log::UNITS, malloc::TUNABLES].contains(&&**name));
    start
        .environment
        .extend([(ORDERS.to_owned(), orders.to_string()), (log::UNITS.to_owned(), keys.join(","))]);
    start.environment.extend(malloc::tunable(if chosen.heap { "1" } else { "0" }));
}

/// A start on base pages in which the library notes who asks for memory.
pub(in crate::ladder) fn watched(plain: &Start, fit: &Start) -> Start {
    let orders = Orders::default().with(Order::Watch, LEAST).to_string();
    let mut start = Start { preload: true, log: true, ..plain.clone() };
    let of_fit = fit.environment.iter().filter(|(name, _)| name == super::PRELOAD);
    start.environment.extend(of_fit.cloned());
    start.environment.push((ORDERS.to_owned(), orders));
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_in_the_orders() {
        let mut start = Start::default();
        let mut chosen = Chosen { keys: [0x1f, 0xa].into(), heap: false };
        fit_to(&mut start, &chosen);
        let of = |start: &Start, name: &str| {
            let mut mine = start.environment.iter().filter(|(key, _)| key == name);
            let value = mine.next().map(|(_, value)| value.clone());
            assert!(mine.next().is_none(), "{name} is there once");
            value.unwrap_or_default()
        };
        assert_eq!(of(&start, log::UNITS), "a,1f");
        assert_eq!(of(&start, ORDERS), "units=2097152");
        assert!(of(&start, malloc::TUNABLES).ends_with("glibc.malloc.hugetlb=0"));
        chosen.heap = true;
        fit_to(&mut start, &chosen);
        assert_eq!(of(&start, ORDERS), "units=2097152,spare=2097152");
        assert!(of(&start, malloc::TUNABLES).ends_with("glibc.malloc.hugetlb=1"));
    }
}
