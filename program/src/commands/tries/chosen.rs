//! The rungs that somebody asked for.

use crate::ladder::rungs::{Ground, Offer};
use anyhow::Context;
use pagelab_cli::program::Program;
use pagelab_record::{asked::Own, vocabulary::tried};

use super::Try;
use pagelab_cli::exit::Failure;

/// Those that are there under a program, without what was not asked for.
///
/// # Errors
/// For a name that none has, and for one of our own that another has.
pub(super) fn chosen(asked: &Try, program: &Program) -> Result<Vec<Offer>, Failure> {
    for build in &asked.build {
        let what = format!("--build {}: {}", build.name, build.command);
        Program::of(&[(&build.command).into()]).context(what).map_err(Failure::usage)?;
    }
    let own = if asked.build.is_empty() { &asked.own } else { &asked.build };
    let ground = Ground { fits: asked.fit, own, ..Ground::of(program) };
    let mut offers = ground.offers();
    let many = |own: &&Own| offers.iter().filter(|offer| offer.rung.name == own.name).count();
    if let Some(twice) = own.iter().find(|own| many(own) > 1) {
        return Err(usage!(
            "--{} {}: there is a rung of this name: choose another",
            if twice.build { "build" } else { "own" },
            twice.name
        ));
    }
    let is_known = |name: &&String| offers.iter().any(|offer| offer.rung.name == **name);
    if let Some(unknown) = asked.rung.iter().find(|name| !is_known(name)) {
        let names: Vec<&str> = offers.iter().map(|offer| offer.rung.name.as_str()).collect();
        return Err(usage!(
            "--rung {unknown}: this machine has no such rung; it has {}",
            names.join(", ")
        ));
    }
    if !asked.build.is_empty() {
        // Other builds are compared with the program as it is set up, and with nothing else.
        offers.retain(|Offer { rung, .. }| {
            rung.name == tried::AS_SET_UP || own.iter().any(|own| own.name == rung.name)
        });
        return Ok(offers);
    }
    let always = [tried::PLAIN, tried::AS_SET_UP, tried::FIT, tried::FIT_NONE];
    offers.retain(|Offer { rung, .. }| {
        let name = &rung.name.as_str();
        let is_asked = match (asked.fit, asked.rung.is_empty()) {
            (_, false) => asked.rung.contains(&rung.name),
            // Single mappings stand beside whole programs.
            (true, true) => tried::WHOLE.contains(name) || *name == tried::FIT_ALL,
            (false, true) => true,
        };
        is_asked || always.contains(name) || asked.own.iter().any(|own| own.name == *name)
    });
    Ok(offers)
}
