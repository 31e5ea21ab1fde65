//! What `plimsoll gate` reads: the client's result, which comes when the session ends, or a hook's event.

use plimsoll_domain::SessionRecord;
use plimsoll_policy::gate_input_wait::{Elapsed, Stage, gives_up, stage};
use plimsoll_store::ledger;
use plimsoll_store::{Project, disk, sessions, state_file};
use plimsoll_terminal::console::say_error;
use plimsoll_terminal::standard_input::{Piece, Pieces};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the state is looked at: two small files.
const LOOK: Duration = Duration::from_millis(250);

/// Reads standard input to its end while the run's own session is unfinished; see [`plimsoll_policy::gate_input_wait`].
pub(super) fn document(project: &Project) -> Option<Vec<u8>> {
    let mut pieces = Pieces::open()?;
    let started = Instant::now();
    let (mut heard, mut ended) = (started, None);
    loop {
        match pieces.read_on(LOOK) {
            Piece::End => return pieces.document(),
            Piece::Some => {
                heard = Instant::now();
                continue;
            }
            Piece::Nothing => {}
        }
        let (stage, sign) = look(project);
        // The end of a session that was at work is the beginning of the last wait.
        ended = (stage == Stage::Ended).then(|| ended.unwrap_or_else(Instant::now));
        let quiet = heard.elapsed();
        let elapsed = Elapsed {
            reading: started.elapsed(),
            quiet,
            ended: ended.map_or(Duration::ZERO, |ended: Instant| ended.elapsed().min(quiet)),
            sign: sign.map_or(quiet, |sign| sign.min(quiet)),
        };
        if let Some(why) = gives_up(stage, pieces.has_any(), elapsed) {
            if let Some(words) = why.words() {
                say_error(&words);
            }
            return pieces.document();
        }
    }
}

/// What the run's session does, and how long ago it showed a sign of life.
fn look(project: &Project) -> (Stage, Option<Duration>) {
    let run_id = ledger::run_of_environment();
    let run = state_file::load(project, run_id.as_ref()).ok().flatten();
    let id = run.as_ref().and_then(|run| run.session_id.clone());
    let record = id.map_or_else(SessionRecord::default, |id| sessions::load(project, &id));
    let files = [
        project.session(&record.session_id),
        record.start.transcript_path.as_ref().map(|path| Path::new(path).to_owned()),
    ];
    let sign = files.into_iter().flatten().filter_map(|file| disk::age(&file)).min();
    (stage(run.as_ref(), &record), sign)
}
