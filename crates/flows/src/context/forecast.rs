//! Forecasts for commands when the session's usage will reach the thresholds, from the end of its transcript.
//! The status line forecasts from the usage samples that it records itself.

use crate::context::measure::Measurement;
use plimsoll_domain::forecast::Forecast;
use plimsoll_policy::forecast::MAX_FORECAST_SAMPLES;
use plimsoll_store::tail;
use std::path::Path;

/// The last responses of a session are within this many bytes of the transcript's end.
const MAX_TRANSCRIPT_TAIL_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, Default)]
pub struct SessionForecast {
    /// The forecast; `None` if the reading is unknown or there are too few responses.
    pub forecast: Option<Forecast>,
    /// Number of responses that the forecast is based on, or that were too few for one.
    pub response_count: usize,
}

/// Forecasts after how many responses and minutes a session reaches its thresholds, from the end of its
/// transcript.
pub fn forecast_responses_and_minutes_to_thresholds(
    transcript_path: Option<&Path>,
    measurement: &Measurement,
) -> SessionForecast {
    let usage_samples = transcript_path
        .and_then(|path| {
            tail::read_usage_samples_since_compaction(path, MAX_FORECAST_SAMPLES, MAX_TRANSCRIPT_TAIL_BYTES)
                .ok()
        })
        .unwrap_or_default();
    let reading_and_thresholds = measurement.reading.as_ref().zip(measurement.thresholds.as_ref());
    let forecast = reading_and_thresholds.and_then(|(reading, thresholds)| {
        plimsoll_policy::forecast::forecast_thresholds(&usage_samples, reading.projected_tokens(), thresholds)
    });
    SessionForecast { forecast, response_count: usage_samples.len() }
}
