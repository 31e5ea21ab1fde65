//! Foreign words in Markdown.

use crate::render::visible::visible;
use plimsoll_domain::text::one_line;

/// A fence that is longer than any inside.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

/// One line whose letters mean nothing to Markdown.
pub(super) fn inline(text: &str) -> String {
    let mut shown = String::new();
    for letter in visible(&one_line(text)).chars() {
        match letter {
            '<' => shown.push_str("&lt;"),
            '&' => shown.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => {
                shown.push('\\');
                shown.push(letter);
            }
            plain => shown.push(plain),
        }
    }
    shown
}

/// Words that may be Markdown themselves, in a quotation that they cannot leave. Outside of code their HTML is
/// shown, not meant.
pub(super) fn quoted(text: &str) -> String {
    let mut fence: Option<Fence> = None;
    let mut lines = Vec::new();
    // A run of backticks whose partner is on another line: from there on nothing is taken for code.
    let mut is_lost = false;
    for line in text.trim_end().split('\n') {
        let shown = match (&fence, Fence::of(line)) {
            (Some(open), this) => {
                if this.is_some_and(|this| this.closes(open)) {
                    fence = None;
                }
                line.to_owned()
            }
            // Further in it may be the end of one that began in a list.
            (None, Some(this)) if !line.starts_with(' ') => {
                fence = Some(this);
                is_lost = false;
                line.to_owned()
            }
            (None, _) => {
                is_lost &= !line.trim().is_empty();
                plain(line, &mut is_lost)
            }
        };
        lines.push(format!("> {shown}"));
    }
    lines.join("\n")
}

/// The beginning or end of a fenced block.
struct Fence {
    letter: char,
    length: usize,
    is_bare: bool,
}

impl Fence {
    fn of(line: &str) -> Option<Fence> {
        let text = line.trim_start_matches(' ');
        let letter = text.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
        let rest = text.trim_start_matches(letter);
        let length = text.len() - rest.len();
        let is_fence = line.len() - text.len() <= 3 && length >= 3 && !(letter == '`' && rest.contains('`'));
        is_fence.then(|| Fence { letter, length, is_bare: rest.trim().is_empty() })
    }

    fn closes(&self, open: &Fence) -> bool {
        self.letter == open.letter && self.length >= open.length && self.is_bare
    }
}

/// A line outside of fences: HTML is shown, except in code between equal runs of backticks, where it is anyway.
/// (A `|` may divide the cells of a table, and with them the code.)
fn plain(line: &str, is_lost: &mut bool) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(place) = rest.find(['`', '<']) {
        shown.push_str(&rest[..place]);
        rest = &rest[place..];
        if let Some(after) = rest.strip_prefix('<') {
            shown.push_str("&lt;");
            rest = after;
            continue;
        }
        let after = rest.trim_start_matches('`');
        let run = rest.len() - after.len();
        *is_lost |= shown.ends_with('\\');
        let end = closing(after, run).filter(|end| !*is_lost && !after[..*end].contains('|'));
        *is_lost |= end.is_none();
        let taken = run + end.unwrap_or(0);
        shown.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    shown + rest
}

/// Where a run of exactly so many backticks ends.
fn closing(text: &str, length: usize) -> Option<usize> {
    let mut from = 0;
    while let Some(place) = text[from..].find('`') {
        let start = from + place;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == length {
            return Some(start + run);
        }
        from = start + run;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_fence() {
        assert_eq!(fenced("a", "sh"), "```sh\na\n```");
        assert_eq!(fenced("```\nx\n````\n", ""), "`````\n```\nx\n````\n`````");
    }

    #[test]
    fn a_quotation_shows_html_and_keeps_code() {
        let cases = [
            ("<script>x</script>", "> &lt;script>x&lt;/script>"),
            ("a `Vec<T>` b <b>", "> a `Vec<T>` b &lt;b>"),
            ("a ` <b>", "> a ` &lt;b>"),
            ("``a ` <i>`` <b>", "> ``a ` <i>`` &lt;b>"),
            ("```\n<b>\n```\n<b>", "> ```\n> <b>\n> ```\n> &lt;b>"),
            ("~~~\n```\n~~~\n<b>", "> ~~~\n> ```\n> ~~~\n> &lt;b>"),
            // Three ways to make code of what is none: over lines, by a backslash, by the end of a list's fence.
            ("x ` y\n` <b> `", "> x ` y\n> ` &lt;b> `"),
            ("\\\\`a` <b> `", "> \\\\`a` &lt;b> `"),
            ("- ```\n  x\n  ```\n<b>", "> - ```\n>   x\n>   ```\n> &lt;b>"),
            ("| ` | <b> ` |", "> | ` | &lt;b> ` |"),
            ("# no heading\n\nx", "> # no heading\n> \n> x"),
        ];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_in_a_line_means_nothing() {
        assert_eq!(inline("a_b\n# <b> & `c`"), "a\\_b \\# &lt;b> &amp; \\`c\\`");
    }
}
