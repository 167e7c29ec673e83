//! What the run found, as sentences with what each rests on.

use crate::{
    Block, Found, Run, Section,
    findings::{Compared, Finding},
};

/// The sentences, where there is one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    run.findings.first()?;
    let mut section = Section::new("findings", "Findings");
    section.all(run.findings.iter().map(block));
    Some(section.with(
        "A finding is said where the whole 95 % interval of a ratio, one number for each process, \
         lies beyond what is worth saying: a difference of several percent or more. It holds for \
         this machine as it is set up, in this boot.",
    ))
}

fn block(finding: &Finding) -> Block {
    let interval = |compared: &Compared| format!("95 %: {}", compared.told_interval());
    let sides = |compared: &Compared| {
        let [one, other] = compared.sides.each_ref().map(|cell| cell.middle.display());
        format!("{one} against {other}")
    };
    let mut parts: Vec<String> = Vec::new();
    for compared in &finding.ratios {
        parts.push(format!("{}, {}", interval(compared), sides(compared)));
    }
    parts.push(finding.nature.name().to_owned());
    parts.push(finding.caveat.to_owned());
    Block::Found(Found { sentence: finding.sentence.clone(), detail: parts.join(" · ") })
}
