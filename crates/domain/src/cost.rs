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

    /// Formats a cost with this basis: `about $1.20`.
    pub fn format_usd(self, usd: f64) -> String {
        format!("{}${usd:.2}", self.display_prefix())
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
        assert_eq!(CostBasis::Reported.max(CostBasis::Estimated).format_usd(0.004), "about $0.00");
        assert_eq!(CostBasis::Reported.format_usd(3.0), "$3.00");
    }
}
