//! Who clears what was given back: a thread beside the program, or the program itself.
//!
//! The one idea: clearing is one call over a whole extent, so that a segment pays for bytes and not
//! for pages. The thread sleeps until it is handed an extent, and tells what that took of its own
//! CPU time; handing over is what the program waits for.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use pagelab_bench::Error;
use pagelab_sys::{
    Area, SysError,
    loops::bulk::{Buffer, Store},
    process::Pinned,
    time::{Clock, ClockChoice, monotonic_raw_ns},
};

use pagelab_mappings::outcome::{Phase, phase};

/// The thread, which ends with this.
#[derive(Debug)]
pub(super) struct Cleaner {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// Where an order lies: nothing is allocated for it, so that handing over takes no fault.
#[derive(Debug, Default)]
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Order(Arc<Area>),
    Done(Phase),
    Closed,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }

    /// Waits for a state that `take` takes something from, and leaves an idle desk.
    fn take<T>(&self, take: impl Fn(&State) -> Option<T>) -> T {
        let mut state = self.lock();
        loop {
            if let Some(taken) = take(&state) {
                *state = State::Idle;
                return taken;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Cleaner {
    /// Starts it on a CPU, or wherever it is put.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(cpu: Option<usize>, store: Store) -> Result<Self, Error> {
        let desk = Arc::<Desk>::default();
        let orders = Arc::clone(&desk);
        let work = move || {
            // A helper that cannot start ends the case: its program would wait for it for ever.
            let stop = |error: SysError| -> ! { panic!("{error}") };
            let _pinned = cpu.map(|cpu| Pinned::to(cpu).unwrap_or_else(|error| stop(error)));
            let clock = Clock::new(ClockChoice::Raw);
            // The first one takes the faults of code and stack.
            phase(&clock, &mut || ());
            let next = || {
                orders.take(|state| match state {
                    State::Order(area) => Some(Some(Arc::clone(area))),
                    State::Closed => Some(None),
                    State::Idle | State::Done(_) => None,
                })
            };
            while let Some(area) = next() {
                let whole = area.layout().bytes();
                let cleared = phase(&clock, &mut || area.clear(0, whole, store));
                drop(area);
                orders.put(State::Done(cleared));
            }
        };
        let thread = std::thread::Builder::new().name("cleaner".to_owned()).spawn(work);
        let thread = thread.map_err(|error| SysError::new("clone", "a helper", error))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Hands an extent over.
    pub(super) fn give(&self, area: &Arc<Area>) {
        self.desk.put(State::Order(Arc::clone(area)));
    }

    /// Waits until it is cleared, and tells what that took, by a clock in nanoseconds.
    pub(super) fn wait(&self) -> Phase {
        self.desk.take(|state| match state {
            State::Done(cleared) => Some(*cleared),
            _ => None,
        })
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.desk.put(State::Closed);
        if let Some(thread) = self.thread.take() {
            // Its panic has ended the process.
            let _ = thread.join();
        }
    }
}

/// The fastest way here to clear so much memory: what `limit/clear` tries, once each.
///
/// # Errors
/// When memory is short.
pub(super) fn fastest(bytes: usize) -> Result<Store, Error> {
    /// Beyond the last level of most caches.
    const ENOUGH: usize = 512 << 20;
    let bytes = bytes.min(ENOUGH);
    let mut buffer = Buffer::new(bytes)?;
    let stores = [Store::NonTemporal, Store::String];
    let stores = stores
        .into_iter()
        .filter(|store| *store == Store::NonTemporal || pagelab_sys::arch::HAS_STRING_STORE);
    let timed = stores.map(|store| {
        let start = monotonic_raw_ns();
        buffer.clear(0..bytes, 2, store);
        (monotonic_raw_ns() - start, store)
    });
    Ok(timed.min_by_key(|(ns, _)| *ns).map_or(Store::NonTemporal, |(_, store)| store))
}
