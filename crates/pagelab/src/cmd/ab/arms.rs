//! The arms of `run --ab` as they are typed, and the plan that comes of them.
//!
//! The one idea: an arm is read once into what it changes, and refused by its name where that makes
//! no sense; whatever a journal holds was read here before.

use std::sync::Arc;

use pagelab_bench::{
    Kind, Role,
    plan::{self, Plan, Planned},
};
use pagelab_record::{Ab, Arm, ab::Change};

/// An arm as it was typed: `page=4k`, `env:NAME=VALUE`, or `env:NAME` for none.
pub(in crate::cmd) fn arm(text: &str) -> Result<Arm, String> {
    let change = if let Some(variable) = text.strip_prefix("env:") {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (variable, None),
        };
        if name.is_empty() {
            return Err(format!("`{text}` names no variable: write env:NAME=VALUE, or env:NAME"));
        }
        Change::Environment { name: name.to_owned(), value }
    } else {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!(
                "`{text}` is no arm: write a parameter (page=4k) or a variable (env:NAME=VALUE)"
            ));
        };
        Change::Parameter { name: name.to_owned(), value: value.to_owned() }
    };
    Ok(Arm { name: text.to_owned(), change })
}

/// The cases of both arms, cell by cell, and the arms in their canonical spelling.
pub(in crate::cmd) fn plan(base: Plan, arms: [Arm; 2]) -> Result<(Plan, [Arm; 2]), String> {
    let mut both = Plan { cases: Vec::new(), left_out: base.left_out };
    let mut canonical = arms.clone();
    let parameter = |arm: &Arm| match &arm.change {
        Change::Parameter { name, .. } => Some(name.clone()),
        Change::Environment { .. } => None,
    };
    if parameter(&arms[0]) != parameter(&arms[1]) {
        let [a, b] = arms.map(|arm| arm.name);
        return Err(format!("--ab {a} {b}: two arms differ in one thing: name it in both"));
    }
    for planned in base.cases {
        let name = planned.workload.name();
        if planned.is_one_pass() {
            both.left_out.push(format!("{name} is one pass: it has no times to compare"));
            continue;
        }
        let mut cell: Vec<Planned> = Vec::new();
        for (arm, spelled) in arms.iter().zip(&mut canonical) {
            let Change::Parameter { name: param, value } = &arm.change else {
                let case = Arc::clone(&planned.case);
                cell.push(Planned::new(planned.workload, case, planned.method));
                continue;
            };
            let known = planned.workload.params().iter().find(|known| known.name == param);
            let Some(known) = known else {
                both.left_out.push(format!("{name} has no parameter `{param}`"));
                break;
            };
            let value = known.canonical(value)?;
            if known.role != Role::Axis || matches!(known.kind, Kind::Page) && value.ends_with('l')
            {
                return Err(format!("--ab {}: that is no single value of --{param}", arm.name));
            }
            *spelled = Arm {
                name: format!("{param}={value}"),
                change: Change::Parameter { name: param.clone(), value: value.clone() },
            };
            let case = planned.case.as_ref().clone().with(param, &value);
            let pairs: Vec<(&str, &str)> =
                case.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            match plan::complete(planned.workload, &pairs) {
                Ok(case) => cell.push(Planned::new(planned.workload, case, planned.method)),
                Err(why) => {
                    both.left_out.push(why);
                    break;
                }
            }
        }
        if cell.len() == 2 && !both.cases.contains(&cell[0]) {
            both.cases.extend(cell);
        }
    }
    if canonical[0] == canonical[1] {
        return Err(format!("--ab: both arms are {}: name two", canonical[0].name));
    }
    if both.cases.is_empty() {
        return Err(format!("--ab: no case is left: {}", both.left_out.join("; ")));
    }
    for (index, planned) in both.cases.iter_mut().enumerate() {
        planned.arm = Some(Arc::new(canonical[index % 2].clone()));
    }
    Ok((both, canonical))
}

/// Refuses to let a journal, which may be anybody's, choose what code a process loads.
pub(in crate::cmd) fn harmless(ab: &Ab) -> Result<(), String> {
    let loads = |arm: &&Arm| match &arm.change {
        Change::Environment { name, .. } => name.starts_with("LD_"),
        Change::Parameter { .. } => false,
    };
    ab.arms.iter().find(loads).map_or(Ok(()), |arm| {
        Err(format!("{}: a journal does not choose what is loaded: begin a new run", arm.name))
    })
}
