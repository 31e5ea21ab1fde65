//! What our web pages have in common: a page that needs nothing else, lets nothing in, and has the house's colours.

mod base64;

use base64::base64_of_hex;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The colours of the house, light and dark.
const COLOURS: &str = include_str!("web_page/colours.css");

/// The page around its contents. The title is foreign words; the style is ours, and so is the only script that may run.
pub(crate) fn document(title: &str, style: &str, script: Option<&str>, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(content_policy(script));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(COLOURS)) (PreEscaped(style)) }
            }
            body {
                main { (main) }
                @if let Some(script) = script { script { (PreEscaped(script)) } }
            }
        }
        "\n"
    };
    page.into_string()
}

/// Nothing is loaded; with a script, that script alone runs, by its digest, and pictures may be part of the page.
fn content_policy(script: Option<&str>) -> String {
    let digest = |script: &str| base64_of_hex(&plimsoll_domain::digest::sha256(&[script.as_bytes()]));
    let script = script.map(|script| format!(" img-src data:; script-src 'sha256-{}';", digest(script)));
    format!(
        "default-src 'none'; style-src 'unsafe-inline';{} base-uri 'none'; form-action 'none'",
        script.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_words_are_words_in_text_and_attributes() {
        let hostile = "</script><img src=x onerror=\"a('b')\">&lt;";
        let safe = "&lt;/script&gt;&lt;img src=x onerror=&quot;a('b')&quot;&gt;&amp;lt;";
        let html = html! { p title=(hostile) { (hostile) } };
        assert_eq!(html.into_string(), format!("<p title=\"{safe}\">{safe}</p>"));
        let page = document(hostile, "", None, &html! {});
        assert!(page.contains(&format!("<title>{safe}</title>")), "{page}");
    }
}
