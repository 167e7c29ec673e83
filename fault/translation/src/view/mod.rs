//! `tlb/chase`: what a load takes by memory and page size, and where TLBs end.
//!
//! The one idea: two arms load the same lines in the same order, so what differs between them is
//! translation, and only a step of that difference is a TLB. A step that both have is a cache of
//! data.

mod knees;
mod levels;

use pagelab_record::{
    Case, Measured, units,
    vocabulary::{
        arm::{AGAINST, OURS},
        parameter,
        series::LOAD,
    },
};
use pagelab_report::{
    At, Axis, Cell, Curve, Entry, Grid, Headline, Mark, Numbers, Plane, Quantity, Run, Scale,
    Section, Table, Tone, Unit, all_rows, columns, elapsed, headline::whole, hue, parameters,
};

use self::levels::Level;
use crate::{WORKLOAD, prices};

/// What the smaller pages add, of the series of the arm under test.
const EXTRA: &str = "extra";

/// Adds what translation by the pages under test costs beside the larger ones.
pub(crate) fn derive(_: &Case, measured: &Measured, numbers: &mut Numbers) {
    let extra = prices::extra(measured).map(|extra| {
        let prices::Extra { value, low, high, coverage, processes } = extra;
        Quantity { value, low, high, coverage, processes, unit: Unit::Ns }
    });
    numbers.add(OUR_LOADS, EXTRA, extra);
}

const OUR_LOADS: At<'static> = elapsed(OURS, LOAD);
const OTHER_LOADS: At<'static> = elapsed(AGAINST, LOAD);

fn size(entry: &Entry) -> u64 {
    units::parse_bytes(entry.value(parameter::SIZE)).unwrap_or(0)
}

/// Pages that the chain goes through.
fn pages(entry: &Entry) -> u64 {
    parameters::page_bytes(entry.value(parameter::PAGE))
        .map_or(0, |page| size(entry).div_ceil(page))
}

/// The records by page size, then by memory.
fn mine(run: &Run) -> Vec<&Entry> {
    let mut mine = run.rows(WORKLOAD);
    let rank = |entry: &Entry| {
        let page = |name| parameters::page_rank(entry.value(name));
        (page("page"), page("against"), size(entry))
    };
    mine.sort_by_key(|entry| rank(entry));
    mine
}

/// Those of one page size and of what it stands against.
fn groups<'e>(mine: &[&'e Entry]) -> Vec<Vec<&'e Entry>> {
    let pair = |entry: &'e Entry| (entry.value(parameter::PAGE), entry.value(parameter::AGAINST));
    mine.chunk_by(|a, b| pair(a) == pair(b)).map(<[_]>::to_vec).collect()
}

/// The table, the chart and the knees, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = mine(run);
    mine.first()?;
    let groups = groups(&mine);
    let mut section = Section::new("tlb", "Translation: loads by memory and page size");
    section.all(plane(&groups));
    let mut shown = columns(&mine, &["page"]);
    shown.retain(|name| !["size", "page", "against"].contains(&name.as_str()));
    section.add(table(&mine, &shown));
    let named = [shown, ["size", "page", "against"].map(str::to_owned).to_vec()].concat();
    section.add(format!(
        "{}A load of a chain, each waiting for the one before it: one line in each 4 KiB, each \
         loaded again after all others. Beside: the same lines in the same order over larger \
         pages, in the same process; the data caches do the same for both. More: what the smaller \
         pages add, repetition by repetition, which is translation.",
        all_rows(&mine, &named)
    ));
    let levels: Vec<Level> = groups.iter().flat_map(|group| levels::of(group)).collect();
    if levels.is_empty() {
        let text = "Knees: no step of these times is beyond its interval.";
        section.add(text);
    } else {
        section.add(levels::table(&levels));
        section.add(levels::LEGEND.to_owned());
    }
    section.all(guest(&mine));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

/// What a hypervisor does to a walk.
fn guest(mine: &[&Entry]) -> Option<String> {
    let hypervisor = |entry: &&Entry| {
        let name = entry.record.host.identity.get("hypervisor")?.as_str()?;
        (name != "none").then(|| name.to_owned())
    };
    mine.iter().find_map(hypervisor).map(|name| {
        format!(
            "Measured in a guest ({name}): a walk is two-dimensional, through the guest's tables \
             and for each of their addresses through the host's, and an entry of a TLB reaches no \
             further than the smaller of the two pages. What the processor says of its TLBs is \
             what the hypervisor lets it say."
        )
    })
}

