//! Each way of resolving, on the kernel that the tests run on.

use std::{os::fd::AsRawFd, thread};

use super::*;
use crate::{
    Area,
    loops::{Access, Stride, TouchList},
    memory::{Advice, Backing, Layout, Scanner, memfd},
    time::{Clock, ClockChoice},
};

const PAGE: usize = 4096;
const PAGES: usize = 64;
const STRIDE: Stride = Stride { step: PAGE, bytes: 8 };

#[expect(clippy::print_stderr, reason = "the harness shows it with --nocapture, as all skips")]
fn has(abilities: &[Ability]) -> bool {
    let lacks = abilities.iter().find(|ability| !ability.is_here());
    if let Some(ability) = lacks {
        eprintln!("skipped: no {} here; to run it: Linux {}", ability.name(), ability.since());
    }
    lacks.is_none()
}

fn mapped(backing: Backing) -> Area {
    let layout = Layout::contiguous(PAGES * PAGE);
    let area = Area::mapped(layout, backing, 2 << 20).unwrap();
    area.advise(Advice::NoHugePage).unwrap();
    area
}

fn anonymous() -> Area {
    mapped(Backing::Anonymous)
}

fn list() -> TouchList {
    TouchList::new((0..PAGES).map(|page| (page * PAGE, false)))
}

fn clock() -> Clock {
    Clock::new(ClockChoice::Scripted { step_ns: 1 })
}

/// Touches every page while a thread resolves.
fn touched(uffd: &Uffd, resolver: &Resolver, area: &Area, wait: Wait) -> Counts {
    let (tally, stop) = (Tally::default(), Stop::new().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| serve(uffd, resolver, wait, &stop, &tally));
        area.touch_listed(&list(), STRIDE);
        stop.stop();
    });
    unretried(&tally)
}

/// Counts without retries: how many there are is up to who else changes the address space, or
/// moves a page.
fn unretried(tally: &Tally) -> Counts {
    Counts { retries: 0, ..tally.counts() }
}

/// Touches every page on a thread that answers for itself.
fn signalled(resolver: Resolver, area: &Area) -> Counts {
    let tally = Tally::default();
    Armed::during(resolver, true, &tally, || area.touch_listed(&list(), STRIDE)).unwrap();
    unretried(&tally)
}

fn present(area: &Area) -> u64 {
    Scanner::open().unwrap().scan(area).unwrap().present
}

fn all(area: &Area) -> (usize, usize) {
    (0, area.layout().bytes())
}

fn full() -> Counts {
    let (pages, bytes) = (PAGES as u64, (PAGES * PAGE) as u64);
    Counts { messages: pages, written: pages, resolved: pages, bytes, ..Counts::default() }
}

#[test]
fn a_missing_page_is_copied_by_a_thread_that_sleeps_or_spins() {
    let _alone = crate::alone();
    if !has(&[Ability::Missing]) {
        return;
    }
    for wait in [Wait::Poll, Wait::Spin] {
        let (area, source) = (anonymous(), anonymous());
        fill(&source, PAGE);
        let uffd = Uffd::open(&[Ability::Missing]).unwrap();
        uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
        let resolver = Resolver::new(&uffd, Op::Copy, &area, all(&area), PAGE, Some(&source));
        assert_eq!(touched(&uffd, &resolver, &area, wait), full());
        crate::counted(PAGES as u64, || present(&area));
        drop(uffd);
        assert_eq!((differing(&area, Some(PAGE)), differing(&area, None)), (0, 64 * 64));
    }
}

