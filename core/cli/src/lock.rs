//! Waiting for what another run holds: the machine's settings, a run's journal, a shard's folder.
//!
//! Every command that can meet such a lock has `--wait`, and every refusal names it.

use std::{fmt::Display, thread, time::Duration};

use anyhow::anyhow;
use pagelab_sys::time::monotonic_raw_ns;

use crate::{exit::Failure, output};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// What a command that was refused says of the holder, with the fix.
pub fn refusal(held: impl Display) -> anyhow::Error {
    anyhow!("{held}: --wait waits for it to end")
}

/// Asks again while another run holds what is asked for, until the patience is over. `held` names
/// the holder, where that is why an answer is an error.
///
/// # Errors
/// Those of `ask`; that of a holder who does not end in time names `--wait`.
pub fn patiently<T>(
    patience: Duration,
    mut ask: impl FnMut() -> Result<T, Failure>,
    held: impl Fn(&Failure) -> Option<String>,
) -> Result<T, Failure> {
    let limit = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
    let deadline = monotonic_raw_ns().saturating_add(limit);
    let mut is_told = false;
    loop {
        let failure = match ask() {
            Ok(got) => return Ok(got),
            Err(failure) => failure,
        };
        let Some(holder) = held(&failure) else { return Err(failure) };
        if monotonic_raw_ns() >= deadline {
            return Err(Failure { error: refusal(holder), exit: failure.exit });
        }
        if !is_told {
            output::warn(&format!("waiting: {holder}"));
        }
        is_told = true;
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(failure: &Failure) -> Option<String> {
        Some(failure.sentence()).filter(|sentence| sentence.contains("holds"))
    }

    #[test]
    fn a_refusal_names_the_holder_and_the_flag_that_waits() {
        let ask = || Err::<(), _>(usage!("a run holds it"));
        let refused = patiently(Duration::ZERO, ask, held).unwrap_err();
        assert_eq!(refused.sentence(), "a run holds it: --wait waits for it to end");
        assert_eq!(refused.exit, usage!("").exit);
    }

    #[test]
    fn what_is_no_lock_is_not_waited_for() {
        let ask = || Err::<(), _>(usage!("no run"));
        assert_eq!(patiently(Duration::MAX, ask, held).unwrap_err().sentence(), "no run");
    }

    #[test]
    fn it_is_had_when_the_holder_has_ended() {
        let mut answers = vec![Ok(7), Err(usage!("a run holds it"))];
        let came = patiently(Duration::MAX, || answers.pop().unwrap(), held);
        assert_eq!(came.unwrap(), 7);
    }
}
