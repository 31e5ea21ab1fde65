//! The kinds of lines, by CommonMark's specification.

use super::*;

/// Returns one letter for the kind of each line.
fn line_kind_letters(markdown: &str) -> String {
    let to_letter = |line: MarkdownLine<'_>| match line.kind {
        LineKind::Blank => '.',
        LineKind::ParagraphStart if line.is_first_of_list_item => 'i',
        LineKind::ParagraphStart => 'p',
        LineKind::ParagraphContinuation => 'c',
        LineKind::Heading => 'h',
        LineKind::Rule => '-',
        LineKind::Fence => 'f',
        LineKind::IndentedCode => 'x',
        LineKind::Comment => '!',
        LineKind::FrontMatter => 'y',
    };
    MarkdownLines::new(markdown).map(to_letter).collect()
}

#[test]
fn a_fence_closes_with_the_same_character_at_least_as_long() {
    for (text, expected) in [
        ("```\na\n```\nb\n", "fffp"),
        ("```npm test``` must pass\n- b\n", "pi"),
        ("```sh\n```js\na\n```\nb\n", "ffffp"),
        ("````md\n```\na\n```\n````\nb\n", "fffffp"),
        ("```\na\n`````\nb\n", "fffp"),
        ("```\na\n~~~\n```\nb\n", "ffffp"),
        ("~~~ a`b\na\n~~~\nb\n", "fffp"),
        ("``\na\n", "pc"),
        ("- a\n  ```\n  b\n  ```\n- c\n", "ifffi"),
        ("- a\n  ```\n  b\n- c\n", "iffi"),
        ("- a\n  ```\n  b\n```\n- c\n", "iffff"),
        ("> ```\n> a\nb\n", "ffp"),
        ("```\na\n    ```\n   ```\nb\n", "ffffp"),
        ("    ```\n    a\n", "xx"),
    ] {
        assert_eq!(line_kind_letters(text), expected, "{text:?}");
    }
}

#[test]
fn code_is_indented_four_columns_and_never_continues_a_paragraph() {
    for (text, expected) in [
        ("    a\n", "x"),
        ("a\n    b\n", "pc"),
        ("a\n\n    b\n\n    c\n", "p.x.x"),
        ("\ta\n", "x"),
        ("- a\n\n  b\n", "i.p"),
        ("- a\n\n      b\n", "i.x"),
        ("- a\n      b\n", "ic"),
        ("- a\n    - b\n        - c\n", "iii"),
        ("- a\n\t- b\n\t\t- c\n", "iii"),
        ("- a\n\n\t\tb\n", "i.x"),
        ("-     a\n", "x"),
        ("-\ta\n", "i"),
        ("-\t\ta\n", "x"),
        ("1. a\n\n   - b\n", "i.i"),
        ("1. a\n\n  - b\n", "i.i"),
        ("10. a\n\n    - b\n", "i.i"),
        ("# a\n    b\n", "hx"),
    ] {
        assert_eq!(line_kind_letters(text), expected, "{text:?}");
    }
}

#[test]
fn a_comment_ends_where_it_is_closed_and_other_html_is_text() {
    for (text, expected) in [
        ("<!--\na\n\nb\n-->\nc\n", "!!!!!p"),
        ("<!-- a -->\nb\n", "!p"),
        ("a\n<!-- b\n-->\nc\n", "p!!p"),
        ("<pre>\n\na\n</pre>\nb\n", "p.pcc"),
        ("<tasks>\n- a\n</tasks>\n", "pic"),
        ("a\n<div>\nb\n", "pcc"),
        ("> <!--\n> a\nb\n", "!!p"),
    ] {
        assert_eq!(line_kind_letters(text), expected, "{text:?}");
    }
}

