//! Standard input of `plimsoll gate`: the client's result, which arrives when the session ends, or a hook's event.

use plimsoll_domain::SessionRecord;
use plimsoll_policy::gate_input_wait::{ElapsedTimes, SessionStage, reason_to_stop_reading, session_stage};
use plimsoll_store::ledger;
use plimsoll_store::{Project, disk, sessions, state_file};
use plimsoll_terminal::console::print_error;
use plimsoll_terminal::standard_input::{ReadStep, StandardInputReader};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the state is read while waiting. It is only two small files.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Reads standard input to its end while the run's own session is unfinished; see [`plimsoll_policy::gate_input_wait`].
pub(super) fn read_document(project: &Project) -> Option<Vec<u8>> {
    let mut reader = StandardInputReader::open_unless_terminal()?;
    let started = Instant::now();
    let (mut last_input_at, mut ended_at) = (started, None);
    loop {
        match reader.read_available(POLL_INTERVAL) {
            ReadStep::End => return reader.into_document(),
            ReadStep::BytesRead => {
                last_input_at = Instant::now();
                continue;
            }
            ReadStep::NothingYet => {}
        }
        let (stage, last_activity_age) = read_session_stage_and_activity_age(project);
        // The last wait begins when a session that was running ends.
        ended_at = (stage == SessionStage::Ended).then(|| ended_at.unwrap_or_else(Instant::now));
        let since_input = last_input_at.elapsed();
        let elapsed = ElapsedTimes {
            since_start: started.elapsed(),
            since_input,
            since_end: ended_at
                .map_or(Duration::ZERO, |session_end: Instant| session_end.elapsed().min(since_input)),
            since_activity: last_activity_age
                .map_or(since_input, |activity_age| activity_age.min(since_input)),
        };
        if let Some(reason) = reason_to_stop_reading(stage, reader.has_bytes(), elapsed) {
            if let Some(message) = reason.stderr_message() {
                print_error(&message);
            }
            return reader.into_document();
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
    (session_stage(state.as_ref(), &record), last_activity_age)
}
