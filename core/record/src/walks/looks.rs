//! What was seen in windows, as a table of a record.

use crate::{Table, units::whole, vocabulary::table::WALKS};

/// What was walked to in one kind of memory within a window, in base pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Walked {
    /// At least; where larger pages lie in the same mapping, whose they are is not always known.
    pub least: u64,
    /// At most.
    pub most: u64,
    /// Of the least, those that lay where a page of 2 MiB could.
    pub whole: u64,
}

/// One window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Nanoseconds on the CPU that it stands for: those of its process since the look before.
    pub stands_ns: u64,
    /// Which of the lengths that were aimed at, the shortest first.
    pub level: u64,
    /// Nanoseconds from when a bit was cleared to when it was read.
    pub window_ns: u64,
    /// Nanoseconds that the process was on the CPU meanwhile, as far as ticks tell.
    pub cpu_ns: u64,
    /// Base pages that were present, in pages of that size.
    pub resident: u64,
    /// By the place of [`Looks::places`].
    pub walked: Vec<Walked>,
}

/// Every window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looks {
    /// The kinds of memory.
    pub places: Vec<String>,
    /// In the order of time.
    pub looks: Vec<Look>,
}

const COLUMNS: [(&str, &str); 5] = [
    ("stands_ns", "ns"),
    ("level", "count"),
    ("window_ns", "ns"),
    ("cpu_ns", "ns"),
    ("resident", "pages"),
];
const ENDINGS: [&str; 3] = ["", "_most", "_whole"];

impl Looks {
    /// As a table.
    pub fn table(&self) -> Table {
        let fixed = COLUMNS.map(|(name, unit)| (name.to_owned(), unit)).into_iter();
        let of_places = self.places.iter().flat_map(|place| {
            ENDINGS.iter().map(move |ending| (format!("{place}{ending}"), "pages"))
        });
        let row = |look: &Look| {
            let fixed = [look.stands_ns, look.level, look.window_ns, look.cpu_ns, look.resident];
            let cells = look.walked.iter().flat_map(|w| [w.least, w.most, w.whole]);
            fixed.into_iter().chain(cells).collect::<Vec<u64>>()
        };
        Table::new(WALKS, fixed.chain(of_places), self.looks.iter().map(row))
    }

    /// From the tables of a record, where one is it.
    pub fn of(tables: &[Table]) -> Option<Self> {
        let table = tables.iter().find(|table| table.name == WALKS)?;
        let index = |name: &str| table.index(name);
        let fixed = COLUMNS.map(|(name, _)| index(name));
        let names = table.columns.iter().filter_map(|c| c.name.strip_suffix(ENDINGS[1]));
        let places: Vec<String> = names.map(str::to_owned).collect();
        let of_places: Vec<[Option<usize>; 3]> =
            places.iter().map(|place| ENDINGS.map(|end| index(&format!("{place}{end}")))).collect();
        let look = |row: &Vec<i64>| {
            let cell = |at: Option<usize>| {
                at.and_then(|at| u64::try_from(*row.get(at)?).ok()).unwrap_or(0)
            };
            let [stands_ns, level, window_ns, cpu_ns, resident] = fixed.map(cell);
            let walked = of_places.iter().map(|at| {
                let [least, most, whole] = at.map(cell);
                Walked { least, most, whole }
            });
            Look { stands_ns, level, window_ns, cpu_ns, resident, walked: walked.collect() }
        };
        Some(Self { places, looks: table.rows.iter().map(look).collect() })
    }

    /// Nanoseconds on the CPU that all of them stand for.
    pub fn stand_for(&self) -> f64 {
        self.looks.iter().map(|look| look.stands_ns as f64).sum()
    }

    /// The last one stands for so many nanoseconds more.
    pub fn last_stands_for(&mut self, more_ns: f64) {
        if let Some(last) = self.looks.last_mut() {
            last.stands_ns = last.stands_ns.saturating_add(whole(more_ns));
        }
    }

    /// Those between which the program held about as much, within a factor of two: a program that
    /// grows is not the same later.
    pub fn phases(&self) -> Vec<Vec<&Look>> {
        let class = |look: &Look| look.resident.max(1).ilog2();
        let mut sorted: Vec<&Look> = self.looks.iter().collect();
        sorted.sort_by_key(|look| class(look));
        sorted.chunk_by(|a, b| class(a) == class(b)).map(<[_]>::to_vec).collect()
    }
}

/// Wall time that is worth as much as what was seen in the windows of one length: five ticks.
const DOUBT_NS: f64 = 20e6;

/// How much of the windows of some looks a program was on the CPU. A tick is longer than many a
/// window, so few windows of one length say little: what all of them say counts as well.
pub fn busy(mine: &[&Look], all: &[&Look]) -> f64 {
    let sum = |looks: &[&Look], of: fn(&Look) -> u64| looks.iter().map(|l| of(l) as f64).sum();
    let [cpu, window]: [f64; 2] = [sum(mine, |look| look.cpu_ns), sum(mine, |look| look.window_ns)];
    let all: [f64; 2] = [sum(all, |look| look.cpu_ns), sum(all, |look| look.window_ns)];
    let of_all = if all[1] > 0.0 { all[0] / all[1] } else { 0.0 };
    (cpu + of_all * DOUBT_NS) / (window + DOUBT_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(resident: u64, least: u64) -> Look {
        let walked = vec![Walked { least, most: least + 1, whole: least / 2 }; 2];
        Look { stands_ns: 7, level: 1, window_ns: 1000, cpu_ns: 900, resident, walked }
    }

    #[test]
    fn a_table_tells_what_it_was_made_of() {
        let looks = Looks {
            places: vec!["heap".to_owned(), "private-file".to_owned()],
            looks: vec![look(100, 50), look(5000, 0)],
        };
        assert_eq!(Looks::of(&[looks.table()]).as_ref(), Some(&looks));
        let mut later = looks.clone();
        later.last_stands_for(5.4);
        assert_eq!((looks.stand_for(), later.stand_for()), (14.0, 19.0));
        assert_eq!(Looks::of(&[]), None);
    }

    #[test]
    fn short_windows_are_taken_to_be_as_busy_as_all_of_them() {
        let look = |window_ns, cpu_ns| Look { window_ns, cpu_ns, ..Look::default() };
        // No tick fell into the short ones.
        let (short, long) = (look(1_000_000, 0), look(300_000_000, 150_000_000));
        let share = busy(&[&short], &[&short, &long]);
        assert!((share - 0.5).abs() < 0.03, "{share}");
        let share = busy(&[&long], &[&short, &long]);
        assert!((share - 0.5).abs() < 0.01, "{share}");
        assert!(busy(&[], &[]).abs() < 1e-12);
    }

    #[test]
    fn what_holds_twice_as_much_is_another_phase() {
        let looks = [100, 4000, 120, 5000, 0].map(|resident| look(resident, 1));
        let looks = Looks { places: Vec::new(), looks: looks.to_vec() };
        let sizes: Vec<Vec<u64>> =
            looks.phases().iter().map(|p| p.iter().map(|l| l.resident).collect()).collect();
        assert_eq!(sizes, [vec![0], vec![100, 120], vec![4000], vec![5000]]);
    }
}
