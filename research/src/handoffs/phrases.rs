//! Sentences of users and of the assistant, built from the words of a theme. Every sentence that carries a fact
//! contains a number that occurs nowhere else in the conversation, so that the judge cannot find it by accident.

use super::random_draws::Draws;
use super::themes::Theme;

/// The language in which a conversation's user and assistant write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    English,
    German,
    French,
    Polish,
    Russian,
    Japanese,
    EnglishWithEmoji,
}

/// A decision: what was chosen and why. Both parts occur in its sentence.
#[derive(Clone, Debug)]
pub struct DecisionSentence {
    pub sentence: String,
    pub choice: String,
    pub reason: String,
}

/// Composes sentences from the words of a theme.
#[derive(Clone, Debug)]
pub struct Phrases {
    pub theme: &'static Theme,
    pub language: Language,
    nouns: Vec<&'static str>,
    verbs: Vec<&'static str>,
    qualities: Vec<&'static str>,
    draws: Draws,
    /// Each number is used once.
    next_number: usize,
}

impl Phrases {
    pub fn new(theme: &'static Theme, language: Language, mut draws: Draws) -> Phrases {
        let next_number = 1_000 + draws.number_below(4_000);
        let words = |list: &'static str| list.split_whitespace().collect();
        let (nouns, verbs, qualities) = (words(theme.nouns), words(theme.verbs), words(theme.qualities));
        Phrases { theme, language, nouns, verbs, qualities, draws, next_number }
    }

