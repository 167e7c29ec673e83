//! The rungs of single mappings: what is chosen for them after the watched run.
//!
//! The one idea: which mappings they are about is known only when the program was watched, so their
//! orders are written then; all else about them is a row of the table like any other.

use pagelab_record::{Outcome, Record, vocabulary::tried};

use super::Climb;
use crate::{fit::record::Chosen, ladder::rungs};

impl Climb<'_> {
    /// Whether a rung waits for a choice.
    pub fn fits(&self) -> bool {
        let waits = |name: &str| {
            let of = |rung: &&super::Rung| rung.offer.rung.name == name;
            self.rungs.iter().find(of).is_some_and(|rung| !rung.tally.is_over())
        };
        [tried::FIT, tried::FIT_ALL].into_iter().any(waits)
    }

    /// Gives the rungs of single mappings what was chosen, or why nothing was.
    pub fn fit(&mut self, choice: Result<&Record, &str>) {
        let of = |column| choice.map(|record| Chosen::of(record, column));
        let [chosen, gains] = [of("chosen"), of("gains")];
        let is_same = chosen == gains;
        for rung in &mut self.rungs {
            let wanted = match rung.offer.rung.name.as_str() {
                tried::FIT | tried::FIT_NONE => chosen.clone(),
                tried::FIT_ALL if is_same && chosen.as_ref().is_ok_and(|c| !c.is_empty()) => {
                    Err("more mappings that gain than are chosen: it would be fit again")
                }
                tried::FIT_ALL => gains.clone(),
                _ => continue,
            };
            let need = match wanted {
                Ok(wanted) if wanted.is_empty() => "a mapping that huge pages would gain time in",
                // Its orders are none, whatever is chosen.
                Ok(_) if rung.offer.rung.name == tried::FIT_NONE => continue,
                Ok(wanted) => {
                    rungs::fit_to(&mut rung.offer.start, &wanted);
                    continue;
                }
                Err(why) => why,
            };
            let (need, cure) = (need.to_owned(), CURE.to_owned());
            rung.tally.settled.get_or_insert(Outcome::Skipped { need, cure });
        }
    }
}

/// What helps where no mapping can be chosen.
const CURE: &str = "the rungs of whole programs say what there is to gain";