#[test]
fn a_unit_of_pages_is_one_fault() {
    let _alone = crate::alone();
    if !has(&[Ability::Missing]) {
        return;
    }
    let (area, source) = (anonymous(), anonymous());
    fill(&source, 16 * PAGE);
    let uffd = Uffd::open(&[]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    let resolver = Resolver::new(&uffd, Op::Copy, &area, all(&area), 16 * PAGE, Some(&source));
    let counts = touched(&uffd, &resolver, &area, Wait::Poll);
    assert_eq!((counts.messages, counts.resolved, counts.bytes), (4, 4, full().bytes));
    drop(uffd);
    assert_eq!(differing(&area, Some(16 * PAGE)), 0);
}

#[test]
fn a_zero_page_comes_at_a_read_and_stays_shared() {
    let _alone = crate::alone();
    if !has(&[Ability::Missing]) {
        return;
    }
    let area = anonymous();
    let uffd = Uffd::open(&[]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    let resolver = Resolver::new(&uffd, Op::ZeroPage, &area, all(&area), PAGE, None);
    let (tally, stop) = (Tally::default(), Stop::new().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| serve(&uffd, &resolver, Wait::Poll, &stop, &tally));
        area.time_touches(&list(), Access::Read, &clock(), |_, _| ());
        stop.stop();
    });
    assert_eq!(unretried(&tally), Counts { written: 0, ..full() });
    crate::counted((64, true), || {
        let found = Scanner::open().unwrap().scan(&area).unwrap();
        (found.present, found.zero.is_none_or(|zero| zero == 64))
    });
}

