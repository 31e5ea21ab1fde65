//! When this session's window will reach the thresholds, for commands: off the transcript's end. The status line
//! forecasts from its own record of the fills.

use crate::context::measure::Measurement;
use plimsoll_domain::forecast::Forecast;
use plimsoll_policy::forecast::LAST_FILLS;
use plimsoll_store::tail;
use std::path::Path;

/// The last responses of a session are in this much of its transcript's end.
const NEAR: u64 = 4 * 1024 * 1024;

/// The forecast for a session.
#[derive(Debug, Clone, Default)]
pub struct SessionForecast {
    /// The forecast; none if the reading is unknown, or too little is known of the session.
    pub forecast: Option<Forecast>,
    /// The responses that it is, or could not be, made from.
    pub responses: usize,
}

/// The forecast of a session, from the end of its transcript.
pub fn of_session(transcript: Option<&Path>, measurement: &Measurement) -> SessionForecast {
    let fills = transcript.and_then(|path| tail::fills(path, LAST_FILLS, NEAR).ok()).unwrap_or_default();
    let known = measurement.reading.as_ref().zip(measurement.thresholds.as_ref());
    let forecast = known.and_then(|(reading, thresholds)| {
        plimsoll_policy::forecast::forecast(&fills, reading.projected(), thresholds)
    });
    SessionForecast { forecast, responses: fills.len() }
}
