//! Made-up secrets in the forms that the rules of `plimsoll-secrets` and other scanners know. They are composed at
//! run time, so that no scanner reports this file.

use super::random_draws::Draws;

/// Returns a line that contains a secret, and the secret itself.
pub fn line_with_secret(draws: &mut Draws) -> (String, String) {
    match draws.number_below(7) {
        0 => in_line("GITHUB_TOKEN=", format!("{}_{}", "ghp", random_letters(draws, 36)), ""),
        1 => in_line("aws_access_key_id = ", format!("{}{}", "AKIA", random_capitals(draws, 16)), ""),
        2 => in_line("STRIPE_SECRET_KEY=", format!("sk_{}_{}", "live", random_letters(draws, 24)), ""),
        3 => in_line("  slack: ", slack_token(draws), ""),
        4 => in_line("DATABASE_URL=postgres://app:", random_letters(draws, 20), "@db.internal:5432/main"),
        5 => in_line(
            "export ANTHROPIC_API_KEY=",
            format!("{}-api03-{}AA", "sk-ant", random_letters(draws, 93)),
            "",
        ),
        _ => in_line("DB_PASSWORD=\"", random_letters(draws, 22), "\""),
    }
}

/// Returns a token as a user pastes it into a request.
pub fn pasted_token(draws: &mut Draws) -> String {
    format!("{}_{}", "ghp", random_letters(draws, 36))
}

fn in_line(before: &str, secret: String, after: &str) -> (String, String) {
    (format!("{before}{secret}{after}"), secret)
}

fn slack_token(draws: &mut Draws) -> String {
    let mut digits = || format!("{}", 1_000_000_000_000 + draws.number_below(8_000_000_000_000));
    let (first, second) = (digits(), digits());
    format!("{}-{first}-{second}-{}", "xoxb", random_letters(draws, 24))
}

fn random_letters(draws: &mut Draws, count: usize) -> String {
    random_text(draws, b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", count)
}

fn random_capitals(draws: &mut Draws, count: usize) -> String {
    random_text(draws, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", count)
}

fn random_text(draws: &mut Draws, alphabet: &[u8], count: usize) -> String {
    (0..count).map(|_| char::from(*draws.pick(alphabet))).collect()
}
