//! What our web pages have in common: a page that needs nothing else, lets nothing in, and has the house's colours.

mod escape;

use escape::base64_of_hex;
pub(crate) use escape::escaped;

/// The colours of the house, light and dark.
const COLOURS: &str = include_str!("web_page/colours.css");

/// A page up to its body. The title is foreign words; the style is ours, and so is the only script that may run.
pub(crate) fn opening(title: &str, style: &str, script: Option<&str>) -> String {
    let digest = |script: &str| base64_of_hex(&plimsoll_domain::digest::sha256(&[script.as_bytes()]));
    let script = script.map(|script| format!(" img-src data:; script-src 'sha256-{}';", digest(script)));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline';{} \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>\n{COLOURS}{style}</style>\n</head>\n<body>\n",
        script.unwrap_or_default(),
        escaped(title)
    )
}
