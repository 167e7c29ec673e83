//! A rung of chosen mappings beside one of all mappings: the part of its gain and of its memory.
//!
//! The one idea: the ends of the share lie where the ends of the two gains lead, the one against
//! the other: wider than it need be, never narrower. Both are of the rounds in which the pages of
//! both came, each beside base pages with what it carries.

use pagelab_record::{Clock, verdict::Ratio, vocabulary::tried};

use super::super::{Row, Tried, took::Took, values};

/// Two gains, the one over the other: value, and ends.
pub(super) type Share = [f64; 3];

/// A rung of all mappings beside the one of the chosen.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) whole: String,
    /// Of the gain, where the whole has one for sure.
    pub(super) gain: Option<Share>,
    /// What the chosen take less than base pages with the same library, as a share.
    pub(super) own: Share,
    /// What the library takes by itself, as a share.
    pub(super) library: Option<Share>,
    /// Bytes that each holds more than base pages at its peak.
    pub(super) more: [f64; 2],
    /// Whether what all mappings hold more is worth a word.
    is_dear: bool,
}

/// What a rung takes less than another, in the rounds in which the pages of a third came too:
/// value, and ends.
fn gain(tried: &Tried<'_>, row: &Row<'_>, base: &Row<'_>, third: &Row<'_>) -> Option<Share> {
    let goal = tried.goals.first()?;
    let below = values(base.entry, &goal.series, Clock::Wall);
    let both = third.values(&goal.series, Clock::Wall);
    let above = row.values(&goal.series, Clock::Wall).into_iter();
    let above = above.filter(|(round, _)| both.contains_key(round));
    let pairs = above.filter_map(|(round, value)| Some([value, *below.get(&round)?]));
    let ratio = Ratio::of_pairs(&pairs.collect::<Vec<_>>())?;
    let gains = [ratio.value, ratio.low, ratio.high].map(|ratio| 1.0 - tried.less(ratio));
    let [value, one, other] = gains;
    Some([value, one.min(other), one.max(other)])
}

impl Beside {
    pub(super) fn of(tried: &Tried<'_>, fit: &Row<'_>) -> Option<Self> {
        let is_whole = |row: &&Row<'_>| {
            tried::WHOLE.contains(&row.rung.name.as_str()) && matches!(row.took, Took::Yes)
        };
        let wholes = tried.rows.iter().filter(is_whole);
        let plain = tried.named(tried::PLAIN)?;
        let wholes = wholes.filter_map(|row| Some((gain(tried, row, plain, fit)?, row)));
        let (of_all, whole) = wholes.max_by(|one, other| one.0[0].total_cmp(&other.0[0]))?;
        let library = tried.named(tried::FIT_NONE).filter(|row| row.rounds * 2 > fit.rounds);
        let base = library.unwrap_or(plain);
        let own = gain(tried, fit, base, whole)?;
        let more = |row, base: &Row<'_>| tried.more(row, &base.rung.name);
        let more = [more(fit, base)?, more(whole, plain)?];
        let peak = plain.middle(tried::PEAK, Clock::Wall).unwrap_or(0.0);
        // A mapping ends within a page, whoever chooses it.
        let is_dear = more[1] > (peak * 0.01).max(whole.rung.page as f64);
        let library = library.and_then(|row| gain(tried, row, plain, row));
        let library = library.map(|[value, low, high]| [-value, -high, -low]);
        let (whole, gain) = (whole.rung.name.clone(), share(own, of_all));
        Some(Self { whole, gain, own, library, more, is_dear })
    }

    /// The part of the memory that all mappings take more; `None` where that is not worth a word.
    pub(super) fn memory_share(&self) -> Option<f64> {
        self.is_dear.then(|| (self.more[0] / self.more[1]).max(0.0))
    }
}

/// One gain over another that is one for sure.
fn share([value, low, high]: Share, [all, all_low, all_high]: Share) -> Option<Share> {
    (all_low > 0.0).then(|| {
        let ends = [low / all_low, low / all_high, high / all_low, high / all_high];
        let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
        [value / all, least, ends.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_is_told_of_a_gain_that_is_sure() {
        let told = share([0.2, 0.18, 0.22], [0.25, 0.2, 0.3]).unwrap();
        assert!((told[0] - 0.8).abs() < 1e-9 && (told[1] - 0.6).abs() < 1e-9, "{told:?}");
        assert!((told[2] - 1.1).abs() < 1e-9, "{told:?}");
        assert_eq!(share([0.2, 0.1, 0.3], [0.1, -0.1, 0.3]), None);
    }

    proptest! {
        #[test]
        fn a_share_lies_between_its_ends(
            value in -1.0_f64..1.0, width in 0.0_f64..0.5,
            all in 0.1_f64..1.0, part in 0.0_f64..0.9,
        ) {
            let one = [value, value - width, value + width];
            let [share, low, high] = share(one, [all, all * (1.0 - part), all * 1.5]).unwrap();
            prop_assert!(low <= share + 1e-12 && share <= high + 1e-12);
        }
    }
}
