//! The clock of a simulation. A real wait of five hours is not feasible, so the waits of the loops are
//! recorded and added instead.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the waits of a loop are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// By the calls of `sleep`: the `sleep` on the loop's PATH records the requested time and returns immediately.
    Recorded,
    /// The loop really waits. A usage limit ends after this time, which represents its announced hours. Any
    /// longer wait, and the waits after other faults, count at their real length.
    Real(Duration),
}

/// The time that a real model takes for an answer: a fixed part, and a part for each token.
const ANSWER_SECONDS: f64 = 12.0;
const TOKENS_PER_SECOND: f64 = 60.0;
/// The time that the start of a session takes.
const SESSION_START_SECONDS: f64 = 6.0;
/// The time that one run of the project's test takes.
const TEST_SECONDS: f64 = 60.0;
/// The client retries for 160 seconds (ten attempts). Here it makes two attempts, so each counts as half.
const REFUSED_REQUEST_SECONDS: f64 = 80.0;

/// The simulated time, in seconds since the start of the simulation.
#[derive(Debug)]
pub struct Clock {
    now_seconds: f64,
    wait_mode: WaitMode,
    /// The home in which waits and tests are recorded, one per line.
    home: PathBuf,
    counted_wait_seconds: f64,
    counted_tests: usize,
    /// When a request was refused, until the loop sends the next one.
    refused_at: Option<SystemTime>,
}

impl Clock {
    /// Creates a clock at zero.
    pub fn new(wait_mode: WaitMode, home: &Path) -> Clock {
        Clock {
            now_seconds: 0.0,
            wait_mode,
            home: home.to_path_buf(),
            counted_wait_seconds: 0.0,
            counted_tests: 0,
            refused_at: None,
        }
    }

    /// Adds the waits and tests recorded since the last call, and returns the seconds since the start of the
    /// simulation.
    pub fn add_logged_waits_and_tests_and_get_seconds(&mut self) -> f64 {
        let read_log = |name: &str| std::fs::read_to_string(self.home.join(name)).unwrap_or_default();
        let wait_seconds: f64 =
            read_log("waits.log").lines().filter_map(|line| line.parse::<f64>().ok()).sum();
        let test_count = read_log("tests.log").lines().count();
        self.now_seconds += wait_seconds - self.counted_wait_seconds
            + (test_count - self.counted_tests) as f64 * TEST_SECONDS;
        (self.counted_wait_seconds, self.counted_tests) = (wait_seconds, test_count);
        self.now_seconds
    }

    /// Returns how often the project's test has run, as of the last update.
    pub fn test_count(&self) -> u32 {
        self.counted_tests as u32
    }

    pub fn add_session_start(&mut self) {
        self.now_seconds += SESSION_START_SECONDS;
    }

    /// Adds the time of an answer with this number of output tokens.
    pub fn add_answer(&mut self, tokens: u64) {
        self.now_seconds += ANSWER_SECONDS + tokens as f64 / TOKENS_PER_SECOND;
    }

    /// If the loop really waits, adds the real wait since the refused request, unless it was a wait for a usage limit.
    pub fn add_wait_since_refusal_in_real_mode(&mut self, is_wait_for_usage_limit: bool) {
        let real_wait =
            self.refused_at.take().and_then(|refused_at| refused_at.elapsed().ok()).unwrap_or_default();
        if self.wait_mode != WaitMode::Recorded && !is_wait_for_usage_limit {
            self.now_seconds += real_wait.as_secs_f64();
        }
    }

    /// Adds the time of a request that an overloaded API refuses.
    pub fn add_refused_request(&mut self) {
        self.now_seconds += REFUSED_REQUEST_SECONDS;
        self.refused_at = Some(SystemTime::now());
    }

