//! `.pgpass`: lines of `host:port:database:user:password`.

/// The password of the first line that fits.
pub(crate) fn password(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
    let wanted = [host, &port.to_string(), database, user];
    let fits = |line: &&str| {
        let fields = fields(line);
        let is_it = |(field, wanted): (&Field, &&str)| field.is_any || field.text == **wanted;
        fields.len() > wanted.len() && fields.iter().zip(&wanted).all(is_it)
    };
    let line = text.lines().filter(|line| !line.starts_with('#')).find(fits)?;
    fields(line).into_iter().nth(wanted.len()).map(|field| field.text)
}

struct Field {
    text: String,
    /// A bare `*`.
    is_any: bool,
}

/// The fields between colons; `\` takes the meaning from a colon or another `\`.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = vec![Field { text: String::new(), is_any: false }];
    let mut begins = 0;
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        let Some(field) = fields.last_mut() else { break };
        match letter {
            '\\' => field.text.extend(letters.next().map(|(_, letter)| letter)),
            ':' => {
                field.is_any = &line[begins..at] == "*";
                begins = at + 1;
                fields.push(Field { text: String::new(), is_any: false });
            }
            _ => field.text.push(letter),
        }
    }
    fields
}