    pub fn noun(&mut self) -> &'static str {
        self.draws.pick::<&str>(&self.nouns)
    }

    pub fn verb(&mut self) -> &'static str {
        self.draws.pick::<&str>(&self.verbs)
    }

    pub fn quality(&mut self) -> &'static str {
        self.draws.pick::<&str>(&self.qualities)
    }

    /// Returns a number that no other call returns.
    pub fn unique_number(&mut self) -> usize {
        self.next_number += 1 + self.draws.number_below(7);
        self.next_number
    }

    /// Returns an identifier such as `ledger_posting_1042`, which no other call returns.
    pub fn identifier(&mut self) -> String {
        format!("{}_{}_{}", self.noun(), self.noun(), self.unique_number())
    }

    fn fill_template(&mut self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, remaining) = after.split_once('}').unwrap_or((after, ""));
            text.push_str(before);
            text.push_str(&match name {
                "noun" => self.noun().to_owned(),
                "verb" => self.verb().to_owned(),
                "quality" => self.quality().to_owned(),
                "id" => self.identifier(),
                "number" => self.unique_number().to_string(),
                other => format!("{{{other}}}"),
            });
            rest = remaining;
        }
        text + rest
    }

    fn fill_random_template(&mut self, templates: &[&str]) -> String {
        let template = *self.draws.pick(templates);
        self.fill_template(template)
    }

    /// Returns one sentence in which the user wants something.
    pub fn request_sentence(&mut self) -> String {
        self.fill_random_template(match self.language {
            Language::English => &[
                "Make the {noun} {verb} every {quality} {noun} before the {noun} closes, at most {number} at a time.",
                "can you {verb} the {noun} when {id} is {quality}?",
                "The {noun} shows {number} for a {quality} {noun}; it should use the {noun} of `{id}` instead.",
                "add a --{noun}-limit option (default {number}) to the {noun} command",
                "Please find out why {id} is {quality} after the second {noun} and fix it.",
                "I want {id} to reject a {quality} {noun} with exit code 3, not with a warning ({number}).",
                "Replace the {quality} {noun} by \"{id}\" everywhere, but don't touch the {noun}'s public API.",
            ],
            Language::EnglishWithEmoji => &[
                "🚨 {id} is {quality} again – please {verb} it before the {noun} ships 🙏",
                "The café’s {noun} needs a “{quality}” badge (№ {number}) → next to the {noun} ✅",
            ],
            Language::German => &[
                "Bitte ändere {id} so, dass jede überfällige Größe ({noun}) höchstens {number}-mal geprüft wird.",
                "Die Prüfung „{noun}“ schlägt für {id} fehl – räum das bitte auf, ohne die Schnittstelle zu ändern.",
            ],
            Language::French => &[
                "Il faut que {id} gère aussi le cas où « {noun} » est déjà {number} fois répété, s’il te plaît.",
                "Corrige l’arrondi de {id} : à partir de {number}, le {noun} doit être refusé, pas tronqué.",
            ],
            Language::Polish => &[
                "Popraw {id} tak, żeby każdy {noun} był sprawdzany najwyżej {number} razy, także gdy ścieżka jest pusta.",
                "Zrób, proszę, żeby {id} zwracał błąd zamiast ostrzeżenia, gdy {noun} jest większy niż {number}.",
            ],
            Language::Russian => &[
                "Сделай так, чтобы {id} проверял каждый {noun} не чаще {number} раз и не менял порядок записей.",
                "Почему {id} падает, если {noun} пустой? Исправь и добавь проверку на {number}.",
            ],
            Language::Japanese => &[
                "{id}が{noun}を{number}回以上処理しないように直してください。公開APIは変えないで。",
                "{noun}が空のとき{id}は警告ではなくエラー{number}を返すようにしてください。",
            ],
        })
    }

    /// Returns a short addition to a request.
    pub fn request_addition(&mut self) -> String {
        self.fill_random_template(match self.language {
            Language::English | Language::EnglishWithEmoji => &[
                "and keep {id} as an alias for the old {noun}",
                "also: the {noun} must stay below {number} ms",
                "use {id} for that, not the {quality} one",
                "one more thing, please leave the {quality} {noun} of release {number} alone",
                "don't forget the test for a {quality} {noun} ({number})",
            ],
            Language::German => &["und lass {id} bitte als Übergangslösung für {noun} stehen"],
            Language::French => &["et garde {id} comme alias, même si « {noun} » est déprécié"],
            Language::Polish => &["i zostaw {id} jako tymczasową nazwę dla {noun}, dobrze?"],
            Language::Russian => &["и оставь {id} как псевдоним для {noun}"],
            Language::Japanese => &["{id}は{noun}の別名として残しておいてください"],
        })
    }

    /// Returns a prompt after which nothing new has to be done.
    pub fn go_on_prompt(&mut self) -> String {
        (*self.draws.pick(&["go on", "continue", "ok", "yes please", "looks good, continue", "weiter", "👍"]))
            .to_owned()
    }

    /// Returns a decision with its reason.
    pub fn decision(&mut self) -> DecisionSentence {
        let choice = self.fill_random_template(&[
            "a {quality} {noun} table with {number} slots",
            "the {quality} {noun} of {id}",
            "one {noun} queue per {noun} (limit {number})",
            "{id} as the only source of the {noun}",
        ]);
        let (reason, template) = match self.language {
            Language::German => (
                self.fill_template("der bisherige {noun} bei {number} Einträgen die Reihenfolge verliert"),
                "Ich nehme {choice}, weil {reason}.",
            ),
            Language::French => (
                self.fill_template("l’ancien {noun} perd l’ordre après {number} entrées"),
                "Je retiens {choice}, parce que {reason}.",
            ),
            Language::Polish => (
                self.fill_template("dotychczasowy {noun} gubi kolejność przy {number} wpisach"),
                "Wybieram {choice}, ponieważ {reason}.",
            ),
            Language::Russian => (
                self.fill_template("прежний {noun} теряет порядок при {number} записях"),
                "Я выбираю {choice}, потому что {reason}.",
            ),
            Language::Japanese => (
                self.fill_template("従来の{noun}は{number}件で順序が崩れるため"),
                "{reason}、{choice}を採用します。",
            ),
            Language::English | Language::EnglishWithEmoji => {
                let reason = self.fill_random_template(&[
                    "the {noun} driver loses its order above {number} entries",
                    "{id} is called from two threads",
                    "the {quality} {noun} is rounded twice otherwise (ticket {number})",
                    "the vendor's {noun} rejects anything larger than {number} bytes",
                ]);
                let templates = [
                    "I'll go with {choice} rather than a {quality} {noun}, because {reason}.",
                    "Let's use {choice} instead of the {quality} {noun}: {reason}.",
                    "Two options here: a {quality} {noun}, or {choice}. I take the latter, since {reason}.",
                    "Rather than patching the {noun} again we keep {choice}; {reason}.",
                ];
                (reason, *self.draws.pick(&templates))
            }
        };
        let template = template.replace("{choice}", "\u{1}").replace("{reason}", "\u{2}");
        let sentence = self.fill_template(&template).replace('\u{1}', &choice).replace('\u{2}', &reason);
        DecisionSentence { sentence, choice, reason }
    }

    /// Returns a sentence with which the assistant announces its next step in a file.
    pub fn next_step(&mut self, path: &str) -> String {
        let templates: &[&str] = match self.language {
            Language::English | Language::EnglishWithEmoji => &[
                "Next I'll move {id} into `{path}` and call it from the {noun}.",
                "Next: add the missing {quality} branch to {id} in {path}.",
                "Then the {noun} in {path} has to return {number} instead of the {quality} {noun}.",
                "What remains is to delete {id} from {path} once the {noun} no longer reads it.",
                "Now I need to thread {id} through {path}.",
                "After that, raise the {noun} limit in {path} to {number}.",
                "Let me wire {id} up in `{path}` so that a {quality} {noun} is refused.",
            ],
            Language::German => {
                &["Als Nächstes verschiebe ich {id} nach {path} und ergänze die Prüfung auf {number}."]
            }
            Language::French => {
                &["Ensuite, je déplace {id} dans {path} et j’ajoute la vérification n° {number}."]
            }
            Language::Polish => &["Następnie przeniosę {id} do {path} i dodam sprawdzenie {number}."],
            Language::Russian => &["Дальше я перенесу {id} в {path} и добавлю проверку {number}."],
            Language::Japanese => &["次に{id}を{path}へ移し、上限{number}の確認を追加します。"],
        };
        let template = self.draws.pick(templates).replace("{path}", "\u{1}");
        self.fill_template(&template).replace('\u{1}', path)
    }

    /// Returns what the assistant proposes before a short answer of the user.
    pub fn proposal(&mut self, path: &str) -> String {
        let template = *self.draws.pick(&[
            "Should I split {id} out of {path} and keep the {quality} {noun} as a fallback?",
            "I can either leave it, or rewrite the {noun} in {path} around {id}. Shall I rewrite it?",
            "Do you want me to {verb} the {noun} in {path} through {id} ({number} call sites)?",
        ]);
        let template = template.replace("{path}", "\u{1}");
        self.fill_template(&template).replace('\u{1}', path)
    }

    /// Returns what the assistant writes between its calls; it carries no fact. Mostly a sentence, sometimes a
    /// paragraph.
    pub fn filler_text(&mut self) -> String {
        let sentence_count = match self.draws.number_below(100) {
            0..65 => 1,
            65..88 => self.draws.number_between(2, 4),
            _ => self.draws.number_between(5, 12),
        };
        self.filler_sentences(sentence_count)
    }

    /// Returns the last message of a turn, which tells what was done. It carries no fact.
    pub fn filler_paragraphs(&mut self) -> String {
        let paragraph_count = self.draws.number_between(1, 3);
        let mut paragraphs = Vec::new();
        for _ in 0..paragraph_count {
            let sentence_count = self.draws.number_between(2, 6);
            paragraphs.push(self.filler_sentences(sentence_count));
        }
        paragraphs.join("\n\n")
    }

    fn filler_sentences(&mut self, count: usize) -> String {
        let remarks: Vec<String> = (0..count).map(|_| self.filler_sentence()).collect();
        remarks.join(" ")
    }

    fn filler_sentence(&mut self) -> String {
        self.fill_random_template(&[
            "Let me look at the {noun} first.",
            "The {noun} is {quality} here, as expected.",
            "I see: {noun} and {noun} share the same {quality} path.",
            "That covers the {quality} case, so I check the {noun} now.",
            "Good, now the other side of the {noun}.",
            "Hm, the {noun} is not what {verb} returns, so I read on.",
            "Let me verify that nothing else uses the {quality} {noun}.",
            "The {noun} in {id} is built before the {noun}, which explains the {quality} value.",
            "There are {number} callers, most of them for a {quality} {noun}.",
            "It may be that the {quality} {noun} was meant, but the tests say {noun}.",
            "`{id}` reads the {noun} twice; that does no harm.",
            "I also looked at {id}, which only has a {quality} {noun}.",
            "This is because the {noun} and the {noun} are written by different threads ({number}).",
            "The old code used the {quality} {noun} instead, since release {number}.",
        ])
    }

    /// Returns the text of a plan item.
    pub fn plan_item(&mut self) -> String {
        self.fill_random_template(&[
            "Let {id} {verb} the {quality} {noun}",
            "Refuse a {quality} {noun} above {number}",
            "Move the {noun} out of {id}",
            "Document how the {noun} is {quality} (section {number})",
            "Cover {id} with tests for a {quality} {noun}",
        ])
    }

    /// Returns a line of source code without a line end.
    pub fn code_line(&mut self) -> String {
        self.fill_random_template(&[
            "    let {noun} = {verb}_{noun}({quality}, {number});",
            "    if ({noun}.{quality} > {number}) return {verb}({noun});",
            "    {noun}_{noun}.{verb}(\"{quality}\", {number});",
            "    // The {quality} {noun} comes first ({number}).",
            "    assert({noun}_{quality} != {number});",
            "    total_{noun} += {noun}.{verb}({number});",
        ])
    }

    /// Returns a line as programs print it, without a fact.
    pub fn log_line(&mut self) -> String {
        self.fill_random_template(&[
            "INFO  {noun}: {verb} {quality} {noun} in {number} us",
            "DEBUG {noun}/{noun} {quality}={number}",
            "ok {noun}_{verb}_{quality} ... {number} cases",
            "   {noun}.{noun}: {quality} ({number})",
            "WARN  {noun} is {quality}, retrying {verb} ({number})",
        ])
    }

    /// Returns an error line of a failed command.
    pub fn error_line(&mut self, path: &str) -> String {
        let template = *self.draws.pick(&[
            "AssertionError: expected {noun} to equal {number} but got {quality} {noun}",
            "error[E0308]: mismatched types in {id}: expected `{noun}`, found `{quality}`",
            "{path}:{number}: undefined: {id}",
            "FAILED {path}::test_{id} - ValueError: {quality} {noun}",
            "panic: {noun} index {number} out of range for {quality} {noun}",
            "TypeError: {id} is not a function (reading '{noun}')",
            "--- FAIL: Test_{id} (0.{number}s): want {quality}, got {noun}",
        ]);
        let template = template.replace("{path}", "\u{1}");
        self.fill_template(&template).replace('\u{1}', path)
    }

    /// Returns the decisive line of a result that the assistant has not used yet.
    pub fn decisive_line(&mut self) -> String {
        self.fill_random_template(&[
            "RESULT: {id} {verb}s {number} of {number} {quality} entries",
            "-> slowest {noun}: {id} with {number} ms",
            "{number} passed, 1 skipped: {id} ({quality})",
            "the {quality} {noun} is created in {id}, not in the {noun} ({number})",
            "root cause: {id} holds the {noun} lock for {number} ms",
        ])
    }
}
