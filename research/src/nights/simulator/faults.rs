//! The faults of a simulation and the answers at which they occur. Both follow from the seed.

use super::clock::{Clock, UsageLimitEnd};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::{SeededRng, quota};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A fault of the API, the connection or the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The API is overloaded for this many seconds.
    Overload(u32),
    /// The quota is used up for this many minutes.
    UsageLimit(u32),
    /// The client is killed with an uncommitted change.
    Crash,
    /// The model refuses once.
    Refusal,
    /// The connection is cut in the middle of an answer.
    ConnectionCut,
}

/// The faults of one simulation.
#[derive(Debug)]
pub struct FaultSchedule {
    pending_faults_by_answer_number: BTreeMap<u32, Fault>,
    overload_ends_at_seconds: f64,
    limit_end: Option<UsageLimitEnd>,
    answer_count: u32,
    /// The time of the last fault, until the next answer.
    no_answer_since_seconds: Option<f64>,
    /// The number of faults that have occurred.
    pub occurred_count: u32,
    seconds_without_answers: f64,
}

impl FaultSchedule {
    /// Creates a random schedule of about three faults for a simulation with this many answers. A usage limit
    /// lasts from 90 minutes to five hours.
    pub fn random(rng: SeededRng, estimated_answers: u32) -> FaultSchedule {
        let limit_minutes = 90 + rng.random_number_for_name("limit lasts", 211) as u32;
        let faults_with_percent = [
            (Fault::Overload(60), 60),
            (Fault::Overload(360), 40),
            (Fault::UsageLimit(limit_minutes), 50),
            (Fault::Crash, 50),
            (Fault::Crash, 25),
            (Fault::Refusal, 30),
            (Fault::ConnectionCut, 40),
        ];
        let mut pending_faults_by_answer_number = BTreeMap::new();
        for (index, (fault, percent)) in faults_with_percent.into_iter().enumerate() {
            let answer_number = 3 + rng
                .random_number_for_name(&format!("trouble {index} at"), u64::from(estimated_answers))
                as u32;
            if rng.random_bool_for_name(&format!("trouble {index}"), percent) {
                pending_faults_by_answer_number.insert(answer_number, fault);
            }
        }
        FaultSchedule {
            pending_faults_by_answer_number,
            overload_ends_at_seconds: 0.0,
            limit_end: None,
            answer_count: 0,
            no_answer_since_seconds: None,
            occurred_count: 0,
            seconds_without_answers: 0.0,
        }
    }

    /// Returns the seconds from each fault to the next answer. If no answer followed the last fault, counts up to
    /// `simulation_end_seconds`.
    pub fn seconds_without_answers_until(&self, simulation_end_seconds: f64) -> f64 {
        self.seconds_without_answers
            + self
                .no_answer_since_seconds
                .map_or(0.0, |fault_seconds| (simulation_end_seconds - fault_seconds).max(0.0))
    }

    /// Removes the fault that is due for the next request and returns its response, or `None` if none is due. A
    /// usage limit or overload in progress is also a response.
    pub fn take_due_or_ongoing_fault_response(&mut self, clock: &mut Clock) -> Option<Step> {
        clock.add_wait_since_refusal_in_real_mode(self.limit_end.is_some());
        if let Some(limit_end) = self.limit_end {
            if !clock.check_limit_end_and_advance_clock(&limit_end) {
                return Some(usage_limit_response(limit_end.announced_time));
            }
            self.limit_end = None;
        }
        let now = clock.add_logged_waits_and_tests_and_get_seconds();
        if now < self.overload_ends_at_seconds {
            clock.add_refused_request();
            return Some(Step::api_error(529, "Overloaded"));
        }
        if let Some(fault_seconds) = self.no_answer_since_seconds.take() {
            self.seconds_without_answers += now - fault_seconds;
        }
        self.answer_count += 1;
        let fault = self
            .pending_faults_by_answer_number
            .first_entry()
            .filter(|entry| *entry.key() <= self.answer_count)?
            .remove();
        self.occurred_count += 1;
        self.no_answer_since_seconds = Some(now);
        match fault {
            Fault::Overload(seconds) => {
                self.overload_ends_at_seconds = now + f64::from(seconds);
                clock.add_refused_request();
                Some(Step::api_error(529, "Overloaded"))
            }
            Fault::UsageLimit(minutes) => {
                let limit_end = clock.start_usage_limit_and_log_required_wait(f64::from(minutes) * 60.0);
                self.limit_end = Some(limit_end);
                Some(usage_limit_response(limit_end.announced_time))
            }
            Fault::Crash => Some(Step::bash_call("kill -9 ${CLAUDE_PID:-$PPID}; /bin/sleep 5")),
            Fault::Refusal => Some(Step::from_text("I cannot help with that.").with_stop_reason("refusal")),
            Fault::ConnectionCut => Some(Step::from_text("I am on my way to").with_cut_off_stream()),
        }
    }
}

/// Returns the response of an API whose five-hour quota is used up.
pub(crate) fn usage_limit_response(ends_at: SystemTime) -> Step {
    quota::usage_limit_error(ends_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
