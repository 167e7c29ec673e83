//! What was tried, for programs: each rung with its verdicts, and the answers.

use pagelab_record::vocabulary::tried;
use serde_json::{Value, json};

use super::{
    Against, Row, Tried, quantity,
    took::Took,
    verdict::{Candidate, Conclusion},
};
use pagelab_report::Run;

/// Every rung beside both bases, and the best; `None` of a run that tried nothing.
pub(crate) fn value(run: &Run) -> Option<Value> {
    let tried = Tried::of(run)?;
    let (verdict, answers, candidates) = match tried.conclusion() {
        Conclusion::Faster(answers) => ("faster", answers, Vec::new()),
        Conclusion::Undecided(candidates) => ("undecided", Vec::new(), candidates),
        Conclusion::Nothing => ("leave-it", Vec::new(), Vec::new()),
    };
    let of = |(what, row): &(&str, &Row<'_>)| json!({"what": what, "rung": row.rung.name});
    Some(json!({
        "verdict": verdict,
        "decides": tried.goals.first().map(|goal| goal.name.clone()),
        "answers": answers.iter().map(of).collect::<Vec<_>>(),
        "open": candidates.iter().map(|open| &*open.row.rung.name).collect::<Vec<_>>(),
        "candidates": candidates.iter().map(candidate).collect::<Vec<_>>(),
        "untried": tried.untried().map(untried).collect::<Vec<_>>(),
        "rungs": tried.rows.iter().map(|row| rung(&tried, row)).collect::<Vec<_>>(),
    }))
}

fn candidate(candidate: &Candidate<'_, '_>) -> Value {
    let Candidate { row, ratio, needs } = candidate;
    json!({"rung": row.rung.name, "ratio": quantity(ratio), "needs": needs})
}

fn untried((row, run_ns): (&Row<'_>, u64)) -> Value {
    json!({"rung": row.rung.name, "run_ns": run_ns})
}

fn rung(tried: &Tried<'_>, row: &Row<'_>) -> Value {
    let (took, why) = match &row.took {
        Took::NotAsked => ("not-asked", None),
        Took::Yes => ("yes", None),
        Took::No(why) => ("no", Some(why)),
        Took::Unseen(why) => ("unseen", Some(why)),
        Took::NotRun => ("not-run", None),
        Took::Late(_) => ("too-slow", None),
    };
    let late_ns = if let Took::Late(ns) = row.took { Some(ns) } else { None };
    let base = tried.usual_base();
    let is_base = tried.base() == base;
    json!({
        "rung": row.rung.name,
        "id": row.rung.name,
        "setting": row.rung.setting,
        "undo": row.rung.undo,
        "reach": row.rung.reach,
        "rounds": row.rounds,
        "rounds_compared": row.came.len(),
        "came": row.came,
        "took": took,
        "why": why,
        "longer_than_ns": late_ns,
        "beside_base_pages": row.plain.filter(|_| is_base).as_ref().map(against),
        "beside_what_is_set_up": row.now.as_ref().map(against),
        "large_bytes": row.large(),
        "more_bytes_at_peak": tried.more(row, base),
        "more_bytes_than_set_up": tried.more(row, tried::AS_SET_UP),
    })
}

fn against(against: &Against) -> Value {
    let Against { ratio, judged } = against;
    let verdict = judged.verdict.name();
    json!({"ratio": quantity(ratio), "p": judged.p, "verdict": verdict, "needs": judged.needs})
}
