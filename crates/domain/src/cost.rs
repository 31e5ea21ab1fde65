//! A cost in US dollars, and how reliable the figure is.

use serde::{Deserialize, Serialize};

/// How a cost was determined. A sum has the least certain basis of its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBasis {
    #[default]
    Reported,
    /// A part is estimated from tokens and list prices.
    Estimated,
    /// A part is estimated for a model without a known price, at the highest list price.
    AtMost,
}

impl CostBasis {
    /// Returns true if the client reported the whole cost.
    pub fn is_reported(&self) -> bool {
        *self == CostBasis::Reported
    }

    /// Returns the text to show before such a cost, with a trailing space: `about `.
    pub fn display_prefix(self) -> &'static str {
        match self {
            CostBasis::Reported => "",
            CostBasis::Estimated => "about ",
            CostBasis::AtMost => "at most ",
        }
    }

    /// Formats a cost with this basis: `about $1.20`. An estimate of zero means that the cost is unknown.
    pub fn format_usd(self, usd: f64) -> String {
        match self {
            CostBasis::Estimated | CostBasis::AtMost if usd <= 0.0 => UNKNOWN_COST.to_owned(),
            _ if is_below_one_cent(usd) => format_usd(usd),
            _ => format!("{}{}", self.display_prefix(), format_usd(usd)),
        }
    }

    /// Formats the cost of this many sessions. A session is never free, so a cost of zero is unknown once one has started.
    pub fn format_usd_of_sessions(self, usd: f64, session_count: u32) -> String {
        if session_count > 0 && usd <= 0.0 { UNKNOWN_COST.to_owned() } else { self.format_usd(usd) }
    }

    /// Formats a cost and its limit: `about $1.20 of $5.00`. If the limit is so small that it needs more decimals than cents,
    /// the cost has them, too.
    pub fn format_usd_spent_of_limit(self, usd: f64, limit_usd: f64) -> String {
        let limit = format_usd_limit(limit_usd);
        if limit_usd >= MIN_LIMIT_SHOWN_IN_CENTS_USD || usd <= 0.0 {
            return format!("{} of {limit}", self.format_usd(usd));
        }
        format!("{}{} of {limit}", self.display_prefix(), format_usd_limit(usd))
    }
}

/// The text for a cost that is not known.
pub const UNKNOWN_COST: &str = "unknown";
/// Limits below this amount are shown with more decimals than cents if they need them.
const MIN_LIMIT_SHOWN_IN_CENTS_USD: f64 = 0.1;

/// Renders the cost of this many sessions where no title says that it is a cost: `about $1.20`, or `cost unknown`.
pub fn render_cost_without_title(basis: CostBasis, usd: f64, session_count: u32) -> String {
    let cost = basis.format_usd_of_sessions(usd, session_count);
    if cost == UNKNOWN_COST { format!("cost {UNKNOWN_COST}") } else { cost }
}

fn is_below_one_cent(usd: f64) -> bool {
    usd > 0.0 && usd < 0.01
}

/// Formats an amount: `$1.20`, or `<$0.01` if it is less than a cent.
pub fn format_usd(usd: f64) -> String {
    if is_below_one_cent(usd) { "<$0.01".to_owned() } else { format!("${usd:.2}") }
}

/// Formats a limit: `$5.00`, or with as many decimals as a small one needs: `$0.001`.
pub fn format_usd_limit(usd: f64) -> String {
    if usd >= MIN_LIMIT_SHOWN_IN_CENTS_USD || usd <= 0.0 {
        return format!("${usd:.2}");
    }
    let decimals = (2..=4).find(|decimals| {
        let scale = 10_f64.powi(*decimals);
        ((usd * scale).round() - usd * scale).abs() < 1e-6
    });
    match decimals.unwrap_or(4) as usize {
        // Four decimals would round it to zero.
        4 if usd < 0.00005 => format!("${usd}"),
        decimals => format!("${usd:.decimals$}"),
    }
}

/// The cost of one or more sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    pub usd: f64,
    /// How the figure was determined.
    pub basis: CostBasis,
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost { usd: self.usd + other.usd, basis: self.basis.max(other.basis) }
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), std::ops::Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_as_uncertain_as_its_least_certain_part() {
        assert_eq!(CostBasis::AtMost.max(CostBasis::Estimated).format_usd(1.2), "at most $1.20");
        assert_eq!(CostBasis::Reported.max(CostBasis::Estimated).format_usd(0.014), "about $0.01");
        assert_eq!(CostBasis::Reported.format_usd(3.0), "$3.00");
    }

    #[test]
    fn a_cost_is_never_shown_as_zero_unless_it_is() {
        for (basis, usd, expected) in [
            (CostBasis::Reported, 0.0, "$0.00"),
            (CostBasis::Reported, 0.0099, "<$0.01"),
            (CostBasis::Estimated, 0.004, "<$0.01"),
            (CostBasis::AtMost, 0.01, "at most $0.01"),
            (CostBasis::Estimated, 0.0, "unknown"),
        ] {
            assert_eq!(basis.format_usd(usd), expected, "{basis:?} {usd}");
        }
        assert_eq!(CostBasis::Reported.format_usd_of_sessions(0.0, 0), "$0.00");
        assert_eq!(CostBasis::Reported.format_usd_of_sessions(0.0, 1), "unknown");
        assert_eq!(CostBasis::Reported.format_usd_of_sessions(0.2, 1), "$0.20");
    }

    #[test]
    fn a_small_limit_has_the_decimals_that_it_needs() {
        for (usd, limit, expected) in [
            (4.0, 4.0, "$4.00 of $4.00"),
            (0.45, 0.3, "$0.45 of $0.30"),
            (0.0123, 0.001, "$0.0123 of $0.001"),
            (0.05, 0.05, "$0.05 of $0.05"),
            (0.3, 0.00001, "$0.30 of $0.00001"),
            (0.0, 5.0, "$0.00 of $5.00"),
            (0.004, 5.0, "<$0.01 of $5.00"),
        ] {
            assert_eq!(CostBasis::Reported.format_usd_spent_of_limit(usd, limit), expected);
        }
        assert_eq!(CostBasis::Estimated.format_usd_spent_of_limit(0.0123, 0.001), "about $0.0123 of $0.001");
    }
}