#[test]
fn lists_quotes_and_paragraphs_follow_commonmark() {
    for (text, expected) in [
        ("a\n- b\n", "pi"),
        ("a\n1. b\n", "pi"),
        ("a\n2. b\n", "pc"),
        ("a\n01) b\n", "pi"),
        ("a\n-\n", "p-"),
        ("a\n*\n", "pc"),
        ("1. a\n2. b\n", "ii"),
        ("- a\n2. b\n", "ii"),
        ("1234567890. a\n", "p"),
        ("-a\n", "p"),
        ("- - a\n", "i"),
        ("- > a\n", "p"),
        ("> - a\n", "i"),
        ("> a\nb\n> c\n", "pcc"),
        ("> a\n- b\n", "pi"),
        ("> - a\nb\n", "ic"),
        ("- a\nb\n\nc\n", "ic.p"),
        ("-\n  a\n", ".p"),
        ("-\n\n  a\n", "..p"),
        ("a\n===\nb\n---\n", "p-p-"),
        ("[a]: /b\n===\n2. c\n===\n", "pcc-"),
        ("[a]: /b\n  -\n2. c\n", "pcc"),
        ("[a]: /b\n---\n2. c\n", "p-i"),
        ("[a]:\n/b\n'c\nd'\n[e]: <f g> (h)\n--\n2. i\n", "pcccccc"),
        ("> - [a]: /b\n>   ===\n>   2. c\n", "icc"),
        ("- [a]: /b\n  ===\n  2. c\n", "icc"),
        ("- [ ]: /b\n  ===\n  2. c\n", "i-i"),
        ("[a]: /b c\n===\n2. c\n", "p-i"),
        ("[a]: /(b\n===\n2. c\n", "p-i"),
        ("[a]: /b\n'c\n===\n2. c\n", "pc-i"),
        ("[a]: /b\nc\n===\n2. c\n", "pc-i"),
        ("c\n[a]: /b\n===\n2. c\n", "pc-i"),
        ("[a]:\n===\n2. c\n", "p-i"),
        ("- a\n---\n", "i-"),
        ("* * *\n- - -\n___\n", "---"),
        ("#a\n# a\n####### a\n", "php"),
        ("a\n# b\nc\n", "php"),
        ("---\ntitle: a\n- b\n---\nc\n", "yyyyp"),
        ("---\ntitle: a\nb: |\n  ```\n...\nc\n", "yyyyyp"),
        ("---\ntitle: a\nb: |\n  - [ ] c\n...\n", "-pcic"),
        ("---\n\n- a\n---\n", "-.i-"),
        ("---\ntitle: a\n- [ ] b\n---\n", "-pi-"),
        ("---\na: b\nc\n", "-pc"),
    ] {
        assert_eq!(line_kind_letters(text), expected, "{text:?}");
    }
}

/// Each of these would take minutes if a line scanned all of another one.
#[test]
fn adversarial_input_is_parsed_in_linear_time() {
    let repetition_count = 200_000;
    for text in [
        "- ".repeat(repetition_count) + "a\n" + &"\n".repeat(repetition_count),
        "- ".repeat(repetition_count) + "a\n" + &" ".repeat(2 * repetition_count) + "b\n",
        "> ".repeat(repetition_count) + &"\n".repeat(repetition_count),
        format!("> {}a\n{}", "- ".repeat(repetition_count), ">\n".repeat(repetition_count)),
        "* ".repeat(repetition_count) + "a",
        format!("<!--\n{}", "--\n".repeat(repetition_count)),
        "[".repeat(repetition_count) + "\n" + &"- [\n".repeat(repetition_count),
        "```\n- [ ] a\n".repeat(repetition_count),
        "---\na:\n".repeat(repetition_count),
        "-\n\n".repeat(repetition_count),
        "[a]: /b\n".repeat(repetition_count) + &"===\n".repeat(repetition_count),
        "[a]: /b\n===\n".repeat(repetition_count),
        format!("[a]: {}\n===\n", "(".repeat(repetition_count)),
        format!("[a]: /b\n{}===\n", "\"a\n".repeat(repetition_count)),
    ] {
        assert!(crate::TodoList::parse(&text).items.len() <= repetition_count);
    }
}
