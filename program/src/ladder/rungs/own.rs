//! Rungs by the program's own setting: another command starts it.
//!
//! The one idea: what a database or a virtual machine does by a switch of its own, nobody can do
//! for it from outside; but whether its pages came is proven as on any rung.

use pagelab_record::asked::{Own, Reach};

use super::{Ground, Offer, POOL_COST, Proof, Start, pool, rung};

/// A program of its own mind takes what it finds, and shares it.
const ANY: Proof = Proof::Kinds(&[0, 1, 3]);

pub(super) fn own(ground: &Ground<'_>) -> Vec<Offer> {
    let offer = |own: &Own| {
        let Own { name, command, pool: has_pool, build } = own;
        if *build {
            let how = format!("another build: {command}");
            let start = Start { build: Some(command.into()), ..Start::default() };
            return Offer { rung: rung(name, &how, Reach::Program, 0), start };
        }
        let reach = if *has_pool { Reach::Machine } else { Reach::Program };
        let pmd = ground.pages.pmd_size().unwrap_or(2 << 20);
        let mut rung = rung(name, &format!("by its own setting: {command}"), reach, pmd);
        rung.keep = vec![format!("command: {command}")];
        rung.cost =
            if *has_pool { POOL_COST.to_owned() } else { "what its setting does".to_owned() };
        let pool = if *has_pool { pool(ground, &mut rung) } else { None };
        let command = Some(command.clone());
        let start = Start { command, thp: Some(true), pool, proof: ANY, ..Start::default() };
        Offer { rung, start }
    };
    ground.own.iter().map(offer).collect()
}
