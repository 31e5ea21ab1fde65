//! Commands that fail: some are repaired, and one at a time is not.

use super::super::events::ToolCall;
use super::author::{Author, TrackedFailure};

/// The longest output of a failed test or build in characters.
const MAX_FAILURE_CHARS: usize = 12_000;
/// The longest output of another failed command in characters.
const MAX_SHORT_FAILURE_CHARS: usize = 500;

impl Author {
    /// Writes a command that fails and stays unrepaired.
    pub(super) fn write_unrepaired_failure(&mut self) {
        let failure = self.write_failed_command();
        if self.draws.bool_with_percent(30) {
            let text = "That failure is not from my change; I come back to it.".to_owned();
            let call = self.routine_call();
            self.write_message(Some(text), vec![call]);
        }
        self.work.failure = Some(failure);
    }

    fn write_failed_command(&mut self) -> TrackedFailure {
        let (call, failure) = self.failed_call();
        self.write_call(call);
        TrackedFailure { call_number: self.call_count, ..failure }
    }

    /// Returns a call that fails, and what is known of it.
    pub(super) fn failed_call(&mut self) -> (ToolCall, TrackedFailure) {
        let path = self.random_source_path();
        let is_test_or_build = self.draws.bool_with_percent(70);
        let (mut command, error_line) = if is_test_or_build {
            (self.passing_command(), self.phrases.error_line(&path))
        } else {
            self.draw_failing_command_and_error_line()
        };
        let is_reported_as_success = self.draws.bool_with_percent(25);
        if is_reported_as_success {
            command += " 2>&1 | tail -40";
        }
        let max_chars = if is_test_or_build { MAX_FAILURE_CHARS } else { MAX_SHORT_FAILURE_CHARS };
        let chars = self.draws.log_uniform_number(40, max_chars);
        let mut lines = self.log_output(chars);
        if is_reported_as_success {
            lines.truncate(35);
        }
        let position = match self.draws.number_below(100) {
            0..60 => lines.len().saturating_sub(self.draws.number_below(3)),
            60..90 => self.draws.number_below(lines.len()),
            _ => 0,
        };
        lines.insert(position, error_line.clone());
        let output = lines.join("\n");
        let call = if is_reported_as_success {
            ToolCall::new_bash(&command, &output)
        } else {
            ToolCall::new_failed_bash(&command, 1, &output)
        };
        let failure = TrackedFailure {
            command,
            error_line,
            segment: self.segment,
            is_reported_as_success,
            call_number: self.call_count,
        };
        (call, failure)
    }

    fn draw_failing_command_and_error_line(&mut self) -> (String, String) {
        let (noun, number) = (self.phrases.noun(), self.phrases.unique_number());
        let failures = [
            (
                format!("docker compose up -d {noun}_{number}"),
                format!(
                    "Error response from daemon: driver failed: bind for 0.0.0.0:{number} failed: port is already allocated"
                ),
            ),
            (
                format!("curl -fsS http://localhost:{number}/{noun}/health"),
                format!(
                    "curl: (7) Failed to connect to localhost port {number} after 0 ms: Could not connect to server"
                ),
            ),
            (
                format!("git push origin HEAD:{noun}-{number}"),
                format!(" ! [remote rejected] HEAD -> {noun}-{number} (protected branch hook declined)"),
            ),
            (
                format!("psql -d {noun} -f migrations/{number}.sql"),
                format!("psql:migrations/{number}.sql:14: ERROR:  column \"{noun}_id\" does not exist"),
            ),
        ];
        self.draws.pick(&failures).clone()
    }

    /// Writes a command that fails, an edit, and the command again, which passes.
    pub(super) fn write_repaired_failure(&mut self) {
        let failure = self.write_failed_command();
        for _ in 0..self.draws.number_between(0, 2) {
            let call = self.routine_call();
            self.write_call(call);
        }
        self.write_repair(&failure);
    }

    /// Repairs the failure that was left open in an earlier segment.
    pub(super) fn write_repair_of_open_failure(&mut self) {
        if let Some(failure) = self.work.failure.take() {
            self.write_repair(&failure);
        }
    }

    fn write_repair(&mut self, failure: &TrackedFailure) {
        if self.edit_percent > 0 {
            self.write_edit();
        }
        // Three of ten times the model adds an option, so the command is not the same text.
        let command = if self.draws.bool_with_percent(30) {
            format!("{} --quiet", failure.command)
        } else {
            failure.command.clone()
        };
        let chars = self.draws.log_uniform_number(40, 3_000);
        let output = self.log_output(chars).join("\n");
        self.write_call(ToolCall::new_bash(&command, &output));
        self.work.outdated_statements.repaired_commands.push(failure.command.clone());
    }
}
