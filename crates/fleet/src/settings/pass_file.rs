//! `.pgpass`: lines of `host:port:database:user:password`.

/// Returns the password of the first matching line.
pub(crate) fn find_password(
    pass_file_text: &str,
    host: &str,
    port: u16,
    database: &str,
    user: &str,
) -> Option<String> {
    let expected_fields = [host, &port.to_string(), database, user];
    let matches_connection = |line: &&str| {
        let fields = split_fields(line);
        let field_matches = |(field, expected_text): (&PassFileField, &&str)| {
            field.is_wildcard || field.text == **expected_text
        };
        fields.len() > expected_fields.len() && fields.iter().zip(&expected_fields).all(field_matches)
    };
    let line = pass_file_text.lines().filter(|line| !line.starts_with('#')).find(matches_connection)?;
    split_fields(line).into_iter().nth(expected_fields.len()).map(|field| field.text)
}

struct PassFileField {
    text: String,
    /// A bare `*`.
    is_wildcard: bool,
}

/// Splits a line at colons; `\` escapes a colon or another `\`.
fn split_fields(line: &str) -> Vec<PassFileField> {
    let mut fields = vec![PassFileField { text: String::new(), is_wildcard: false }];
    let mut field_start = 0;
    let mut characters = line.char_indices();
    while let Some((index, character)) = characters.next() {
        let Some(field) = fields.last_mut() else { break };
        match character {
            '\\' => field.text.extend(characters.next().map(|(_, escaped_character)| escaped_character)),
            ':' => {
                field.is_wildcard = &line[field_start..index] == "*";
                field_start = index + 1;
                fields.push(PassFileField { text: String::new(), is_wildcard: false });
            }
            _ => field.text.push(character),
        }
    }
    fields
}
