//! `postgresql://user:password@host:port/database?sslmode=require`, or `host=… dbname=…`.

use super::{Parameters, SettingsError, find_keyword};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Parses an address of either form.
pub(crate) fn parse(text: &str) -> Result<Parameters, SettingsError> {
    let text = text.trim();
    let rest = ["postgresql://", "postgres://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    match rest {
        Some(rest) => parse_url(rest),
        None if text.contains('=') && !text.contains("://") => parse_keyword_list(text),
        None => Err(SettingsError::NoAddress),
    }
}

fn parse_url(rest: &str) -> Result<Parameters, SettingsError> {
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = location.split_once('/').unwrap_or((location, ""));
    let (user, hosts) = match authority.split_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    // A password with `@` that was not encoded would become part of the host, and errors show hosts.
    if hosts.contains('@') || database.contains('@') {
        return Err(SettingsError::MalformedAddress);
    }
    let mut parameters = Parameters::new();
    if let Some(user) = user {
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        insert_if_not_empty(&mut parameters, "user", percent_decode(user)?);
        insert_if_not_empty(&mut parameters, "password", percent_decode(password)?);
    }
    let (names, ports) = split_hosts_and_ports(hosts)?;
    insert_if_not_empty(&mut parameters, "host", names);
    insert_if_not_empty(&mut parameters, "port", ports);
    insert_if_not_empty(&mut parameters, "dbname", percent_decode(database)?);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(SettingsError::MalformedAddress)?;
        let (name, value) = (percent_decode(name)?, percent_decode(value)?);
        match (name.as_str(), value.as_str()) {
            // JDBC's form, which libpq accepts, too.
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

fn insert_if_not_empty(parameters: &mut Parameters, name: &'static str, value: String) {
    if !value.is_empty() {
        parameters.insert(name, value);
    }
}

/// Splits `a:1,[::1]:2` into the lists `a,::1` and `1,2`.
fn split_hosts_and_ports(hosts: &str) -> Result<(String, String), SettingsError> {
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']').ok_or(SettingsError::MalformedAddress)?;
                if !rest.is_empty() && !rest.starts_with(':') {
                    return Err(SettingsError::MalformedAddress);
                }
                (name, rest.trim_start_matches(':'))
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(percent_decode(name)?);
        ports.push(percent_decode(port)?);
    }
    let has_values = |list: &[String]| list.iter().any(|element| !element.is_empty());
    let join_or_empty = |list: Vec<String>| if has_values(&list) { list.join(",") } else { String::new() };
    Ok((join_or_empty(names), join_or_empty(ports)))
}

/// Decodes percent-encoding. Fails for a `%` without two hexadecimal digits, which is usually a character that was not encoded.
fn percent_decode(text: &str) -> Result<String, SettingsError> {
    let is_encoded = |rest: &str| {
        rest.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let decoded = percent_decode_str(text).decode_utf8().map(Cow::into_owned);
    match decoded {
        Ok(decoded) if text.split('%').skip(1).all(is_encoded) && !decoded.contains('\0') => Ok(decoded),
        _ => Err(SettingsError::MalformedAddress),
    }
}

/// Parses `keyword = value 'with blanks'`, with `\` before a quote or another `\`.
fn parse_keyword_list(text: &str) -> Result<Parameters, SettingsError> {
    let mut parameters = Parameters::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, rest_after_name) = rest.split_once('=').ok_or(SettingsError::MalformedAddress)?;
        let (value, rest_after_value) = take_value(rest_after_name.trim_start())?;
        insert_if_not_empty(
            &mut parameters,
            find_keyword(name.trim()).ok_or(SettingsError::UnknownParameter)?,
            value,
        );
        rest = rest_after_value.trim_start();
    }
    Ok(parameters)
}

/// Parses a value, and returns it with the rest of the text.
fn take_value(text: &str) -> Result<(String, &str), SettingsError> {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped_character)| escaped_character)),
            '\'' if quoted.is_some() => return Ok((value, &text[index + 1..])),
            _ if quoted.is_none() && character.is_whitespace() => return Ok((value, &text[index..])),
            _ => value.push(character),
        }
    }
    if quoted.is_some() { Err(SettingsError::MalformedAddress) } else { Ok((value, "")) }
}
