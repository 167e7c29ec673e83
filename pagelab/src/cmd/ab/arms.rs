//! The arms of `run --ab` as they are typed, and the plan that comes of them.
//!
//! The one idea: an arm is read once into what it changes, and refused by its name where that makes
//! no sense; whatever a journal holds was read here before.

use std::{fs, path::Path, sync::Arc};

use pagelab_bench::{
    Kind, Role,
    plan::{self, Plan, Planned},
    program,
};
use pagelab_record::{Ab, Arm, ab::Change};
use pagelab_sys::knobs::Place;

use crate::{history, settings::CASE_COMMAND};

/// An arm as it was typed: `page=4k`, `env:NAME=VALUE`, `env:NAME` for none, `set:PATH=VALUE`,
/// `bin:PATH`.
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
    } else if let Some(setting) = text.strip_prefix("set:") {
        let (path, value) = setting.split_once('=').unwrap_or_default();
        if !path.starts_with('/') || value.trim().is_empty() {
            return Err(format!(
                "`{text}` is no setting: write set:PATH=VALUE, with the whole path of a file below \
                 /sys or /proc"
            ));
        }
        Change::Setting { path: path.to_owned(), value: value.trim().to_owned() }
    } else if let Some(path) = text.strip_prefix("bin:") {
        let (path, unknown) = (path.to_owned(), String::new());
        Change::Program { path, digest: unknown.clone(), version: unknown }
    } else {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!(
                "`{text}` is no arm: write a parameter (page=4k), a variable (env:NAME=VALUE), a \
                 setting (set:PATH=VALUE) or another pagelab (bin:PATH)"
            ));
        };
        Change::Parameter { name: name.to_owned(), value: value.to_owned() }
    };
    Ok(Arm { name: text.to_owned(), change })
}

/// The same arm as a journal keeps it, where that does not depend on a case.
fn canonical(arm: Arm) -> Result<Arm, String> {
    let Arm { name, change } = arm;
    let (name, change) = match change {
        Change::Setting { path, value } => {
            let real = Place::machine().setting(Path::new(&path));
            let path = real.map_err(|error| format!("--ab {name}: {error}"))?;
            let path = path.display().to_string();
            (format!("set:{path}={value}"), Change::Setting { path, value })
        }
        Change::Program { path, version, .. } => {
            let wrong = |why: String| format!("--ab {name}: {why}");
            let real =
                fs::canonicalize(&path).map_err(|error| wrong(format!("{path}: {error}")))?;
            let digest = program::digest(&real).map_err(wrong)?;
            let path = real.display().to_string();
            (format!("bin:{path}"), Change::Program { path, digest, version })
        }
        change => (name, change),
    };
    Ok(Arm { name, change })
}

/// The same arm with the version of its program, which is asked whether it can measure the cases.
fn greeted(mut arm: Arm, cases: &[Planned]) -> Result<Arm, String> {
    if let Change::Program { path, version, .. } = &mut arm.change {
        let words = [CASE_COMMAND.to_owned()];
        let said = program::greet(Path::new(path), &words, plan::told(cases));
        *version = said.map_err(|why| format!("--ab {}: {why}", arm.name))?;
    }
    Ok(arm)
}

/// What two arms are to differ in; variables may be two.
fn thing(arm: &Arm) -> (&str, &str) {
    match &arm.change {
        Change::Parameter { name, .. } => ("parameter", name),
        Change::Environment { .. } => ("environment", ""),
        Change::Setting { path, .. } => ("setting", path),
        Change::Nothing => ("nothing", ""),
        Change::Program { .. } => ("program", ""),
    }
}

/// The cases of both arms, cell by cell, and the arms in their canonical spelling.
pub(in crate::cmd) fn plan(base: Plan, arms: [Arm; 2]) -> Result<(Plan, [Arm; 2]), String> {
    let mut both = Plan { cases: Vec::new(), left_out: base.left_out };
    let [a, b] = arms;
    let arms = [canonical(a)?, canonical(b)?];
    let mut canonical = arms.clone();
    if thing(&arms[0]) != thing(&arms[1]) {
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
    if let [Change::Program { digest: a, .. }, Change::Program { digest: b, .. }] =
        canonical.each_ref().map(|arm| &arm.change)
        && a == b
    {
        let [a, b] = canonical.map(|arm| arm.name);
        return Err(format!("--ab {a} {b}: both files hold the same program: name two builds"));
    }
    if both.cases.is_empty() {
        return Err(format!("--ab: no case is left: {}", both.left_out.join("; ")));
    }
    let [a, b] = canonical;
    let arms = [greeted(a, &both.cases)?, greeted(b, &both.cases)?];
    both.cases = of_arms(both.cases, &arms);
    Ok((both, arms))
}

/// Cases that come in pairs, the first of each for the first arm.
pub(in crate::cmd) fn of_arms(cases: Vec<Planned>, arms: &[Arm; 2]) -> Vec<Planned> {
    let arms = arms.each_ref().map(|arm| Arc::new(arm.clone()));
    let cases = cases.into_iter().enumerate();
    cases.map(|(index, planned)| planned.for_arm(Arc::clone(&arms[index % 2]))).collect()
}

/// Refuses arms that a journal alone names, which may be anybody's: all that a journal chooses are
/// the cases and their parameters, unless the person who goes on names the same arms `again`.
pub(in crate::cmd) fn named_again(ab: &Ab, again: Option<&[Arm]>) -> Result<(), String> {
    let flag = history::arms(ab);
    let Some(again) = again else {
        let beyond = ab.arms.iter().find_map(Arm::beyond_journal);
        return beyond.map_or(Ok(()), |name| {
            Err(format!(
                "a journal alone does not choose what is done beyond its cases ({name}): name its \
                 arms again, with {flag}"
            ))
        });
    };
    let again: Vec<Arm> = again.iter().cloned().map(canonical).collect::<Result<_, _>>()?;
    // What a program holds is looked at where it is tried out.
    let told = |arm: &Arm| (arm.name.clone(), arm.setting().map(|(_, value)| value.to_owned()));
    let is_same = again.iter().map(told).eq(ab.arms.iter().map(told));
    if is_same { Ok(()) } else { Err(format!("the arms of this run are {flag}")) }
}
