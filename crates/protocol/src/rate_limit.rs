//! The quota of the user's subscription (`rate_limit_event` in the client's stream).

use crate::lenient;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Quota usage and reset times: the `rate_limit_info` of the stream.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RateLimit {
    /// `allowed`, `allowed_warning` or `rejected`.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub status: Option<String>,
    /// The window that determined the status: `five_hour`, `seven_day`, `seven_day_opus`, …
    #[serde(rename = "rateLimitType", deserialize_with = "lenient::non_empty_text")]
    pub kind: Option<String>,
    /// When that window resets, in seconds since 1970.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub resets_at: Option<u64>,
    /// When the spend limit resets, in seconds since 1970: the limit of a gateway, or of paid usage beyond the plan.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub overage_resets_at: Option<u64>,
    #[serde(deserialize_with = "lenient::non_negative_number")]
    utilization: Option<f64>,
    /// True while the account pays for usage beyond its plan; then even `rejected` stops nothing.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub is_using_overage: bool,
    #[serde(deserialize_with = "lenient::readable_entries")]
    unified_windows: BTreeMap<String, QuotaWindow>,
}

/// One quota window.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaWindow {
    /// The used fraction: 0 is nothing, 1 is all.
    #[serde(deserialize_with = "lenient::non_negative_number")]
    pub utilization: Option<f64>,
    /// When it resets, in seconds since 1970.
    #[serde(rename = "resetsAt", deserialize_with = "lenient::rounded_count")]
    pub resets_at: Option<u64>,
}

impl RateLimit {
    /// Returns true if the model does not respond until the window resets.
    pub fn is_rejected(&self) -> bool {
        self.status.as_deref() == Some("rejected") && !self.is_using_overage
    }

    /// Returns when requests are accepted again, in seconds since 1970. A spend limit may have only a time of its own; a
    /// plan's window resets before it.
    pub fn reset_seconds(&self) -> Option<u64> {
        self.resets_at.or(self.overage_resets_at)
    }

    /// Returns the five-hour window.
    pub fn five_hour_window(&self) -> Option<QuotaWindow> {
        self.window_with_top_level_values_if_kind_matches("five_hour")
    }

    /// Returns the seven-day window, or the fullest one of a single model if the client reports no general one.
    pub fn seven_day_window(&self) -> Option<QuotaWindow> {
        self.window_with_top_level_values_if_kind_matches("seven_day")
            .or_else(|| self.fullest_model_seven_day_window())
    }

    /// Returns a window by its name. Missing values are taken from the top-level fields if those describe this
    /// window: older clients have only those.
    fn window_with_top_level_values_if_kind_matches(&self, name: &str) -> Option<QuotaWindow> {
        let mut window = self.unified_windows.get(name).cloned().unwrap_or_default();
        if self.kind.as_deref() == Some(name) {
            window.utilization = window.utilization.or(self.utilization);
            window.resets_at = window.resets_at.or(self.resets_at);
        }
        (window != QuotaWindow::default()).then_some(window)
    }

    /// Returns the fullest of the seven-day windows that apply to one model only, because it is the first to reach its
    /// limit.
    fn fullest_model_seven_day_window(&self) -> Option<QuotaWindow> {
        ["seven_day_opus", "seven_day_sonnet"]
            .into_iter()
            .filter_map(|name| self.window_with_top_level_values_if_kind_matches(name))
            .max_by(|left, right| utilization_or_zero(left).total_cmp(&utilization_or_zero(right)))
    }
}

fn utilization_or_zero(window: &QuotaWindow) -> f64 {
    window.utilization.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(info: &str) -> RateLimit {
        crate::parse_json_object(info.as_bytes()).expect("an object")
    }

    fn window(utilization: Option<f64>, resets_at: Option<u64>) -> Option<QuotaWindow> {
        Some(QuotaWindow { utilization, resets_at })
    }

    #[test]
    fn an_older_client_reports_one_window_in_top_level_fields() {
        let limit = parse(
            r#"{"status":"allowed_warning","resetsAt":9,"rateLimitType":"five_hour","utilization":0.92}"#,
        );
        assert_eq!((limit.five_hour_window(), limit.seven_day_window()), (window(Some(0.92), Some(9)), None));
        let limit = parse(r#"{"status":"rejected","resetsAt":9,"rateLimitType":"seven_day"}"#);
        assert_eq!((limit.five_hour_window(), limit.seven_day_window()), (None, window(None, Some(9))));
        let limit = parse(r#"{"status":"allowed","rateLimitType":"five_hour"}"#);
        assert_eq!((limit.five_hour_window(), limit.seven_day_window()), (None, None));
    }

    #[test]
    fn a_weekly_window_of_one_model_counts_only_without_a_general_one() {
        let opus = parse(r#"{"resetsAt":9,"rateLimitType":"seven_day_opus","utilization":0.8}"#);
        assert_eq!(opus.seven_day_window(), window(Some(0.8), Some(9)));
        let fullest = r#"{"unifiedWindows":{"seven_day_opus":{"utilization":0.9,"resetsAt":1},
            "seven_day_sonnet":{"utilization":0.2,"resetsAt":2}}}"#;
        assert_eq!(parse(fullest).seven_day_window(), window(Some(0.9), Some(1)));
        let both = r#"{"resetsAt":9,"rateLimitType":"seven_day_opus","utilization":1,
            "unifiedWindows":{"seven_day":{"utilization":0.5,"resetsAt":7}}}"#;
        assert_eq!(parse(both).seven_day_window(), window(Some(0.5), Some(7)));
    }

    #[test]
    fn top_level_fields_complete_the_window_they_describe() {
        let spoiled = r#"{"resetsAt":9,"rateLimitType":"five_hour","utilization":0.3,
            "unifiedWindows":{"five_hour":{"utilization":"x"},"seven_day":{"utilization":-1,"resetsAt":7}}}"#;
        let limit = parse(spoiled);
        assert_eq!(limit.five_hour_window(), window(Some(0.3), Some(9)));
        assert_eq!(limit.seven_day_window(), window(None, Some(7)));
    }

    #[test]
    fn a_spend_limit_resets_when_its_plan_window_or_its_own_period_does() {
        // As 2.1.332 writes them behind a gateway, and for a subscription whose organization has set a limit.
        for (info, expected) in [
            (
                r#"{"status":"rejected","resetsAt":9,"overageResetsAt":9,"overageDisabledReason":"org_level_disabled_until",
                    "memberSpendLimit":{"period":"monthly"},"isUsingOverage":false}"#,
                Some(9),
            ),
            (
                r#"{"status":"rejected","rateLimitType":"five_hour","resetsAt":5,"overageResetsAt":9}"#,
                Some(5),
            ),
            (r#"{"status":"rejected","rateLimitType":"overage","overageResetsAt":9}"#, Some(9)),
            (r#"{"status":"rejected","rateLimitType":"overage","memberSpendLimit":{}}"#, None),
        ] {
            let limit = parse(info);
            assert!(limit.is_rejected(), "{info}");
            assert_eq!(limit.reset_seconds(), expected, "{info}");
        }
    }

    #[test]
    fn a_rejection_counts_only_without_paid_overage() {
        assert!(parse(r#"{"status":"rejected"}"#).is_rejected());
        assert!(!parse(r#"{"status":"rejected","isUsingOverage":true}"#).is_rejected());
        assert!(!parse(r#"{"status":"allowed_warning"}"#).is_rejected());
        assert!(!parse("{}").is_rejected());
    }
}
