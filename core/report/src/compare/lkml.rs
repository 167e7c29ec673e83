//! A comparison as plain text for a cover letter.
//!
//! The one idea: what a reviewer on a kernel list looks for and nothing else: which machine, by how
//! many per cent, how sure, from how many processes; in the width that a mail has. A name that is
//! too long stands on a line of its own.

use super::{
    Comparison,
    judged::{Against, Cell},
    sections,
};
use crate::visible::visible;

/// Columns that the numbers take: change, interval, processes, verdict.
const NUMBERS: usize = 38;

pub(super) fn render(comparison: &Comparison<'_>, columns: usize) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    let others = comparison.against.first().map_or("", |against| against.name.as_str());
    if let Some([a, b]) = sections::example(comparison) {
        let [here, there] = [a, b].map(sections::machine);
        if here == there {
            wrapped(&here, columns, &mut line);
        } else {
            for (name, machine) in [(comparison.base_name.as_str(), here), (others, there)] {
                if !machine.is_empty() {
                    wrapped(&format!("{name}: {machine}"), columns, &mut line);
                }
            }
        }
    }
    for against in &comparison.against {
        line("");
        let tie = sections::share(comparison.delta);
        let tie = format!(", a tie is within {tie}");
        let tie = if against.cells.is_empty() { "" } else { &tie };
        let head = format!("{} -> {}{tie}", comparison.base_name, against.name);
        wrapped(&head, columns, &mut line);
        for text in against.counts.iter().flat_map(|(_, counts)| counts.mail(columns)) {
            if text.chars().count() > columns {
                wrapped(&text, columns, &mut line);
            } else {
                line(&text);
            }
        }
        let width = columns.saturating_sub(NUMBERS).max(12);
        if against.cells.is_empty() {
            left(against, columns, &mut line);
            continue;
        }
        line(&format!("{:width$} {:>7} {:<8} {:>5} {}", "", "%change", "+-95%", "n", "verdict"));
        for cell in &against.cells {
            let name = format!("{} {}", cell.short, cell.metric());
            if name.chars().count() > width {
                wrapped(&name, columns, &mut line);
                line(&format!("{:width$} {}", "", numbers(cell)));
            } else {
                line(&format!("{name:width$} {}", numbers(cell)));
            }
        }
        left(against, columns, &mut line);
        if let Some(position) = &against.position {
            wrapped(&sections::position(position), columns, &mut line);
        }
    }
    visible(&text)
}

/// `+5.10 +-0.90   8+8 SLOWER`; a change without an interval has none behind it.
fn numbers(cell: &Cell<'_>) -> String {
    let change = cell.ratio.map(|ratio| format!("{:+.2}", (ratio.value - 1.0) * 100.0));
    let half = cell.ratio.and_then(|ratio| ratio.interval());
    let half = half.map(|[low, high]| format!("+-{:.2}", (high - low) / 2.0 * 100.0));
    let [a, b] = cell.counts();
    let counts = if a + b > 0 { format!("{a}+{b}") } else { "-".to_owned() };
    let (change, half) = (change.unwrap_or_else(|| "-".to_owned()), half.unwrap_or_default());
    format!("{change:>7} {half:<8} {counts:>5} {}", cell.verdict)
}

fn left(against: &Against<'_>, columns: usize, line: &mut dyn FnMut(&str)) {
    if !against.left.is_empty() {
        let text = format!("{} cases are not in both and not compared.", against.left.len());
        wrapped(&text, columns, line);
    }
}

/// Broken between words; a word that is longer than a line is cut.
fn wrapped(text: &str, columns: usize, line: &mut dyn FnMut(&str)) {
    let mut whole = String::new();
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        if !whole.is_empty() && whole.chars().count() + 1 + rest.len() > columns {
            line(&whole);
            whole.clear();
        }
        while rest.len() > columns {
            line(&rest.drain(..columns).collect::<String>());
        }
        if !whole.is_empty() {
            whole.push(' ');
        }
        whole.extend(rest);
    }
    line(&whole);
}