    /// Starts a usage limit of this many seconds and returns its end.
    pub fn start_usage_limit_and_log_required_wait(&mut self, seconds: f64) -> UsageLimitEnd {
        let end_seconds = self.add_logged_waits_and_tests_and_get_seconds() + seconds;
        let real_duration = match self.wait_mode {
            WaitMode::Recorded => {
                // The fake client that refuses the loop's next attempts reads from this file how long the loop must
                // have waited.
                let required_wait = (self.counted_wait_seconds + seconds).to_string();
                std::fs::write(self.home.join("limit.log"), required_wait).expect("the home is writable");
                Duration::from_secs_f64(seconds)
            }
            WaitMode::Real(duration) => duration,
        };
        UsageLimitEnd { simulated_seconds: end_seconds, announced_time: SystemTime::now() + real_duration }
    }

    /// Returns true if the limit has ended. If the loop really waited, moves the clock forward to the limit's end.
    pub fn check_limit_end_and_advance_clock(&mut self, limit_end: &UsageLimitEnd) -> bool {
        if self.wait_mode == WaitMode::Recorded {
            return self.add_logged_waits_and_tests_and_get_seconds() >= limit_end.simulated_seconds;
        }
        let Ok(elapsed_since_end) = limit_end.announced_time.elapsed() else { return false };
        self.now_seconds = self.add_logged_waits_and_tests_and_get_seconds().max(limit_end.simulated_seconds)
            + elapsed_since_end.as_secs_f64();
        true
    }
}

#[derive(Clone, Copy, Debug)]
pub struct UsageLimitEnd {
    /// The end on the simulated clock.
    simulated_seconds: f64,
    /// The end that is announced to the client.
    pub announced_time: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_waits_and_tests_are_counted_once() {
        let home = tempfile::tempdir().unwrap();
        let mut clock = Clock::new(WaitMode::Recorded, home.path());
        std::fs::write(home.path().join("waits.log"), "900\n0.5\n").unwrap();
        std::fs::write(home.path().join("tests.log"), "x\n").unwrap();
        assert!(
            [
                clock.add_logged_waits_and_tests_and_get_seconds(),
                clock.add_logged_waits_and_tests_and_get_seconds()
            ]
            .iter()
            .all(|now| (now - 960.5).abs() < 1e-6)
        );
        clock.add_answer(60);
        assert!((clock.add_logged_waits_and_tests_and_get_seconds() - 973.5).abs() < 1e-6);
    }

    #[test]
    fn a_limit_lasts_its_hours_in_both_wait_modes() {
        let home = tempfile::tempdir().unwrap();
        let mut recorded_clock = Clock::new(WaitMode::Recorded, home.path());
        let limit_end = recorded_clock.start_usage_limit_and_log_required_wait(5_400.0);
        assert!(!recorded_clock.check_limit_end_and_advance_clock(&limit_end));
        std::fs::write(home.path().join("waits.log"), "5000\n").unwrap();
        assert!(!recorded_clock.check_limit_end_and_advance_clock(&limit_end));
        std::fs::write(home.path().join("waits.log"), "5000\n900\n").unwrap();
        assert!(recorded_clock.check_limit_end_and_advance_clock(&limit_end));
        assert!((recorded_clock.add_logged_waits_and_tests_and_get_seconds() - 5_900.0).abs() < 1e-6);

        let empty_home = tempfile::tempdir().unwrap();
        let mut real_clock = Clock::new(WaitMode::Real(Duration::from_millis(60)), empty_home.path());
        let limit_end = real_clock.start_usage_limit_and_log_required_wait(5_400.0);
        assert!(!real_clock.check_limit_end_and_advance_clock(&limit_end));
        std::thread::sleep(Duration::from_millis(120));
        assert!(real_clock.check_limit_end_and_advance_clock(&limit_end));
        assert!(
            (5_400.0..5_402.0).contains(&real_clock.add_logged_waits_and_tests_and_get_seconds()),
            "{}",
            real_clock.add_logged_waits_and_tests_and_get_seconds()
        );
    }
}
