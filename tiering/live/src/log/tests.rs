//! Logs that are whole, cut off, changed, or none.

use std::{cell::RefCell, rc::Rc};

use proptest::prelude::*;

use super::*;

/// A log that can be read while it is written.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of a few passes that lead to moves.
fn log() -> Vec<u8> {
    let shared = Shared::default();
    let header =
        Header { schema: SCHEMA.into(), pid: 7, source: "soft-dirty".into(), nodes: vec![0, 1] };
    let node = |tier, cpus| Node { tier, pages: 5000, cpus };
    let nodes = vec![node(0, true), node(1, false)];
    let start = Start { policy: "history".into(), pages: 1024, nodes };
    let out: Box<dyn Write> = Box::new(shared.clone());
    let mut recorder = Recorder::new(&header, &start, Some(out)).unwrap();
    recorder.tell(&Line::Placed(vec![(0, 1000, Some(1))])).unwrap();
    recorder.tell(&Line::Blocks(vec![(0, 7 << 21), (1, 9 << 21)])).unwrap();
    let mut moved = 0;
    for now in 1..6 {
        recorder.tell(&Line::World { now, free: vec![4000, 10] }).unwrap();
        let pages = vec![(5, 3), (900, 20)];
        recorder.tell(&Line::Scan { pages, writes: true, window: 1 }).unwrap();
        for step in recorder.decide().unwrap() {
            moved += 1;
            let went = if step.page == 6 { (How::Failed, 1) } else { (How::Done, step.to) };
            recorder.tell(&Line::Moved(vec![(step.page, 1, went.0, went.1)])).unwrap();
        }
    }
    recorder.restart(&start).unwrap();
    assert!(moved > 20, "{moved}");
    shared.0.take()
}

fn line_of(error: &LogError) -> u64 {
    match error {
        LogError::Io { line, .. } | LogError::Line { line, .. } => *line,
    }
}

#[test]
fn a_replay_makes_every_decision_again() {
    let (header, found) = replay(&mut &log()[..], PAGES_MAX).unwrap();
    assert_eq!((header.pid, found.decisions), (7, 5));
    assert!(found.moves > 20 && found.differing.is_empty() && !found.is_torn, "{found:?}");
}

#[test]
fn a_decision_that_was_another_is_found_with_its_line() {
    let text = String::from_utf8(log()).unwrap();
    let changed = text.replacen("[[5,0],", "[[4,0],", 1);
    assert_ne!(text, changed);
    let (_, found) = replay(&mut changed.as_bytes(), PAGES_MAX).unwrap();
    let at = text.lines().position(|line| line.contains("[[5,0],")).unwrap() as u64 + 1;
    assert_eq!(found.differing, [at]);
}

#[test]
fn a_log_that_was_cut_off_is_whole_to_its_last_line() {
    let bytes = log();
    let (_, found) = replay(&mut &bytes[..bytes.len() - 9], PAGES_MAX).unwrap();
    assert!(found.is_torn && found.differing.is_empty());
}

#[test]
fn what_is_no_log_is_refused_by_its_line() {
    let text = String::from_utf8(log()).unwrap();
    let of_another = text.replacen("tier-log/2", "tier-log/1", 1);
    let error = replay(&mut of_another.as_bytes(), PAGES_MAX).unwrap_err();
    assert!(error.to_string().contains("pagelab.tier-log/1"), "{error}");
    for (was, is, line) in [
        ("{\"placed\":[[0,", "{\"placed\":[[4000000000,", 3),
        ("{\"world\":{\"now\":1,\"free\":[4000,", "{\"world\":{\"now\":1,\"free\":[", 5),
        ("\"pages\":1024", "\"pages\":4294967295", 2),
        ("\"history\"", "\"nonsense\"", 2),
        ("{\"start\"", "{\"stop\"", 2),
    ] {
        let wrong = text.replacen(was, is, 1);
        assert_ne!(wrong, text, "{was}");
        let error = replay(&mut wrong.as_bytes(), PAGES_MAX).unwrap_err();
        assert_eq!(line_of(&error), line, "{error}");
    }
    assert!(replay(&mut &b""[..], PAGES_MAX).is_err());
    let without_start: String = text.lines().filter(|line| !line.contains("start")).collect();
    assert!(replay(&mut without_start.as_bytes(), PAGES_MAX).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_a_replay_panic(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut log = log();
        let at = at.index(log.len());
        let end = (at + bytes.len()).min(log.len());
        log.splice(at..end, bytes);
        let _ = replay(&mut &log[..], 4096);
    }
}
