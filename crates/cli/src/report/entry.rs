//! A line of the journal, as the report asks it.

use super::night::At;
use super::words::{Cleaner, Words};
use serde_json::Value;
use store::clock;

/// A line of the run, with what makes its words harmless.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) value: &'a Value,
    pub(super) at: At,
    pub(super) cleaner: &'a Cleaner,
}

/// So much of one fact is shown.
pub(super) const FACT: usize = 300;

impl<'a> Entry<'a> {
    /// Of a run's entries those that say when.
    pub(super) fn of_run(entries: &'a [Value], run_id: &str, cleaner: &'a Cleaner) -> Vec<Entry<'a>> {
        let of_it = entries.iter().filter(|entry| entry["run_id"] == run_id);
        of_it
            .filter_map(|value| Some(Entry { value, at: clock::parse(value["at"].as_str()?)?, cleaner }))
            .collect()
    }

    pub(super) fn event(&self) -> &'a str {
        self.raw("event").unwrap_or_default()
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        self.value[name].as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.value[name].as_u64()
    }

    /// Its session's number in the run; none outside of one.
    pub(super) fn iteration(&self) -> Option<u64> {
        self.number("iteration").filter(|iteration| *iteration > 0)
    }

    pub(super) fn words(&self, name: &str) -> Option<Words> {
        self.raw(name).map(|text| self.cleaner.line(text, FACT))
    }

    pub(super) fn list(&self, name: &str) -> Vec<Words> {
        let list = self.value[name].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(|text| self.cleaner.line(text, FACT)).collect()
    }

    pub(super) fn line(&self, text: &str) -> Words {
        self.cleaner.line(text, FACT)
    }

    /// The fields of its marker.
    pub(super) fn marker(&self) -> (&'a str, &'a str, &'a str) {
        let mut fields = self.raw("marker").unwrap_or_default().splitn(3, '|');
        let mut field = || fields.next().unwrap_or_default();
        (field(), field(), field())
    }

    /// How its session ended, in one word, and what it says more.
    pub(super) fn ending(&self) -> Option<(&'a str, Option<&'a str>)> {
        let ending = &self.value["ending"];
        Some((ending["ending"].as_str()?, ending["detail"].as_str().filter(|detail| !detail.is_empty())))
    }
}
