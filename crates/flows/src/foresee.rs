//! When this session's window will be as full as the marks, for commands: off the transcript's end. The status line
//! forecasts from its own record of the fills.

use crate::measure::Measurement;
use policy::forecast::LAST_FILLS;
use session::forecast::Forecast;
use std::path::Path;
use store::tail;

/// The last responses of a session lie in so much of its transcript's end.
const NEAR: u64 = 4 * 1024 * 1024;

/// The forecast; none where the reading is unknown, or too little is known of the session.
pub fn foresee(transcript: Option<&Path>, measurement: &Measurement) -> Option<Forecast> {
    let (reading, marks) = measurement.reading.as_ref().zip(measurement.marks.as_ref())?;
    let fills = tail::fills(transcript?, LAST_FILLS, NEAR).ok()?;
    policy::forecast::forecast(&fills, reading.projected(), marks)
}
