//! `postgresql://user:password@host:port/database?sslmode=require`, or `host=… dbname=…`.

use super::{Parameters, SettingsError, keyword};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// What an address of either kind says.
pub(crate) fn parse(text: &str) -> Result<Parameters, SettingsError> {
    let text = text.trim();
    let rest = ["postgresql://", "postgres://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    match rest {
        Some(rest) => of_address(rest),
        None if text.contains('=') && !text.contains("://") => of_pairs(text),
        None => Err(SettingsError::NoAddress),
    }
}

fn of_address(rest: &str) -> Result<Parameters, SettingsError> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    let (user, hosts) = match authority.split_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    // One that was not encoded would make a part of the password a host, and errors name hosts.
    if hosts.contains('@') || database.contains('@') {
        return Err(SettingsError::Malformed);
    }
    let mut found = Parameters::new();
    if let Some(user) = user {
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        put(&mut found, "user", percent_decoded(user)?);
        put(&mut found, "password", percent_decoded(password)?);
    }
    let (names, ports) = hosts_and_ports(hosts)?;
    put(&mut found, "host", names);
    put(&mut found, "port", ports);
    put(&mut found, "dbname", percent_decoded(database)?);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(SettingsError::Malformed)?;
        let (name, value) = (percent_decoded(name)?, percent_decoded(value)?);
        match (name.as_str(), value.as_str()) {
            // As JDBC says it; libpq takes it, too.
            ("ssl", "true") => put(&mut found, "sslmode", "require".to_owned()),
            _ => put(&mut found, keyword(&name).ok_or(SettingsError::UnknownParameter)?, value),
        }
    }
    Ok(found)
}

fn put(found: &mut Parameters, name: &'static str, value: String) {
    if !value.is_empty() {
        found.insert(name, value);
    }
}

/// `a:1,[::1]:2` as the lists `a,::1` and `1,2`.
fn hosts_and_ports(hosts: &str) -> Result<(String, String), SettingsError> {
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']').ok_or(SettingsError::Malformed)?;
                if !rest.is_empty() && !rest.starts_with(':') {
                    return Err(SettingsError::Malformed);
                }
                (name, rest.trim_start_matches(':'))
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(percent_decoded(name)?);
        ports.push(percent_decoded(port)?);
    }
    let is_said = |list: &[String]| list.iter().any(|part| !part.is_empty());
    let joined = |list: Vec<String>| if is_said(&list) { list.join(",") } else { String::new() };
    Ok((joined(names), joined(ports)))
}

/// Decodes a percent-encoded text. Fails for a `%` without two hexadecimal digits, which is mostly one that was not encoded.
fn percent_decoded(text: &str) -> Result<String, SettingsError> {
    let is_encoded = |rest: &str| {
        rest.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let decoded = percent_decode_str(text).decode_utf8().map(Cow::into_owned);
    match decoded {
        Ok(decoded) if text.split('%').skip(1).all(is_encoded) && !decoded.contains('\0') => Ok(decoded),
        _ => Err(SettingsError::Malformed),
    }
}

/// `keyword = value 'with blanks'`, with `\` before a quote or another `\`.
fn of_pairs(text: &str) -> Result<Parameters, SettingsError> {
    let mut found = Parameters::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or(SettingsError::Malformed)?;
        let (value, after) = value(after.trim_start())?;
        put(&mut found, keyword(name.trim()).ok_or(SettingsError::UnknownParameter)?, value);
        rest = after.trim_start();
    }
    Ok(found)
}

/// A value and what follows it.
fn value(text: &str) -> Result<(String, &str), SettingsError> {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            '\'' if quoted.is_some() => return Ok((value, &text[at + 1..])),
            _ if quoted.is_none() && letter.is_whitespace() => return Ok((value, &text[at..])),
            _ => value.push(letter),
        }
    }
    if quoted.is_some() { Err(SettingsError::Malformed) } else { Ok((value, "")) }
}
