//! What a claim of the witness says, for programs and for people.
//!
//! One row for each: its name in our sources, its id in a journal, its sentence, or how that begins
//! where it names more, and how it began in the journals of versions that wrote no ids. Sentences
//! may be said better at any time, and then the old one is added to these; ids stay.

/// Rows of [`Check`].
macro_rules! checks {
    ($($name:ident $id:literal $claim:literal [$($older:literal),* $(,)?],)*) => {
        /// What a claim says, whatever its sentence is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Check {
            $(#[doc = concat!("`", $id, "`")] $name,)*
        }

        impl Check {
            /// The name in a journal.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// The sentence, where it names nothing more.
            pub const fn claim(self) -> &'static str {
                match self {
                    $(Self::$name => $claim,)*
                }
            }
        }

        /// Ids, and how the sentences of journals begin.
        const STARTS: &[(&str, &[&str])] = &[$(($id, &[$claim, $($older),*]),)*];
    };
}

checks! {
    LoadsThatDiffer "loads-that-differ"
        "loads that differ from the naive memory" ["loads that differ"],
    TraceOperations "trace-operations" "operations of the trace" [],
    ReplayDigest "replay-digest"
        "digest of every load, as the first memory's" ["digest of every load"],
    TraceDigest "trace-digest" "digest of the trace" [],
    Reorderings "reorderings" "reorderings, which the manual forbids here" ["reorderings"],
    SettingInForce "setting-in-force"
        "readings of the arm's setting" ["readings of the rung's setting"],
    FrequencyInForce "frequency-in-force"
        "readings of every frequency governor" ["readings of turbo"],
    PolicyInForce "policy-in-force"
        "processes whose THP policy is not that of the rung (THP_enabled in /proc/PID/status)" [],
    BasePagesOnly "base-pages-only"
        "bytes in larger pages, of anonymous and shared memory" ["bytes in larger pages"],
    ProgramLookedAt "program-looked-at" "runs of the program that nobody could look into" [],
    TraceBytes "trace-bytes" "bytes of the trace that were replayed" [],
    PagesInCache "pages-in-cache" "pages of the trace in the page cache beforehand" [],
    PagesNotInCache "pages-not-in-cache" "pages of the trace not in the page cache beforehand" [],
    ReadCalls "read-calls" "calls of read" [],
    FaultsOfRepetition "faults-of-repetition" "minor faults of a repetition" [],
    FaultsOfTouch "faults-of-touch" "minor faults of the touch" [],
    FaultsOfTouchByPerf "faults-of-touch-by-perf"
        "minor faults of the touch in the warm-up" ["faults of the touch in the warm-up"],
    FaultsOfLoop "faults-of-loop" "page faults of the loop" ["minor faults of the loop"],
    FaultsOfLoopCompleted "faults-of-loop-completed"
        "faults of the loop that the kernel completed" [],
    FaultsOfLoopByPerf "faults-of-loop-by-perf" "faults of the loop in the warm-up" [],
    FaultsOfSegmentFirst "faults-of-segment-first"
        "minor faults of the first pass over a segment" [],
    FaultsOfSegmentAgain "faults-of-segment-again" "minor faults where a segment is taken again" [],
    FaultsOfSegmentRound "faults-of-segment-round" "minor faults of a round over a segment" [],
    FaultsOfSegmentAhead "faults-of-segment-ahead" "minor faults that make a segment present" [],
    FaultsBesideSegment "faults-beside-segment"
        "minor faults of taking, clearing and giving back" [],
    MarkedWords "marked-words"
        "marked words that are not zero when taken again" ["marked words that are not zero"],
    Pooled "pooled" "base pages of a pool" [],
    Astray "astray"
        "base pages that do not lie in their leaf as their addresses do" [
            "base pages that do not lie in their leaf",
        ],
    SegmentLeaves "segment-leaves" "leaves of a segment that are of another size" [],
    SegmentFrames "segment-frames"
        "frames of a segment that are not its base plus the offset" [
            "frames of a segment that are not its base",
        ],
    FaultsOfHarness "faults-of-harness" "page faults of the harness itself" [],
    FaultsOfControl "faults-of-control"
        "faults of the same loop over present pages" [
            "faults of the same loop over present", "minor faults over present",
        ],
    FaultsOfCRound "faults-of-c-round" "minor faults of the whole C round" [],
    FaultsOfPeer "faults-of-peer" "minor faults of the whole loop" [],
    FaultsOfCaller "faults-of-caller" "minor faults of the thread that calls" [],
    MajorFaults "major-faults" "major faults" [],
    MajorFaultsOfPeer "major-faults-of-peer" "major faults of the whole loop" [],
    TouchesWithoutFault "touches-without-fault" "touches that took no fault" [],
    Present "present" "base pages present afterwards" ["bytes present after it"],
    PresentBefore "present-before"
        "base pages present before the touches" ["base pages present before the accesses"],
    PresentWb "present-wb"
        "base pages present (anonymous memory is WB: nothing changed its type)" [
            "base pages present (anonymous memory is WB",
        ],
    Huge "huge" "base pages mapped by a PMD or larger" [],
    HugeBefore "huge-before"
        "base pages mapped by a PMD or larger before the touches" [
            "base pages mapped by a PMD or larger before the accesses",
        ],
    ZeroPage "zero-page" "base pages that are the zero page" [],
    MemoryTaken "memory-taken" "KiB of memory taken by the pages" [],
    HugeZeroMade "huge-zero-made" "huge zero pages made meanwhile" [],
    TablesGivenBack "tables-given-back"
        "KiB of page tables given back before the touches" ["KiB of page tables given back"],
    LazyBefore "lazy-before"
        "KiB that the kernel may take, before the touches" ["KiB that the kernel may take, before"],
    LazyAfter "lazy-after"
        "KiB that the kernel may take, after the touches" ["KiB that the kernel may take, after"],
    OfFile "of-file" "base pages that are the file's own" [],
    StoredTo "stored-to" "base pages stored to afterwards" [],
    Cleared "cleared" "base pages that were cleared" [],
    FileContents "file-contents" "base pages that hold what the file holds" [],
    DirtyBefore "dirty-before"
        "base pages that were dirty before the touches" ["base pages that were dirty before"],
    FileResidentBefore "file-resident-before"
        "pages of the file in memory before the touches" ["pages of the file in memory before"],
    FramesMoved "frames-moved"
        "base pages that lie in another frame afterwards" ["base pages that lie in another frame"],
    UnsharedBefore "unshared-before"
        "base pages that nobody else maps, before the touches" [
            "base pages that nobody else maps, before",
        ],
    Unshared "unshared" "base pages that nobody else maps" [],
    UnsharedAfter "unshared-after"
        "base pages that nobody else maps, after the touches" [
            "base pages that nobody else maps, after",
        ],
    ReusedByOwner "reused-by-owner"
        "pages reused by their last owner, machine-wide, at least" [
            "pages reused by their last owner",
        ],
    MergedCopied "merged-copied"
        "merged pages copied by a store, machine-wide, at least" ["merged pages copied by a store"],
    OnNodeBefore "on-node-before" "base pages on node" [],
    OnOtherNode "on-other-node" "pages asked about that are not on node" [],
    PlacedOnSlow "placed-on-slow" "base pages on the slow node" [],
    LeftSlow "left-slow"
        "base pages that left the slow node, without a mode" ["base pages that left the slow node"],
    Promoted "promoted"
        "base pages promoted, machine-wide, at least those found on the fast node" [
            "base pages promoted, machine-wide",
        ],
    WordsOfAccesses "words-of-accesses" "words that are not what the asked accesses leave" [],
    DigestOfAccesses "digest-of-accesses" "digest of the loads, as the asked accesses make it" [],
    HintFaults "hint-faults" "NUMA hint faults, machine-wide, at least" ["NUMA hint faults"],
    HintEntries "hint-entries"
        "page table entries marked before the touches, machine-wide, at least" [
            "page table entries marked before",
        ],
    InCoreBefore "in-core-before" "base pages in memory before the touches, by mincore" [],
    InSwapBefore "in-swap-before"
        "base pages in swap before the touches" ["base pages in swap before"],
    SwapSpaces "swap-spaces" "swap spaces that they were in" [],
    SwapInUse "swap-in-use" "KiB of " [],
    SwapOthersChanged "swap-others-changed" "changes of other swap spaces" [],
    SwapRead "swap-read" "pages read from swap, machine-wide, at least" ["pages read from swap"],
    FromZswap "from-zswap" "pages that came from zswap" [],
    FoliosAllocated "folios-allocated"
        "folios of this size allocated, machine-wide, at least" ["folios of this size allocated"],
    FallbacksCounted "fallbacks-counted"
        "fallbacks that the kernel counted, machine-wide, at least" [
            "fallbacks that the kernel counted",
        ],
    PageOrBase "page-or-base" "touches that got the page under test or one base page" [],
    FellBack "fell-back"
        "touches that fell back when the page cache was gone, at least" [
            "touches that fell back when the page cache was gone",
        ],
    LimitHits "limit-hits"
        "times that the limit of the group was hit, at least" [
            "times that the limit of the group was hit",
        ],
    ScratchGaveWay "scratch-gave-way"
        "pages of page cache that gave way to the touches, at least" [
            "pages of the scratch file that gave way", "pages of page cache that gave way",
        ],
    CompactionsOrFallbacks "compactions-or-fallbacks"
        "direct compactions and fallbacks of the touches, machine-wide, at least" [
            "direct compactions and fallbacks",
        ],
    FreeBlocks "free-blocks"
        "free blocks of at least this size on the node before the touches" [
            "free blocks of at least this size",
        ],
    Locked "locked" "bytes locked in the process, at least" ["bytes locked in the process"],
    BackedByHost "backed-by-host"
        "touches whose memory the host had to back first, at least half" [
            "touches whose memory the host had to back first",
        ],
    Planted "planted" "repetitions without what was planted" [],
    LostToHost "lost-to-host" "repetitions that lost memory to the host" [],
    MovedCpu "moved-cpu" "loops that ended on another CPU" ["phases that ended on another CPU"],
    CallsMade "calls-made" "calls made" [],
    CallsDuringTouch "calls-during-touch"
        "calls that fell into the touch, at least" ["calls that fell into the touch"],
    PresentForCall "present-for-call" "pages present for the last call" [],
    SamplesInProcesses "samples-in-processes" "samples, each in a process of its own" [],
    PeerPages "peer-pages" "pages that the loop counted" [],
    ToldAtStage "told-at-stage" "faults told at the end of the stage" [],
    EventsLost "events-lost" "events lost" [],
    EventsElsewhere "events-elsewhere"
        "events in another page than the touch's" ["events in another page"],
    EventsInOrder "events-in-order"
        "touches with an event missing, out of order or outside of the stamps" [
            "touches with an event missing",
        ],
    WriteProtected "write-protected" "base pages write-protected afterwards" [],
    WriteProtectedBefore "write-protected-before" "base pages write-protected beforehand" [],
    HandlerElsewhere "handler-elsewhere"
        "handlers on another CPU than the case says" ["handlers on another CPU"],
    LinesResolved "lines-resolved"
        "lines whose contents are not what was resolved" ["lines whose contents are not"],
    EndsAsWritten "ends-as-written"
        "first and last words that are not as they should be" [
            "first and last words", "the buffer holds what was written",
        ],
    ClockWentBack "clock-went-back" "the clock never went back" [],
    SamplesTaken "samples-taken" "samples taken" [],
    FlagSeen "flag-seen"
        "rounds in which the flag was seen, at least" ["rounds in which the flag was seen"],
    FenceWordsUncached "fence-words-uncached"
        "fence words whose page is not UC-" ["fence words whose page is not"],
    RoundsVerified "rounds-verified" "rounds verified" [],
    SumOfLoads "sum-of-loads" "sum of the words loaded" [],
    WordsStored "words-stored" "words stored in a round" [],
    WrongWords "wrong-words" "words that are not what their round stored" [],
    PatIgnored "pat-ignored"
        "UC- memory that is as fast" [
            "UC memory that is as", "WC memory that is as fast", "WT memory that is as fast",
        ],
    OtherLeaves "other-leaves" "leaves that are not " [],
    AccessesDone "accesses-done" "accesses done" [],
    TopTierPages "top-tier-pages"
        "pages in the top tier: those at the start, promoted less demoted" [
            "pages in the top tier",
        ],
    PagesOnNodes "pages-on-nodes" "pages on all nodes at the end" [],
    BytesOfRecords "bytes-of-records" "bytes of the records" [],
    OpsByReuse "ops-by-reuse"
        "operations by reuse distance, first ones included" ["operations by reuse distance"],
    OpsByWidth "ops-by-width" "operations of all widths" [],
    ReadsAndWrites "reads-and-writes" "reads and writes" [],
    OpsByRun "ops-by-run" "runs on a page" [],
    HitsAndMisses "hits-and-misses" "operations that hit or miss" ["absent reads that hit or miss"],
    FileReclaimed "file-reclaimed" "repetitions whose file was reclaimed" [],
    WorkersSay "workers-say" "claims of the kind that hold in the workers" [],
    Messages "messages" "messages read" [],
    MessagesOfStores "messages-of-stores" "messages of stores" [],
    MessagesOfProtection "messages-of-protection" "messages of write protection" [],
    MessagesOfCache "messages-of-cache" "messages of pages in the page cache" [],
    MessagesStrange "messages-strange" "messages of anything but a fault" [],
    Signals "signals" "signals in place of messages" [],
    Poisoned "poisoned" "accesses to poisoned pages" [],
    FaultsResolved "faults-resolved" "faults resolved" [],
    BytesResolved "bytes-resolved" "bytes resolved" [],
    ChainBlocks "chain-blocks"
        "blocks of 4 KiB that a lap of the chain loads from, and is back" [
            "blocks of 4 KiB that a lap of the chain loads from",
        ],
    ChainClosed "chain-closed" "laps that ended elsewhere than they began" [],
    MinorTold "minor-told" "minor faults that perf counted were told or lost" [],
    MajorTold "major-told" "major faults that perf counted were told or lost" [],
    SettingsSteady "settings-steady"
        "settings that decide what faults are, and changed while it was watched" [],
    ToldGrouped "told-grouped" "faults that were told are in one group each" [],
    ProgramsHidden "programs-hidden" "programs that the kernel let nobody watch" [],
    MinorByWait4 "minor-by-wait4" "minor faults that perf counted are among those of wait4" [],
    MajorByWait4 "major-by-wait4" "major faults that perf counted are among those of wait4" [],
    PathRoutine "path-routine"
        "instructions of a routine of known length" [
            "loads of a routine of known length", "stores of a routine of known length",
            "locked of a routine of known length", "bytes of a routine of known length",
        ],
    PathByFunction "path-by-function"
        "instructions of the path by function, as by window" [
            "instructions of the path by function",
        ],
    PathWindows "path-windows" "windows that were neither sampled nor disturbed" [],
    PathBoots "path-boots"
        "boots whose path is another than that of the first" ["boots whose path is another"],
    PathTouches "path-touches" "windows, as touches in the machine" [],
    PathStepped "path-stepped"
        "instructions of the kernel in most windows, as a debugger steps" [
            "instructions of the program in most windows, as a debugger steps",
            "instructions of the kernel in a window, as a debugger steps",
            "instructions of the program in a window, as a debugger steps",
        ],
}

