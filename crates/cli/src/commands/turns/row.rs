//! One turn on one line.

use plimsoll_domain::log_line::Tokens;
use plimsoll_domain::text::tokens;
use plimsoll_flows::turns::Recorded;
use plimsoll_flows::turns::words::{outcome, what};
use plimsoll_store::clock;
use plimsoll_terminal::columns::clip;
use plimsoll_terminal::console::Painted;

/// What stands in the columns of [`row`].
pub(super) fn head() -> Painted {
    let at = clock::for_people(clock::now()).chars().count();
    let words = format!("{:<13} {:<at$}  {:>5}  {:<12} WHAT", "TURN", "TIME", "SENT", "OUTCOME");
    Painted::default().then(Some("1"), &words)
}

/// Name, time, tokens, outcome, what; as wide as the terminal.
pub(super) fn row(recorded: &Recorded, width: usize) -> String {
    let header = &recorded.header;
    let at = clock::moment(&header.at).map(clock::for_people).unwrap_or_default();
    let sent = header.usage.map(Tokens::sent).filter(|sent| *sent > 0).map(tokens);
    let outcome = outcome(recorded);
    let start = format!("{:<13} {at}  {:>5}  {outcome:<12} ", recorded.name(), sent.unwrap_or_default());
    let room = width.saturating_sub(start.chars().count()).max(20);
    format!("{start}{}", clip(&what(recorded), room))
}
