//! `pagelab tier status`: what is in which tier, what moves, and why nothing does.

use std::{collections::BTreeMap, io::IsTerminal, time::Duration};

use clap::Args;
use pagelab_live::{
    board::{Promoting, Shown},
    engine::wait_until,
    heat::HotRange,
    status::{HotRegion, Status, Tiers},
};
use pagelab_report::visible;
use pagelab_sys::{
    machine::Tree,
    process::{catch_interrupts, interrupted},
    time::monotonic_raw_ns,
};

use pagelab_cli::{
    args::Run,
    exit::{Exit, Failure},
    output,
};

/// Processes that a terminal is shown.
const SHOWN: usize = 15;
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Show what is in which tier of memory, what moves, and why nothing does.
///
/// Only reads. Reading where the memory of all processes is takes the kernel a walk over their
/// page tables. Not yet seen on hardware with two tiers.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Once, instead of again and again until Ctrl-C; so it is where stdout is no terminal.
    #[arg(long)]
    once: bool,
    /// As JSON, one object a look.
    #[arg(long)]
    json: bool,
}

impl Run for Show {
    fn run(self) -> Result<Exit, Failure> {
        catch_interrupts();
        // Into a file or a pipe it would go on when nobody reads any more.
        let once = self.once || !std::io::stdout().is_terminal();
        let mut before: Option<BTreeMap<String, u64>> = None;
        loop {
            let status = Status::read(&Tree::machine());
            let text = if self.json {
                serde_json::to_string(&status).map_err(Failure::internal)? + "\n"
            } else {
                // In place on a terminal: home, and clear what is below.
                let home = if once { "" } else { "\x1b[H\x1b[J" };
                format!("{home}{}", drawn(&status, before.as_ref()))
            };
            output::drawn(&text)?;
            let pause = u64::try_from(PAUSE.as_nanos()).unwrap_or(u64::MAX);
            if once || !wait_until(monotonic_raw_ns() + pause) {
                let exit = if interrupted() { Exit::Interrupted } else { Exit::Good };
                return Ok(exit);
            }
            before = Some(status.moved);
        }
    }
}

fn drawn(status: &Status, before: Option<&BTreeMap<String, u64>>) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let mut text = String::new();
    for node in &status.nodes {
        text.push_str(&format!(
            "node {}  tier {}  {} MiB, {} MiB free\n",
            node.node,
            node.tier,
            mib(node.bytes),
            mib(node.free)
        ));
    }
    let tiers = |tiers: &Tiers| {
        let share = |(tier, bytes): (&usize, &u64)| format!("tier {tier}: {} MiB", mib(*bytes));
        tiers.iter().map(share).collect::<Vec<_>>().join(", ")
    };
    for (group, shares) in status.groups.iter().filter(|(group, _)| !group.is_empty()).take(SHOWN) {
        text.push_str(&format!("group {group}  {}\n", tiers(shares)));
    }
    for process in status.processes.iter().take(SHOWN) {
        text.push_str(&format!("{}  {}  {}\n", process.pid, process.name, tiers(&process.tiers)));
    }
    for (name, count) in &status.moved {
        let since = before.and_then(|before| before.get(name));
        let rate = since.map_or(String::new(), |since| {
            format!(" ({} a second)", count.saturating_sub(*since) / PAUSE.as_secs())
        });
        text.push_str(&format!("{name}  {count} since boot{rate}\n"));
    }
    for Promoting { by, shown } in &status.promoting {
        let Shown { pid, policy, source, looks, present, used, .. } = shown;
        let (policy, source) = (visible(policy), visible(source));
        text.push_str(&format!(
            "process {pid}: promoted by pagelab {by}, {policy} by {source}: {looks} looks, {used} \
             of {present} pages used, {} promoted, {} demoted, {} hot\n",
            shown.promoted, shown.demoted, shown.hot
        ));
        for HotRange { start, end, hot, pages } in &shown.ranges {
            text.push_str(&format!("  {start:x}-{end:x}  {hot} of {pages} pages hot\n"));
        }
        for why in &shown.reasons {
            text.push_str(&format!("  {}; {}\n", visible(&why.to_string()), why.cure()));
        }
    }
    for hot in &status.hottest {
        let whose = hot.pid.map_or("the machine".to_owned(), |pid| format!("process {pid}"));
        let HotRegion { start, end, accesses, by, granularity, .. } = hot;
        text.push_str(&format!(
            "hot, of {whose}: {start:x}-{end:x}  {accesses} accesses, by {granularity} of {by}\n"
        ));
    }
    for why in &status.reasons {
        text.push_str(&format!("nothing moves: {}; {}\n", why.says, why.cure));
    }
    text
}