/// A claim: a [`Check`] with its sentence, or with another one that names more.
#[derive(Debug, Clone, Copy)]
pub struct Said<'s> {
    pub(crate) check: Check,
    pub(crate) claim: &'s str,
}

impl From<Check> for Said<'static> {
    fn from(check: Check) -> Self {
        Self { check, claim: check.claim() }
    }
}

impl<'s> From<(Check, &'s str)> for Said<'s> {
    fn from((check, claim): (Check, &'s str)) -> Self {
        Self { check, claim }
    }
}

impl<'s> From<(Check, &'s String)> for Said<'s> {
    fn from((check, claim): (Check, &'s String)) -> Self {
        Self { check, claim }
    }
}

/// The id of a claim in a journal that is older than ids, by its sentence; empty where no version
/// wrote it. Of several beginnings the longest counts.
pub(crate) fn id_of(sentence: &str) -> &'static str {
    let begins = STARTS.iter().flat_map(|(id, starts)| starts.iter().map(move |start| (id, start)));
    let mine = begins.filter(|(_, start)| sentence.starts_with(**start));
    mine.max_by_key(|(_, start)| start.len()).map_or("", |(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_and_no_beginning_stands_for_two_claims() {
        let all: Vec<&str> = STARTS.iter().flat_map(|(_, starts)| starts.iter().copied()).collect();
        let ids: Vec<&str> = STARTS.iter().map(|(id, _)| *id).collect();
        for mut names in [all, ids] {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    #[test]
    fn of_several_beginnings_the_longest_counts() {
        assert_eq!(id_of("major faults of the whole loop"), Check::MajorFaultsOfPeer.id());
        assert_eq!(id_of("major faults"), Check::MajorFaults.id());
        assert_eq!(id_of("KiB of memory taken by the pages"), Check::MemoryTaken.id());
        assert_eq!(id_of("from another world"), "");
    }
}
