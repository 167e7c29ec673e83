//! The tables of a scenario file that hold numbers, and how one is laid over another.
//!
//! The one idea: a field is an optional [`Constant`], so that the tables of a run are laid over
//! those of its file field by field, and every number can be listed with its name and its origin.

use serde::Deserialize;

use super::constant::Constant;

/// What is laid over another.
pub trait Layer {
    /// This, and what is not said here as in `base`.
    #[must_use]
    fn over(&self, base: &Self) -> Self;

    /// Every number that there is, with its name in a file.
    fn each(&self) -> Vec<(String, &Constant)> {
        Vec::new()
    }
}

impl<T: Clone> Layer for Option<T> {
    fn over(&self, base: &Self) -> Self {
        self.clone().or_else(|| base.clone())
    }
}

/// Declares a table of constants.
macro_rules! sections {
    ($($(#[$about:meta])* $name:ident { $($(#[$help:meta])* $field:ident),+ $(,)? })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name { $($(#[$help])* pub $field: Option<Constant>),+ }

        impl Layer for $name {
            fn over(&self, base: &Self) -> Self {
                Self { $($field: self.$field.over(&base.$field)),+ }
            }

            fn each(&self) -> Vec<(String, &Constant)> {
                let all = [$((stringify!($field), &self.$field)),+];
                let known = all.into_iter().filter_map(|(name, constant)| {
                    Some((name.replace('_', "-"), constant.as_ref()?))
                });
                known.collect()
            }
        }
    )+};
}

sections! {
    /// `[memory]`: the pages of the program and the nodes that they can be on.
    Memory {
        /// Bytes of the working set.
        size,
        /// Bytes of a page.
        page,
        /// Bytes of the top tier that the program can have, all nodes together.
        fast,
        /// Nodes of the top tier, each with processors.
        fast_nodes,
        /// Bytes of a tier between the top and the lowest; none without.
        middle,
        /// Share of the accesses to a page that come from its own node.
        locality,
    }

    /// `[work]`: who accesses, and how often.
    Load {
        /// Accesses that miss the caches, of all threads.
        accesses,
        /// Threads.
        threads,
        /// Share of the accesses that are stores.
        stores,
        /// Equal parts that the run consists of; its time is that of one.
        repeats,
    }

    /// `[curve]`: how long all accesses take, in seconds, by where the pages are.
    Ends {
        /// Everything in the top tier.
        fast,
        /// Everything in the lowest tier.
        slow,
        /// Everything in the tier between.
        middle,
        /// Congestion of the lower tiers: 1 is additive.
        exponent,
        /// Everything in the top tier, but on another node.
        remote,
    }

    /// `[curve.physical]`: the same from latency, bandwidth and what is in flight.
    Physical {
        /// Seconds of a load of the top tier with nothing else going on.
        fast_latency,
        /// Bytes a second of the top tier.
        fast_bandwidth,
        /// Seconds of a load of the lower tier.
        slow_latency,
        /// Bytes a second of the lower tier.
        slow_bandwidth,
        /// What a written line costs in bandwidth, in lines that are read.
        write_weight,
        /// Seconds that a remote node adds.
        remote_latency,
        /// Accesses in flight for each thread.
        in_flight,
        /// Seconds between two accesses that wait for each other.
        think,
    }

    /// `[sampling]`: the processor samples accesses.
    Samples {
        /// Accesses for one sample.
        period,
        /// The shortest period that the driver takes; 0 where it is not adjustable.
        period_min,
        /// The longest one.
        period_max,
        /// The period is random by so many accesses.
        jitter,
        /// Share of samples that are lost.
        loss,
        /// Samples that fit into all rings; 0 for any number.
        ring,
        /// Seconds after which the rings are emptied.
        drain,
        /// How often an access to the top tier counts, against 1 for the lower tiers.
        bias,
        /// 1: stores are not sampled.
        loads_only,
        /// `l3miss-only`: 0 where accesses that the caches answer are sampled, too.
        l3miss_only,
        /// Loads and stores for each access that misses the caches; read without `l3miss-only`.
        operations,
        /// `lat-filter`: 1 where only loads are told that take long enough.
        lat_filter,
        /// `lat-thresh`: (this + 1) × 128 cycles are long enough.
        lat_thresh,
        /// Cycles of a nanosecond; read with `lat-filter`.
        ghz,
        /// Seconds that a sample takes from its thread.
        cost,
    }

    /// `[hints]`: the scanner takes the present bit away and waits for faults.
    Hints {
        /// Seconds before the first scan.
        delay,
        /// Seconds between scans at the start.
        period,
        /// Shortest period, in seconds.
        period_min,
        /// Longest period, in seconds.
        period_max,
        /// 1: the period moves after a full pass.
        adapts,
        /// Share of faults that count as private to their thread.
        private,
        /// Entries that one scan changes.
        updates,
        /// Pages that one scan passes.
        virtual_pages,
        /// Pages walked at once.
        chunk,
        /// Share of faults whose page cannot be moved.
        failure,
        /// Seconds in which another access to the page faults too.
        duplicate,
        /// Seconds that a fault takes from its thread.
        fault,
    }

    /// `[bits]`: accessed or written bits of every page are read and cleared.
    Bits {
        /// Seconds between passes.
        period,
        /// Seconds for each page that the scanner is busy with.
        page,
        /// Seconds for each page that it takes from the program.
        stall,
    }

    /// `[mover]`: the daemon that moves pages.
    Daemon {
        /// Seconds between looks when there is nothing to do.
        sleep,
        /// Seconds for each record that it walks over.
        walk,
        /// Seconds to move a page.
        copy,
        /// Pages moved at once.
        batch,
        /// Share of pages that cannot be moved.
        failure,
        /// Bytes a second that may be moved.
        rate_limit,
        /// Seconds that a batch takes from every thread.
        flush,
        /// Accesses' worth of lower-tier time that a copy takes from the program.
        copy_accesses,
        /// Seconds after a demotion in which a promotion is a ping-pong.
        ping_pong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_table_is_laid_over_another_field_by_field() {
        let one = |value| Some(Constant::given(value));
        let base = Ends { fast: one(1.0), slow: one(9.0), ..Ends::default() };
        let run = Ends { fast: one(2.0), ..Ends::default() };
        let both = run.over(&base);
        assert_eq!((both.fast, both.slow, both.exponent), (one(2.0), one(9.0), None));
    }

    #[test]
    fn numbers_are_listed_by_their_name_in_the_file() {
        let daemon: Daemon = toml::from_str("rate-limit = '64m'").unwrap();
        let names: Vec<String> = daemon.each().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["rate-limit"]);
        assert!(toml::from_str::<Daemon>("rate = 3").is_err());
    }
}
