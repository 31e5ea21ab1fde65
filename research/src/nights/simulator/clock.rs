//! The clock of a simulated night. A limit of five hours cannot be waited for: what loops wait is recorded and added instead.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the waits of a loop come to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// By its calls of `sleep`: the one on its PATH writes down how long it was asked for, and returns at once.
    Written,
    /// It waits really: a usage limit is over after this time, which stands for the hours that it is said to last; what it
    /// waits beyond that, and after other troubles, counts as it is.
    Real(Duration),
}

/// An answer of a real model takes about so long, and so long for each token.
const ANSWER: f64 = 12.0;
const TOKENS_A_SECOND: f64 = 60.0;
/// A session's start.
const START: f64 = 6.0;
/// One run of the project's test.
const TEST: f64 = 60.0;
/// The client tries ten times, which takes 160 seconds; here it tries twice, and each counts for half.
const REFUSED: f64 = 80.0;

/// Seconds since the evening.
#[derive(Debug)]
pub struct Clock {
    now: f64,
    waits: Waits,
    /// The home in which waits and tests are written down, a line each.
    home: PathBuf,
    waited: f64,
    tests: usize,
    /// When something was refused, until the loop asks again.
    refused: Option<SystemTime>,
}

impl Clock {
    /// A clock at zero.
    pub fn new(waits: Waits, home: &Path) -> Clock {
        Clock { now: 0.0, waits, home: home.to_path_buf(), waited: 0.0, tests: 0, refused: None }
    }

    /// Seconds since the evening, with what was written down meanwhile.
    pub fn read(&mut self) -> f64 {
        let text = |name: &str| std::fs::read_to_string(self.home.join(name)).unwrap_or_default();
        let waited: f64 = text("waits.log").lines().filter_map(|line| line.parse::<f64>().ok()).sum();
        let tests = text("tests.log").lines().count();
        self.now += waited - self.waited + (tests - self.tests) as f64 * TEST;
        (self.waited, self.tests) = (waited, tests);
        self.now
    }

    /// How often the project's test has run.
    pub fn tests(&self) -> u32 {
        self.tests as u32
    }

    /// A session has begun.
    pub fn start_session(&mut self) {
        self.now += START;
    }

    /// The model has answered with so many tokens.
    pub fn answer(&mut self, tokens: u64) {
        self.now += ANSWER + tokens as f64 / TOKENS_A_SECOND;
    }

    /// A request comes after one that was refused: what the loop really waited counts, besides for a limit.
    pub fn ask_again(&mut self, is_limit: bool) {
        let since = self.refused.take().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        if self.waits != Waits::Written && !is_limit {
            self.now += since.as_secs_f64();
        }
    }

    /// A request is refused by an API that is overloaded.
    pub fn refuse(&mut self) {
        self.now += REFUSED;
        self.refused = Some(SystemTime::now());
    }

    /// When a limit that begins now and lasts so many seconds is over.
    pub fn limit(&mut self, seconds: f64) -> Reset {
        let at = self.read() + seconds;
        let real = match self.waits {
            Waits::Written => {
                // For the stand-in that answers the loop's next tries: what must have been waited by then.
                let until = (self.waited + seconds).to_string();
                std::fs::write(self.home.join("limit.log"), until).expect("the home is writable");
                Duration::from_secs_f64(seconds)
            }
            Waits::Real(length) => length,
        };
        Reset { at, told: SystemTime::now() + real }
    }

    /// Whether a limit is over; if the loop really waited, the clock is put forward.
    pub fn is_over(&mut self, reset: &Reset) -> bool {
        if self.waits == Waits::Written {
            return self.read() >= reset.at;
        }
        let Ok(late) = reset.told.elapsed() else { return false };
        self.now = self.read().max(reset.at) + late.as_secs_f64();
        true
    }
}

/// The end of a limit.
#[derive(Clone, Copy, Debug)]
pub struct Reset {
    /// On this clock.
    at: f64,
    /// As the client is told.
    pub told: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_were_written_down_and_tests_count_once() {
        let home = tempfile::tempdir().unwrap();
        let mut clock = Clock::new(Waits::Written, home.path());
        std::fs::write(home.path().join("waits.log"), "900\n0.5\n").unwrap();
        std::fs::write(home.path().join("tests.log"), "x\n").unwrap();
        assert!([clock.read(), clock.read()].iter().all(|now| (now - 960.5).abs() < 1e-6));
        clock.answer(60);
        assert!((clock.read() - 973.5).abs() < 1e-6);
    }

    #[test]
    fn a_limit_lasts_its_hours_however_the_loop_waits() {
        let home = tempfile::tempdir().unwrap();
        let mut written = Clock::new(Waits::Written, home.path());
        let reset = written.limit(5_400.0);
        assert!(!written.is_over(&reset));
        std::fs::write(home.path().join("waits.log"), "5000\n").unwrap();
        assert!(!written.is_over(&reset));
        std::fs::write(home.path().join("waits.log"), "5000\n900\n").unwrap();
        assert!(written.is_over(&reset));
        assert!((written.read() - 5_900.0).abs() < 1e-6);

        let nothing = tempfile::tempdir().unwrap();
        let mut real = Clock::new(Waits::Real(Duration::from_millis(60)), nothing.path());
        let reset = real.limit(5_400.0);
        assert!(!real.is_over(&reset));
        std::thread::sleep(Duration::from_millis(120));
        assert!(real.is_over(&reset));
        assert!((5_400.0..5_402.0).contains(&real.read()), "{}", real.read());
    }
}
