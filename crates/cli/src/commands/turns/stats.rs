//! `plimsoll turns stats`: what the turns came to, and what filled the window.

mod tool;

use super::which::Which;
use super::{TurnsError, bring_up_to_date, no_turn_recorded};
use clap::Args;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::log_line::{MAIN, RecordKind, Tokens};
use plimsoll_domain::subagent_usage::{SubagentUsage, Tally};
use plimsoll_domain::text::{counted, tokens};
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::context::session_usage::add_record;
use plimsoll_flows::turns::{self, Body, Recorded, Selection};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_store::Project;
use plimsoll_terminal::console;
use plimsoll_terminal::console::say;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use tool::{Open, Tool};

/// Of which turns, and how.
#[derive(Debug, Args)]
pub(super) struct StatsArguments {
    #[command(flatten)]
    which: Which,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The figures.
#[derive(Debug, Default)]
struct Stats {
    sessions: usize,
    turns: u64,
    failures: BTreeMap<&'static str, u64>,
    tools: BTreeMap<String, Tool>,
    /// Counted once a message.
    used: Tokens,
    /// What each turn sent and answered.
    sent: Vec<u64>,
    answered: Vec<u64>,
    /// How much the window grew from one turn of a main stream to the next.
    growth: Vec<u64>,
    /// What stayed with subagents.
    delegated: SubagentUsage,
    peak: u64,
    compactions: u64,
    /// The client's own figure, and an estimate for what it has not reported.
    cost: Option<Cost>,
    /// How many sessions the client has reported.
    reported_sessions: usize,
    /// The client's own count of tokens, of the same sessions.
    reported: Tokens,
    /// Tokens of the sessions whose account is known: what the two are compared by.
    compared: Tokens,
}

pub(super) fn stats(project: &Project, arguments: &StatsArguments) -> Result<ExitCode, TurnsError> {
    bring_up_to_date(project);
    let mut stats = Stats::default();
    let which = arguments.which.selection();
    let logs = match which.logs(project) {
        Err(TurnsError::NoLog(_)) if !arguments.json => return Ok(no_turn_recorded(project)),
        Err(TurnsError::NoLog(_)) => Vec::new(),
        logs => logs?,
    };
    for log in logs {
        let mut session = Session::default();
        for record in turns::forwards(&log)? {
            session.take(&record?, &which, &mut stats);
        }
        session.end(&mut stats);
    }
    if arguments.json {
        console::json(stats.json());
    } else {
        say(stats.words());
    }
    Ok(ExitCode::SUCCESS)
}

/// One session on its way through its records.
#[derive(Debug, Default)]
struct Session {
    turns: u64,
    used: Tokens,
    sent_before: Option<u64>,
    /// The last response, until the next request shows what its calls have added.
    open: Option<Open>,
    delegated: Tally,
    /// The usage that the cost is computed from.
    usage: SessionUsage,
    /// The tokens that the client reported at the end.
    reported: Option<Tokens>,
}

impl Session {
    fn take(&mut self, record: &Recorded, which: &Selection, stats: &mut Stats) {
        if which.is_of_whole_sessions() {
            self.delegated.take(&record.header);
        }
        add_record(record, &mut self.usage);
        match (record.header.kind, &record.body) {
            (RecordKind::Turn, _) => self.turn(record, which, stats),
            (RecordKind::Compaction, _) if record.header.stream == MAIN => {
                stats.compactions += 1;
                self.sent_before = None;
                self.open = None;
            }
            // What it adds is no tool's.
            (RecordKind::Prompt, _) if record.header.stream == MAIN => self.open = None,
            // The last one is the newest.
            (RecordKind::Cost, Body::Event(fields)) => {
                self.reported = Some(account(fields.get("models")));
            }
            _ => {}
        }
    }

    fn turn(&mut self, record: &Recorded, which: &Selection, stats: &mut Stats) {
        let used = record.header.usage.unwrap_or_default();
        // The account is of the whole session, subagents too.
        add(&mut self.used, used);
        let is_meant = which.may_mean(&record.header) && which.means(record);
        let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
        if record.header.stream == MAIN && used.sent() > 0 {
            self.window(used, is_meant.then_some(calls), stats);
        }
        if !is_meant {
            return;
        }
        self.turns += 1;
        add(&mut stats.used, used);
        if used.sent() > 0 {
            stats.sent.push(used.sent());
            stats.answered.push(used.output);
        }
        if let Some(reason) = record.header.reason {
            *stats.failures.entry(reason.word()).or_default() += 1;
        }
        for call in calls {
            stats.tools.entry(call.name.clone()).or_default().take(call);
        }
    }

    /// The window's growth, turn by turn: also through those that are not meant, which have no calls here.
    fn window(&mut self, used: Tokens, calls: Option<&[ToolCall]>, stats: &mut Stats) {
        let before = self.sent_before.replace(used.sent());
        let open = std::mem::replace(&mut self.open, calls.map(|calls| Open::new(used, calls)));
        for (name, bytes, added) in open.iter().flat_map(|open| open.added(used.sent())) {
            stats.tools.entry(name.to_owned()).or_default().add_result(bytes, added);
        }
        if calls.is_some() {
            stats.growth.extend(before.map(|before| used.sent().saturating_sub(before)));
            stats.peak = stats.peak.max(used.sent());
        }
    }

