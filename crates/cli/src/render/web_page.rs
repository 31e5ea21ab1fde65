//! Builds self-contained HTML pages that load nothing and share one color scheme.

mod base64;

use base64::hex_to_base64;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The colors of all pages, for light and dark mode.
const COLORS_CSS: &str = include_str!("web_page/colours.css");

/// Returns the page around `main`. The title is escaped; `style` and `script` are not, and must be trusted.
pub(crate) fn render_page(title: &str, style: &str, script: Option<&str>, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(content_security_policy(script));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(COLORS_CSS)) (PreEscaped(style)) }
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

/// Returns a policy that loads nothing. If there is a script, only that script may run, identified by its
/// digest, and embedded images are allowed.
fn content_security_policy(script: Option<&str>) -> String {
    let base64_digest =
        |script: &str| hex_to_base64(&plimsoll_domain::digest::sha256_hex(&[script.as_bytes()]));
    let script_policy =
        script.map(|script| format!(" img-src data:; script-src 'sha256-{}';", base64_digest(script)));
    format!(
        "default-src 'none'; style-src 'unsafe-inline';{} base-uri 'none'; form-action 'none'",
        script_policy.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_escaped_in_text_and_attributes() {
        let hostile = "</script><img src=x onerror=\"a('b')\">&lt;";
        let safe = "&lt;/script&gt;&lt;img src=x onerror=&quot;a('b')&quot;&gt;&amp;lt;";
        let html = html! { p title=(hostile) { (hostile) } };
        assert_eq!(html.into_string(), format!("<p title=\"{safe}\">{safe}</p>"));
        let page = render_page(hostile, "", None, &html! {});
        assert!(page.contains(&format!("<title>{safe}</title>")), "{page}");
    }
}
