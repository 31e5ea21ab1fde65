//! What the client says about the plan's quota (`rate_limit_event` in its stream; only with a subscription).

use crate::lenient;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How much of the plan's quota is used, and until when: the `rate_limit_info` of the stream.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RateLimit {
    /// `allowed`, `allowed_warning` or `rejected`.
    #[serde(deserialize_with = "lenient::text")]
    pub status: Option<String>,
    /// The window that decided: `five_hour`, `seven_day`, `seven_day_opus`, …
    #[serde(rename = "rateLimitType", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    /// When that window starts again, in seconds since 1970.
    #[serde(deserialize_with = "lenient::count")]
    pub resets_at: Option<u64>,
    #[serde(deserialize_with = "lenient::share")]
    utilization: Option<f64>,
    /// True while the account pays for what goes beyond its plan: then even `rejected` stops nothing.
    #[serde(deserialize_with = "lenient::field")]
    pub is_using_overage: bool,
    #[serde(deserialize_with = "lenient::map")]
    unified_windows: BTreeMap<String, QuotaWindow>,
}

/// One window of the quota.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaWindow {
    /// The part that is used: 0 is nothing, 1 is all.
    #[serde(deserialize_with = "lenient::share")]
    pub utilization: Option<f64>,
    /// When it starts again, in seconds since 1970.
    #[serde(rename = "resetsAt", deserialize_with = "lenient::count")]
    pub resets_at: Option<u64>,
}

impl RateLimit {
    /// True when the model does not answer before the window starts again.
    pub fn is_rejected(&self) -> bool {
        self.status.as_deref() == Some("rejected") && !self.is_using_overage
    }

    /// Returns the window of five hours.
    pub fn five_hour(&self) -> Option<QuotaWindow> {
        self.window("five_hour")
    }

    /// Returns the window of seven days; one model's, where the client knows no other.
    pub fn seven_day(&self) -> Option<QuotaWindow> {
        self.window("seven_day").or_else(|| self.week_of_one_model())
    }

    /// One window by its name. What it does not say itself, the fields at the top say, if they are about it:
    /// older clients have only those.
    fn window(&self, name: &str) -> Option<QuotaWindow> {
        let mut window = self.unified_windows.get(name).cloned().unwrap_or_default();
        if self.kind.as_deref() == Some(name) {
            window.utilization = window.utilization.or(self.utilization);
            window.resets_at = window.resets_at.or(self.resets_at);
        }
        (window != QuotaWindow::default()).then_some(window)
    }

    /// Of the weeks that count for one model only, the fullest: it is the one that will stop us.
    fn week_of_one_model(&self) -> Option<QuotaWindow> {
        ["seven_day_opus", "seven_day_sonnet"]
            .into_iter()
            .filter_map(|name| self.window(name))
            .max_by(|one, other| used(one).total_cmp(&used(other)))
    }
}

fn used(window: &QuotaWindow) -> f64 {
    window.utilization.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: &str) -> RateLimit {
        crate::parse(info.as_bytes()).expect("an object")
    }

    fn window(utilization: Option<f64>, resets_at: Option<u64>) -> Option<QuotaWindow> {
        Some(QuotaWindow { utilization, resets_at })
    }

    #[test]
    fn an_older_client_tells_of_one_window_at_the_top() {
        let limit = read(
            r#"{"status":"allowed_warning","resetsAt":9,"rateLimitType":"five_hour","utilization":0.92}"#,
        );
        assert_eq!((limit.five_hour(), limit.seven_day()), (window(Some(0.92), Some(9)), None));
        let limit = read(r#"{"status":"rejected","resetsAt":9,"rateLimitType":"seven_day"}"#);
        assert_eq!((limit.five_hour(), limit.seven_day()), (None, window(None, Some(9))));
        let limit = read(r#"{"status":"allowed","rateLimitType":"five_hour"}"#);
        assert_eq!((limit.five_hour(), limit.seven_day()), (None, None));
    }

    #[test]
    fn a_week_of_one_model_counts_only_where_there_is_no_week_of_all() {
        let opus = read(r#"{"resetsAt":9,"rateLimitType":"seven_day_opus","utilization":0.8}"#);
        assert_eq!(opus.seven_day(), window(Some(0.8), Some(9)));
        let fullest = r#"{"unifiedWindows":{"seven_day_opus":{"utilization":0.9,"resetsAt":1},
            "seven_day_sonnet":{"utilization":0.2,"resetsAt":2}}}"#;
        assert_eq!(read(fullest).seven_day(), window(Some(0.9), Some(1)));
        let both = r#"{"resetsAt":9,"rateLimitType":"seven_day_opus","utilization":1,
            "unifiedWindows":{"seven_day":{"utilization":0.5,"resetsAt":7}}}"#;
        assert_eq!(read(both).seven_day(), window(Some(0.5), Some(7)));
    }

    #[test]
    fn what_a_window_does_not_say_the_top_says_if_it_is_about_that_window() {
        let spoiled = r#"{"resetsAt":9,"rateLimitType":"five_hour","utilization":0.3,
            "unifiedWindows":{"five_hour":{"utilization":"x"},"seven_day":{"utilization":-1,"resetsAt":7}}}"#;
        let limit = read(spoiled);
        assert_eq!(limit.five_hour(), window(Some(0.3), Some(9)));
        assert_eq!(limit.seven_day(), window(None, Some(7)));
    }

    #[test]
    fn only_a_rejection_that_nobody_pays_for_is_one() {
        assert!(read(r#"{"status":"rejected"}"#).is_rejected());
        assert!(!read(r#"{"status":"rejected","isUsingOverage":true}"#).is_rejected());
        assert!(!read(r#"{"status":"allowed_warning"}"#).is_rejected());
        assert!(!read("{}").is_rejected());
    }
}
