//! Programs that are started with a source inside, and what is predicted of one.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{BALANCING, SEEDS, replayed};
use crate::{
    guest::{Guest, scratch, set, text},
    verdict::Verdict,
};

/// Each source inside a program that this kernel has: loads alone, and stores.
pub(in crate::cases) fn program(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let listed = guest.run(&["tier", "sources", "--format", "json"])?;
    let sources: Value = serde_json::from_str(&listed.stdout)?;
    let has = |name: &str| {
        let rows = sources.as_array().into_iter().flatten();
        rows.filter(|row| row["name"] == name).any(|row| row["lack"].is_null())
    };
    ensure!(has("prot-none"), "no library: {}", listed.stdout);
    for (source, what) in [("prot-none", "load"), ("write-protect", "store")] {
        if source == "prot-none" || has(source) {
            guest.part(source, inside(guest, source, what));
        }
    }
    Verdict::ok("what was used is on the fast node")
}

/// Milliseconds for which a program goes on at most, unless its pages are where they should be: a
/// machine that has a part of a processor takes seconds to look at everything.
const LONGEST: &str = "900000";

fn inside(guest: &Guest, source: &str, what: &str) -> Result<Verdict> {
    let (pages, log) = (scratch(), scratch());
    let seed = SEEDS[1].to_string();
    let words = ["tier", "promote", "--source", source, "--interval", "0.5", "--log", &log, "--"];
    let hot = ["/bin/hot", "16", &seed, LONGEST, what, &pages, "1"];
    let before = moves()?;
    let ran = guest.run(&[&words[..], &hot].concat())?;
    let after = moves()?;
    let changed = after.iter().filter(|count| !before.contains(count));
    guest.note(format!("{source}: {}", changed.cloned().collect::<Vec<_>>().join(", ")));
    ensure!(ran.code == 0, "exit code {}: {}{}", ran.code, ran.stdout, ran.stderr);
    let mut lines = ran.stdout.lines();
    let counts: Vec<usize> =
        lines.next().unwrap_or_default().split(' ').flat_map(str::parse).collect();
    ensure!(lines.next() == Some("correct"), "the program says: {}", ran.stdout);
    let [hot, all_hot, cold, all_cold] = counts[..] else { anyhow::bail!("{}", ran.stdout) };
    let found = format!("{hot} of {all_hot} hot, {cold} of {all_cold} others");
    guest.note(format!("{source}: {found}; {}", ran.stderr));
    ensure!(hot * 100 >= all_hot * 99, "{found}");
    ensure!(cold * 100 <= all_cold, "{found}");
    let _ = fs::remove_file(&pages);
    replayed(guest, &log)?;
    Verdict::ok(found)
}

/// What the kernel counts of pages that move, for whoever else moves some.
fn moves() -> Result<Vec<String>> {
    let kinds = ["numa_", "pgmigrate_", "pgpromote_", "pgdemote_", "compact_", "thp_"];
    let vmstat = text("/proc/vmstat")?;
    let is_one = |line: &&str| kinds.iter().any(|kind| line.starts_with(kind));
    Ok(vmstat.lines().filter(is_one).map(str::to_owned).collect())
}

/// A curve that was measured here, a prediction from it, and what came: counts, not times.
pub(in crate::cases) fn explain(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let (pages, curve) = (scratch(), scratch());
    let words = ["tier", "calibrate", "--size", "2m", "--accesses", "2k", "--rounds", "1"];
    let ran = guest.done(&[&words[..], &["--write", &curve, "--format", "json"]].concat())?;
    let measured: Value = serde_json::from_str(&ran.stdout)?;
    let points = measured["points"].as_array().context("no points")?.len();
    ensure!(points == 11, "{points} points: {}", ran.stdout);
    let mut found = String::new();
    for longest in LONGEST_EXPLAINED {
        let (predicted, promoted) = explained(guest, longest, &curve, &pages)?;
        found = format!("{predicted} pages predicted, {promoted} promoted");
        guest.note(format!("{longest} ms: {found}"));
        // An eighth of 4096 is hot; the program has some pages beside.
        if predicted >= 507 && promoted >= 507 {
            let _ = fs::remove_file(&curve);
            return Verdict::ok(found);
        }
    }
    bail!("{found}")
}

/// Milliseconds for which the program runs at most, one after the other until all of it was seen: a
/// machine that has a part of a processor looks once, which is enough for this policy.
const LONGEST_EXPLAINED: [&str; 4] = ["15000", "60000", "240000", "240000"];

/// Pages that are promoted, predicted and counted.
fn explained(guest: &Guest, longest: &str, curve: &str, pages: &str) -> Result<(u64, u64)> {
    let words = ["tier", "explain", "--policy", "none,history:hot=1", "--source", "write-protect"];
    let more = ["--interval", "0.2", "--curve", curve, "--runs", "1", "--format", "json", "--"];
    let seed = SEEDS[0].to_string();
    let hot = ["/bin/hot", "16", &seed, longest, "store", pages, "1"];
    let ran = guest.run(&[&words[..], &more, &hot].concat())?;
    let _ = fs::remove_file(pages);
    ensure!(ran.code == 0, "exit code {}: {}{}", ran.code, ran.stdout, ran.stderr);
    guest.note(&ran.stderr);
    let line = ran.stderr.lines().find(|line| line.starts_with('{')).context("no JSON")?;
    let told: Value = serde_json::from_str(line)?;
    ensure!(told["nothing_moves"].is_null(), "{line}");
    let of = |nth: usize| -> Option<[u64; 2]> {
        let policy = &told["policies"][nth];
        let promoted = |of: &Value| of["promoted"].as_u64();
        Some([promoted(&policy["predicted"])?, promoted(&policy["took"][0])?])
    };
    let [none, history] = [of(0), of(1)].map(|counts| counts.context("no counts"));
    let (none, [predicted, promoted]) = (none?, history?);
    ensure!(none == [0, 0], "without a policy {none:?} pages were promoted");
    Ok((predicted, promoted))
}
