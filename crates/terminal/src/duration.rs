//! Durations as text.

/// Formats a duration: `45 s`, `12 min`, `3 h 5 min`.
pub fn format_seconds(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..3_600 => format!("{} min", seconds / 60),
        _ if seconds % 3_600 < 60 => format!("{} h", seconds / 3_600),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