#[test]
fn the_faulting_thread_resolves_its_own_faults() {
    let _alone = crate::alone();
    if !has(&[Ability::Sigbus]) {
        return;
    }
    let (area, source) = (anonymous(), anonymous());
    fill(&source, PAGE);
    let uffd = Uffd::open(&[Ability::Sigbus]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    let resolver = Resolver::new(&uffd, Op::Copy, &area, all(&area), PAGE, Some(&source));
    let expected = Counts { messages: 0, written: 0, signals: 64, ..full() };
    assert_eq!(signalled(resolver, &area), expected);
    drop(uffd);
    assert_eq!(differing(&area, Some(PAGE)), 0);
}

#[test]
fn a_page_of_the_page_cache_is_mapped() {
    let _alone = crate::alone();
    if !has(&[Ability::MinorShmem]) {
        return;
    }
    let file = memfd::create("pagelab-test").unwrap();
    file.set_len((PAGES * PAGE) as u64).unwrap();
    let backing = Backing::File { fd: file.as_raw_fd(), shared: true, from: 0 };
    fill(&mapped(backing), usize::MAX);
    let area = mapped(backing);
    let uffd = Uffd::open(&[Ability::MinorShmem]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Minor).unwrap();
    let resolver = Resolver::new(&uffd, Op::Continue, &area, all(&area), PAGE, None);
    assert_eq!(touched(&uffd, &resolver, &area, Wait::Poll), Counts { minor: 64, ..full() });
    drop(uffd);
    crate::counted(64, || present(&area));
    assert_eq!(differing(&area, Some(usize::MAX)), 0);
}

#[test]
fn write_protection_is_taken_away_by_a_handler_or_by_the_kernel() {
    let _alone = crate::alone();
    let is_async = |ability| ability == Ability::WriteProtectAsync;
    for ability in [Ability::WriteProtect, Ability::WriteProtectAsync] {
        if !has(&[ability]) {
            continue;
        }
        let area = anonymous();
        fill(&area, usize::MAX);
        let uffd = Uffd::open(&[ability]).unwrap();
        uffd.register(&area, 0, PAGES * PAGE, Mode::WriteProtect).unwrap();
        uffd.protect(&area, 0, PAGES * PAGE).unwrap();
        assert_eq!(write_protected(&area).unwrap(), 64);
        let resolver = Resolver::new(&uffd, Op::Unprotect, &area, all(&area), PAGE, None);
        let counts = touched(&uffd, &resolver, &area, Wait::Poll);
        let sync = Counts { protected: 64, ..full() };
        assert_eq!(counts, if is_async(ability) { Counts::default() } else { sync });
        assert_eq!(write_protected(&area).unwrap(), 0);
        drop(uffd);
        assert_eq!(differing(&area, Some(usize::MAX)), 0);
    }
}

#[test]
fn a_page_is_moved_and_is_gone_where_it_was() {
    let _alone = crate::alone();
    if !has(&[Ability::Move]) {
        return;
    }
    let (area, source) = (anonymous(), anonymous());
    fill(&source, usize::MAX);
    let uffd = Uffd::open(&[Ability::Move]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    let resolver = Resolver::new(&uffd, Op::Move, &area, all(&area), PAGE, Some(&source));
    assert_eq!(touched(&uffd, &resolver, &area, Wait::Poll), full());
    crate::counted((64, 0), || (present(&area), present(&source)));
    drop(uffd);
    assert_eq!(differing(&area, Some(usize::MAX)), 0);
}

#[test]
fn a_poisoned_page_is_stepped_over_by_whoever_poisoned_it() {
    let _alone = crate::alone();
    if !has(&[Ability::Poison, Ability::Sigbus]) {
        return;
    }
    // The kernel may say each poisoned access in its log, so few.
    let area = anonymous();
    let uffd = Uffd::open(&[Ability::Poison, Ability::Sigbus]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    let resolver = Resolver::new(&uffd, Op::Poison, &area, all(&area), PAGE, None);
    let tally = Tally::default();
    let body = || area.time_stores_over(&list(), &clock(), |_, _| ());
    Armed::during(resolver, true, &tally, body).unwrap();
    let counts = tally.counts();
    assert_eq!((counts.signals, counts.poisoned, counts.resolved), (64, 64, 64));
    assert_eq!(present(&area), 0);
}

#[test]
fn a_poisoned_page_is_stepped_over_where_a_thread_poisons() {
    let _alone = crate::alone();
    if !has(&[Ability::Poison]) {
        return;
    }
    let area = anonymous();
    let uffd = Uffd::open(&[Ability::Poison]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    let resolver = Resolver::new(&uffd, Op::Poison, &area, all(&area), PAGE, None);
    let (tally, mine, stop) = (Tally::default(), Tally::default(), Stop::new().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| serve(&uffd, &resolver, Wait::Poll, &stop, &tally));
        let body = || area.time_stores_over(&list(), &clock(), |_, _| ());
        Armed::during(resolver, false, &mine, body).unwrap();
        stop.stop();
    });
    assert_eq!(unretried(&tally), full());
    assert_eq!(mine.counts(), Counts { poisoned: 64, ..Counts::default() });
}

#[test]
fn a_page_that_is_there_already_is_a_duplicate_and_no_error() {
    let _alone = crate::alone();
    if !has(&[Ability::Missing]) {
        return;
    }
    let (area, source) = (anonymous(), anonymous());
    area.touch_listed(&list(), STRIDE);
    let uffd = Uffd::open(&[]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    fill(&source, PAGE);
    let resolver = Resolver::new(&uffd, Op::Copy, &area, all(&area), PAGE, Some(&source));
    let tally = Tally::default();
    assert_eq!(resolver.resolve(area.base(), &tally), Ok(false));
    assert_eq!(tally.counts(), Counts { duplicates: 1, ..Counts::default() });
}

#[test]
fn a_refusal_of_the_kernel_ends_the_waiting_and_is_kept() {
    let _alone = crate::alone();
    if !has(&[Ability::MinorShmem]) {
        return;
    }
    let area = anonymous();
    let uffd = Uffd::open(&[Ability::MinorShmem]).unwrap();
    uffd.register(&area, 0, PAGES * PAGE, Mode::Missing).unwrap();
    // Anonymous memory has no page cache to continue with.
    let resolver = Resolver::new(&uffd, Op::Continue, &area, all(&area), PAGE, None);
    let counts = touched(&uffd, &resolver, &area, Wait::Poll);
    assert!(counts.errno != 0 && counts.resolved == 0, "{counts:?}");
    crate::counted(64, || present(&area));
}

#[test]
fn every_ability_has_a_name_and_a_version() {
    for ability in Ability::ALL {
        assert!(ability.name().len() > 8 && ability.since().contains('.'));
    }
}
