//! Private keys in PEM: from their first line to their last, also where each line has a number or a mark before
//! it, and where the end has been cut off.

use launcher::secrets::Found;
use regex::Regex;

/// How a private key begins and ends.
pub(super) struct Keys {
    begin: Regex,
    end: Regex,
    body: Regex,
}

/// A key is no longer than this, with numbers and marks before its lines.
const LONGEST: usize = 32 * 1024;

impl Keys {
    pub(super) fn new() -> Result<Keys, regex::Error> {
        // In two pieces, so that this file is not taken for a key itself.
        let words = |verb: &str| format!("-----{verb} (?:[A-Z0-9]+ )*PRIVATE{}KEY(?: BLOCK)?-----", " ");
        Ok(Keys {
            begin: Regex::new(&words("BEGIN"))?,
            end: Regex::new(&words("END"))?,
            // What a key consists of: base 64, line breaks (also written ones), and what stands before lines.
            body: Regex::new(
                r#"^(?:[\s"',+>|→:-]|\\[nrt]|[0-9]{1,6}[\t→|:]|(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]*|[A-Za-z0-9/=+]{16,}|[A-Za-z0-9/+]{2,}={1,2})*"#,
            )?,
        })
    }

    pub(super) fn find(&self, text: &str) -> Vec<Found> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(begin) = self.begin.find_at(text, from) {
            let next = self.begin.find_at(text, begin.end()).map_or(text.len(), |next| next.start());
            let end = self
                .end
                .find(&text[begin.end()..next])
                .map(|end| begin.end() + end.start()..begin.end() + end.end());
            let to = match end.clone().filter(|end| end.start - begin.end() <= LONGEST) {
                Some(end) => end.end,
                None => {
                    let rest = &text[begin.end()..next];
                    let body = self.body.find(rest).map_or("", |body| body.as_str());
                    begin.end() + body.trim_end().len()
                }
            };
            // Only the words, as in a search for them or a sentence about them, are no key.
            let body = &text[begin.end()..end.map_or(to, |end| end.start.min(to))];
            let is_broken = body.contains('\n') || body.contains("\\n");
            if to > begin.end() + 16 && (is_broken || !body.trim().contains(' ')) {
                found.push(Found { kind: "private-key", range: begin.start()..to });
            }
            from = to;
        }
        found
    }
}
