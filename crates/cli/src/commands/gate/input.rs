//! Standard input of `plimsoll gate`: the client's result, which arrives when the session ends, or a hook's event.

use plimsoll_domain::SessionRecord;
use plimsoll_policy::gate_input_wait::{
    ElapsedTimes, SessionStage, stage_of_session_with_awaited_result, stop_reading_reason_if_timed_out,
};
use plimsoll_store::ledger;
use plimsoll_store::{Project, disk, sessions, state_file};
use plimsoll_terminal::console::print_warning;
use plimsoll_terminal::standard_input::{ReadStep, StandardInputReader};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the state is read while waiting. It is only two small files.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Reads standard input to its end, but stops waiting some time after the run's session has ended or has become inactive; see
/// [`plimsoll_policy::gate_input_wait`]. Returns `None` on a terminal or without input.
pub(super) fn read_stdin_while_session_unfinished(project: &Project) -> Option<Vec<u8>> {
    let mut reader = StandardInputReader::open_unless_terminal()?;
    let started_at = Instant::now();
    let (mut last_input_at, mut session_ended_at) = (started_at, None);
    loop {
        match reader.wait_and_append_next_bytes(POLL_INTERVAL) {
            ReadStep::End => return reader.into_bytes_unless_blank(),
            ReadStep::BytesRead => {
                last_input_at = Instant::now();
                continue;
            }
            ReadStep::NothingYet => {}
        }
        let (stage, last_activity_age) = read_session_stage_and_activity_age(project);
        // The final waiting period starts when the session ends.
        session_ended_at =
            (stage == SessionStage::Ended).then(|| session_ended_at.unwrap_or_else(Instant::now));
        let since_input = last_input_at.elapsed();
        let elapsed = ElapsedTimes {
            since_start: started_at.elapsed(),
            since_input,
            since_end: session_ended_at
                .map_or(Duration::ZERO, |session_end: Instant| session_end.elapsed().min(since_input)),
            since_activity: last_activity_age
                .map_or(since_input, |activity_age| activity_age.min(since_input)),
        };
        if let Some(reason) = stop_reading_reason_if_timed_out(stage, reader.has_bytes(), elapsed) {
            if let Some(message) = reason.stderr_message() {
                print_warning(&message);
            }
            return reader.into_bytes_unless_blank();
        }
    }
}

/// Returns the stage of the run's session, and how long ago its record or transcript last changed.
fn read_session_stage_and_activity_age(project: &Project) -> (SessionStage, Option<Duration>) {
    let run_id = ledger::run_id_from_environment();
    let state = state_file::load_state(project, run_id.as_ref()).ok().flatten();
    let session_id = state.as_ref().and_then(|state| state.session_id.clone());
    let record = session_id.map_or_else(SessionRecord::default, |session_id| {
        sessions::load_session_record(project, &session_id)
    });
    let files = [
        project.session_record_path(&record.session_id),
        record.start.transcript_path.as_ref().map(|path| Path::new(path).to_owned()),
    ];
    let last_activity_age =
        files.into_iter().flatten().filter_map(|file| disk::time_since_modified(&file)).min();
    (stage_of_session_with_awaited_result(state.as_ref(), &record), last_activity_age)
}
