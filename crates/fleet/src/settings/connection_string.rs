//! `postgresql://user:password@host:port/database?sslmode=require`, or `host=… dbname=…`.

use super::{Parameters, SettingsError, find_keyword};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Parses a URL or a list of `keyword=value`.
pub(crate) fn parse_url_or_keyword_list(text: &str) -> Result<Parameters, SettingsError> {
    let text = text.trim();
    let url_without_scheme =
        ["postgresql://", "postgres://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    match url_without_scheme {
        Some(url) => parse_url(url),
        None if text.contains('=') && !text.contains("://") => parse_keyword_list(text),
        None => Err(SettingsError::NoAddress),
    }
}

fn parse_url(url_without_scheme: &str) -> Result<Parameters, SettingsError> {
    let (location, query) = url_without_scheme.split_once('?').unwrap_or((url_without_scheme, ""));
    let (authority, database) = location.split_once('/').unwrap_or((location, ""));
    let (credentials, hosts) = match authority.split_once('@') {
        Some((user_and_password, hosts)) => (Some(user_and_password), hosts),
        None => (None, authority),
    };
    // A password with `@` that was not encoded would become part of the host, and errors show hosts.
    if hosts.contains('@') || database.contains('@') {
        return Err(SettingsError::MalformedAddress);
    }
    let mut parameters = Parameters::new();
    if let Some(user_and_password) = credentials {
        let (user, password) = user_and_password.split_once(':').unwrap_or((user_and_password, ""));
        insert_if_not_empty(&mut parameters, "user", percent_decode(user)?);
        insert_if_not_empty(&mut parameters, "password", percent_decode(password)?);
    }
    let (host_names, ports) = split_hosts_and_ports(hosts)?;
    insert_if_not_empty(&mut parameters, "host", host_names);
    insert_if_not_empty(&mut parameters, "port", ports);
    insert_if_not_empty(&mut parameters, "dbname", percent_decode(database)?);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(SettingsError::MalformedAddress)?;
        let (name, value) = (percent_decode(name)?, percent_decode(value)?);
        match (name.as_str(), value.as_str()) {
            // JDBC's way to require TLS, which libpq also accepts.
            ("ssl", "true") => insert_if_not_empty(&mut parameters, "sslmode", "require".to_owned()),
            _ => insert_if_not_empty(
                &mut parameters,
                find_keyword(&name).ok_or(SettingsError::UnknownParameter)?,
                value,
            ),
        }
    }
    Ok(parameters)
}

/// Returns the URL of the same database for another user. Returns `None` if the text is not a URL, or names the user in its query.
pub(crate) fn url_with_credentials(text: &str, user: &str, password: &str) -> Option<String> {
    let (scheme, url) = text.trim().split_once("://")?;
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let names_user = query.split('&').any(|pair| pair.starts_with("user=") || pair.starts_with("password="));
    // Text before the scheme's end that is not one of these could be a part of a password.
    if !matches!(scheme, "postgresql" | "postgres") || names_user {
        return None;
    }
    let authority_length = url.find(['/', '?']).unwrap_or(url.len());
    let (authority, rest) = url.split_at(authority_length);
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    Some(format!("{scheme}://{user}:{password}@{hosts}{rest}"))
}

fn insert_if_not_empty(parameters: &mut Parameters, name: &'static str, value: String) {
    if !value.is_empty() {
        parameters.insert(name, value);
    }
}

/// Splits `a:1,[::1]:2` into the lists `a,::1` and `1,2`.
fn split_hosts_and_ports(hosts: &str) -> Result<(String, String), SettingsError> {
    let mut host_names = Vec::new();
    let mut ports = Vec::new();
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[') {
            Some(text_after_bracket) => {
                let (name, port_text) =
                    text_after_bracket.split_once(']').ok_or(SettingsError::MalformedAddress)?;
                if !port_text.is_empty() && !port_text.starts_with(':') {
                    return Err(SettingsError::MalformedAddress);
                }
                (name, port_text.trim_start_matches(':'))
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        host_names.push(percent_decode(name)?);
        ports.push(percent_decode(port)?);
    }
    let has_values = |list: &[String]| list.iter().any(|element| !element.is_empty());
    let join_or_empty = |list: Vec<String>| if has_values(&list) { list.join(",") } else { String::new() };
    Ok((join_or_empty(host_names), join_or_empty(ports)))
}

/// Decodes percent-encoding. Fails for a NUL character, and for a `%` without two hexadecimal digits, which is usually a character
/// that was not encoded.
fn percent_decode(text: &str) -> Result<String, SettingsError> {
    let starts_with_two_hex_digits = |text_after_percent: &str| {
        text_after_percent
            .get(..2)
            .is_some_and(|first_two_chars| first_two_chars.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let decoded = percent_decode_str(text).decode_utf8().map(Cow::into_owned);
    match decoded {
        Ok(decoded) if text.split('%').skip(1).all(starts_with_two_hex_digits) && !decoded.contains('\0') => {
            Ok(decoded)
        }
        _ => Err(SettingsError::MalformedAddress),
    }
}

/// Parses a list such as `host=db password='with blanks'`. `\` escapes a quote or another `\`.
fn parse_keyword_list(text: &str) -> Result<Parameters, SettingsError> {
    let mut parameters = Parameters::new();
    let mut remaining_text = text.trim_start();
    while !remaining_text.is_empty() {
        let (name, text_after_name) =
            remaining_text.split_once('=').ok_or(SettingsError::MalformedAddress)?;
        let (value, text_after_value) = parse_value_and_remaining_text(text_after_name.trim_start())?;
        insert_if_not_empty(
            &mut parameters,
            find_keyword(name.trim()).ok_or(SettingsError::UnknownParameter)?,
            value,
        );
        remaining_text = text_after_value.trim_start();
    }
    Ok(parameters)
}

/// Parses a quoted or unquoted value, and returns it with the remaining text.
fn parse_value_and_remaining_text(text: &str) -> Result<(String, &str), SettingsError> {
    let text_after_quote = text.strip_prefix('\'');
    let text = text_after_quote.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped_character)| escaped_character)),
            '\'' if text_after_quote.is_some() => return Ok((value, &text[index + 1..])),
            _ if text_after_quote.is_none() && character.is_whitespace() => {
                return Ok((value, &text[index..]));
            }
            _ => value.push(character),
        }
    }
    if text_after_quote.is_some() { Err(SettingsError::MalformedAddress) } else { Ok((value, "")) }
}