    fn end(self, stats: &mut Stats) {
        if self.turns == 0 {
            return;
        }
        stats.sessions += 1;
        stats.turns += self.turns;
        stats.delegated += self.delegated.total();
        stats.cost = Some(stats.cost.unwrap_or_default() + self.usage.cost());
        if let Some(reported) = self.reported {
            stats.reported_sessions += 1;
            add(&mut stats.reported, reported);
            add(&mut stats.compared, self.used);
        }
    }
}

fn add(sum: &mut Tokens, more: Tokens) {
    sum.input += more.input;
    sum.cache_read += more.cache_read;
    sum.cache_creation += more.cache_creation;
    sum.output += more.output;
}

/// The client's account by model, summed.
fn account(models: Option<&Value>) -> Tokens {
    let mut sum = Tokens::default();
    for model in models.and_then(Value::as_object).into_iter().flat_map(|models| models.values()) {
        let number = |key: &str| model.get(key).and_then(Value::as_u64).unwrap_or(0);
        let of_model = Tokens {
            input: number("inputTokens"),
            cache_read: number("cacheReadInputTokens"),
            cache_creation: number("cacheCreationInputTokens"),
            output: number("outputTokens"),
        };
        add(&mut sum, of_model);
    }
    sum
}

/// So many percent of the figures are no larger.
fn quantile(figures: &[u64], percent: usize) -> u64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let place = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(place).copied().unwrap_or(0)
}

impl Stats {
    fn growth_at(&self, percent: usize) -> u64 {
        quantile(&self.growth, percent)
    }

    /// Those that added most first.
    fn by_tokens(&self) -> Vec<(&String, &Tool)> {
        let mut tools: Vec<_> = self.tools.iter().collect();
        tools.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.tokens()));
        tools
    }

    fn words(&self) -> String {
        let failed: u64 = self.failures.values().sum();
        let failures: Vec<String> =
            self.failures.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let failures =
            if failures.is_empty() { String::new() } else { format!(" ({})", failures.join(", ")) };
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut lines = vec![
            format!(
                "Turns      {} in {}, {failed} failed{failures}",
                self.turns,
                counted(self.sessions, "session")
            ),
            format!(
                "Tokens     {} input ({} from the cache), {} output; median per turn: {} input, {} output",
                tokens(self.used.sent()),
                tokens(self.used.cache_read),
                tokens(self.used.output),
                tokens(quantile(&self.sent, 50)),
                tokens(quantile(&self.answered, 50))
            ),
            format!(
                "Window     peak {} tokens, {}; added per turn: median {}, 90th percentile {}",
                tokens(self.peak),
                counted(number(self.compactions), "compaction"),
                tokens(self.growth_at(50)),
                tokens(self.growth_at(90))
            ),
            format!("Cost       {}", self.cost_words()),
        ];
        lines.extend(self.delegated.words().map(|words| format!("Subagents  {words}")));
        if !self.tools.is_empty() {
            lines.push(format!("\n{}", tool::line(&Tool::HEAD)));
        }
        lines.extend(self.by_tokens().into_iter().map(|(name, tool)| tool.row(name)));
        lines.join("\n")
    }

    fn cost_words(&self) -> String {
        let Some(Cost { usd, basis }) = self.cost else { return "unknown: no session".to_owned() };
        let cost = basis.format_usd(usd);
        let source = match basis {
            CostBasis::Reported => "as reported by Claude Code",
            CostBasis::Estimated => "partly estimated at list prices",
            CostBasis::AtMost => "partly estimated, a model without a known price at the highest one",
        };
        if self.reported_sessions == 0 {
            return format!("{cost}, {}", source.replace("partly ", ""));
        }
        let agrees = if self.reported == self.compared {
            "whose tokens are the ones counted here".to_owned()
        } else {
            format!(
                "which counts {} input and {} output tokens, the turns {} and {}: the client also requests titles and summaries",
                tokens(self.reported.sent()),
                tokens(self.reported.output),
                tokens(self.compared.sent()),
                tokens(self.compared.output)
            )
        };
        let source = if basis.is_reported() {
            format!(" {source}")
        } else {
            format!(", {source}; Claude Code's part")
        };
        format!("{cost}{source}, {agrees}")
    }

    fn json(&self) -> Value {
        let plain = |used: &Tokens| {
            json!({
                "input": used.input, "cache_read": used.cache_read, "cache_creation": used.cache_creation,
                "output": used.output,
            })
        };
        let tools: BTreeMap<&String, Value> =
            self.tools.iter().map(|(name, tool)| (name, tool.json())).collect();
        json!({
            "sessions": self.sessions, "turns": self.turns, "failures": self.failures, "tools": tools,
            "tokens": plain(&self.used), "peak_tokens": self.peak, "delegated": self.delegated, "compactions": self.compactions,
            "sent_tokens": {"p50": quantile(&self.sent, 50), "p90": quantile(&self.sent, 90)},
            "answered_tokens": {"p50": quantile(&self.answered, 50), "p90": quantile(&self.answered, 90)},
            "growth_tokens": {"p50": self.growth_at(50), "p90": self.growth_at(90), "turns": self.growth.len()},
            "cost_usd": self.cost.map(|cost| cost.usd), "cost_basis": self.cost.map(|cost| cost.basis), "client_account": plain(&self.reported), "turns_account": plain(&self.compared),
        })
    }
}