fn table(mine: &[&Entry], shown: &[String]) -> Table {
    let of = |entry: &Entry, at, statistic| entry.numbers.get(at, statistic);
    Grid::<&Entry>::new()
        .words("page", 0, |entry| entry.parameter_cell("page"))
        .case(shown, |entry| entry)
        .words("size", 0, |entry| entry.parameter_cell("size"))
        .number("pages", 2, |entry| pagelab_report::group_thousands(pages(entry) as f64))
        .number("a load", 0, move |entry| Cell::spread(of(entry, OUR_LOADS, "p50")).strong())
        .words("beside", 3, |entry| {
            of(entry, OTHER_LOADS, "p50").map(|_| entry.value(parameter::AGAINST).to_owned())
        })
        .number("a load there", 1, move |entry| Cell::spread(of(entry, OTHER_LOADS, "p50")))
        .number("more", 0, |entry| {
            Cell::maybe(of(entry, OUR_LOADS, EXTRA).map(display_extra)).strong()
        })
        .number("proc×rep", 4, |entry| entry.counts(OUR_LOADS))
        .words("witness", 0, |entry| entry.proof())
        .told(mine.iter().copied())
}

/// `+12.3 ns (+11.9 … +12.8)`: a difference may be one to either side of nothing.
fn display_extra(extra: Quantity) -> String {
    let Quantity { value, low, high, .. } = extra;
    let signed = |ns: f64| format!("{ns:+.1}").replace('-', "−");
    let ends = format!(" ({} … {})", signed(low), signed(high));
    format!("{} ns{}", signed(value), if low < high { ends } else { String::new() })
}

/// Loads by memory, a curve for each page size.
fn plane(groups: &[Vec<&Entry>]) -> Option<Plane> {
    let curve = |group: &[&Entry], at: At<'_>| -> Vec<(f64, Quantity)> {
        let point = |entry: &&Entry| Some((size(entry) as f64, entry.numbers.get(at, "p50")?));
        group.iter().filter_map(point).collect()
    };
    let mut curves = Vec::new();
    let mut beside: Vec<&str> =
        groups.iter().map(|group| group[0].value(parameter::PAGE)).collect();
    for (nth, group) in groups.iter().enumerate() {
        let points = curve(group, OUR_LOADS);
        curves.push(Curve::of(beside[nth].to_owned(), Some(hue(nth)), Mark::Knots, &points));
    }
    // What stands beside another is drawn once, unless it is a case of its own.
    for group in groups {
        let against = group[0].value(parameter::AGAINST);
        let points = curve(group, OTHER_LOADS);
        if !beside.contains(&against) && !points.is_empty() {
            beside.push(against);
            curves.push(Curve::of(format!("{against}, beside"), None, Mark::Knots, &points));
        }
    }
    let mut sizes: Vec<u64> = groups.iter().flatten().map(|entry| size(entry)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let ends = [*sizes.first()? as f64 / 1.2, *sizes.last()? as f64 * 1.2];
    let doublings = sizes.iter().filter(|size| size.is_power_of_two());
    let x = Axis::new("memory", Unit::Count, Scale::Doublings).between(ends[0], ends[1]);
    let places = doublings.map(|size| (*size as f64, units::format_bytes(*size)));
    Plane::new(
        "What a load takes, by memory and page size",
        "Dependent loads of one line in each 4 KiB; whiskers are intervals. Where curves part, \
         translation costs; where they rise together, a cache of data ends.",
        [x.at(places.collect()), Axis::new("a load, ns", Unit::Ns, Scale::Decades)],
        curves,
    )
    .shown()
}

/// What small pages cost where the interval says that they cost anything.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let mine = mine(run);
    let groups = groups(&mine);
    let told = |group: &Vec<&Entry>| {
        let priced = |entry: &&Entry| entry.numbers.get(OUR_LOADS, EXTRA).is_some();
        let mut priced: Vec<&Entry> = group.iter().copied().filter(priced).collect();
        // Where it can be had at a size that people ask of, else at the largest.
        priced.sort_by_key(|entry| (entry.value(parameter::SIZE) == "1g", size(entry)));
        let entry = priced.last().copied()?;
        let extra = entry.numbers.get(OUR_LOADS, EXTRA)?;
        let is_sure = extra.low > 0.0 && extra.processes > 1;
        is_sure.then(|| headline_of(entry, extra))
    };
    groups.iter().filter_map(told).take(1).collect()
}

fn headline_of(entry: &Entry, extra: Quantity) -> Headline {
    let name = |parameter: &str| {
        let page = entry.value(parameter);
        let bytes = parameters::page_bytes(page).map_or_else(|| page.to_owned(), whole);
        if page.starts_with("hugetlb-") { format!("{bytes} hugetlb") } else { bytes }
    };
    let load = |at| entry.numbers.get(at, "p50").map(Quantity::display);
    let both = load(OUR_LOADS).zip(load(OTHER_LOADS));
    let both = both.map(|(ours, other)| format!("{ours} a load, {other} there"));
    let label = format!(
        "more for a load over {} pages than over {} pages, {}",
        name("page"),
        name("against"),
        whole(size(entry))
    );
    let interval = Some(extra.told_interval()).filter(|interval| !interval.is_empty());
    let detail = interval.into_iter().chain(both).collect::<Vec<_>>().join(" · ");
    Headline { value: extra.display(), label, detail, tone: Tone::Strong }
}
