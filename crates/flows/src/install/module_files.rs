//! The files of our module for the client, as `init` writes them into the user's skills: a plugin that consists of the
//! module alone. Each text can be recognized as unchanged, whichever version of Plimsoll wrote it.

use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// The module of the plugin, which looks for the programs in the usual folders.
const MODULE_TEMPLATE: &str = include_str!("../../../../hooks-config/plugin/hooks/plimsoll.ts");

/// The line of the template that gets the folder of the programs.
const PROGRAM_FOLDER_LINE: &str = "const PROGRAM_FOLDER: string = \"\";";

const MANIFEST_DESCRIPTION: &str =
    "Plimsoll's module for Claude Code, written by `plimsoll init`; its hooks are in your settings.";

const FIRST_HEADER_LINE: &str =
    "// Written by `plimsoll init`, removed by `plimsoll uninstall`. If you edit this file, both keep it.";
const RECEIPT_PREFIX: &str = "// plimsoll-init ";

/// What the installation did to the user's own settings of Plimsoll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SettingsChange {
    #[default]
    Unchanged,
    /// It added the key `compaction`.
    KeyAdded,
    /// It created the file.
    Created,
}

/// The second line of the module: what `init` did besides writing the module's files, so that the removal undoes
/// exactly that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ModuleReceipt {
    /// True if `init` created the client's folder of skills.
    pub(super) created_skills_folder: bool,
    pub(super) settings: SettingsChange,
}

/// The receipt with the checksum of everything below it.
#[derive(Serialize, Deserialize)]
struct ReceiptLine {
    sha256: String,
    #[serde(flatten)]
    receipt: ModuleReceipt,
}

/// Returns the text of the module file: two lines of ours, then the module with the folder of the programs.
pub(super) fn module_text(program_folder: Option<&Path>, receipt: ModuleReceipt) -> String {
    let folder = program_folder.map(|folder| folder.display().to_string()).unwrap_or_default();
    let folder_line = format!("const PROGRAM_FOLDER: string = {};", Value::String(folder));
    let body = MODULE_TEMPLATE.replacen(PROGRAM_FOLDER_LINE, &folder_line, 1);
    let receipt_line = ReceiptLine { sha256: sha256_hex(&[body.as_bytes()]), receipt };
    let receipt_json = serde_json::to_string(&receipt_line).unwrap_or_default();
    format!("{FIRST_HEADER_LINE}\n{RECEIPT_PREFIX}{receipt_json}\n{body}")
}

/// Returns the receipt of a module file; `None` if `init` has not written it.
pub(super) fn read_receipt(module_text: &str) -> Option<ModuleReceipt> {
    Some(receipt_line_and_body(module_text)?.0.receipt)
}

/// Returns true if the user has not edited a module file since `init` wrote it.
pub(super) fn is_unedited_module(module_text: &str) -> bool {
    receipt_line_and_body(module_text)
        .is_some_and(|(line, body)| line.sha256 == sha256_hex(&[body.as_bytes()]))
}

fn receipt_line_and_body(module_text: &str) -> Option<(ReceiptLine, &str)> {
    let (_, text) = module_text.split_once('\n')?;
    let (receipt_line, body) = text.strip_prefix(RECEIPT_PREFIX)?.split_once('\n')?;
    Some((serde_json::from_str(receipt_line).ok()?, body))
}

/// Returns the manifest of the plugin that this version writes.
pub(super) fn manifest_text() -> String {
    manifest_text_with_version(&BuildInfo::for_current_program("plimsoll").version)
}

fn manifest_text_with_version(version: &str) -> String {
    let manifest = json!({
        "name": "plimsoll",
        "version": version,
        "description": MANIFEST_DESCRIPTION,
        "author": { "name": "Plimsoll" },
    });
    to_pretty_json(&manifest)
}

/// Returns true if `init` of some version wrote this manifest.
// If a later version changes the text, it has to keep this one as well.
pub(super) fn is_our_manifest(text: &str) -> bool {
    manifest_version(text).is_some_and(|version| manifest_text_with_version(&version) == text)
}

/// Returns the version in a manifest.
pub(super) fn manifest_version(text: &str) -> Option<String> {
    plimsoll_protocol::settings::plugins::manifest_version(text.as_bytes())
}

/// Returns the plugin's hooks file: the module and no hooks, because the hooks are in the user's settings.
pub(super) fn hooks_text() -> String {
    to_pretty_json(&json!({ "modules": ["./plimsoll.ts"] }))
}

/// Returns true if the client wrote this `tsconfig.json` for an editor (observed on 2.1.332).
pub(super) fn is_tsconfig_of_client(text: &str) -> bool {
    let tsconfig: Value = serde_json::from_str(text).unwrap_or_default();
    tsconfig == json!({ "extends": "./.claude-plugin/types/tsconfig.json" })
}

/// Returns true if a `.gitignore` ignores nothing but the files that the client writes.
pub(super) fn ignores_only_client_files(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_for_client_file = |line: &str| {
        let name = line.trim_start_matches('/').trim_end_matches('/');
        ["*", ".claude-plugin/types", "tsconfig.json", ".gitignore"].contains(&name)
    };
    lines.next().is_some_and(is_for_client_file) && lines.all(is_for_client_file)
}

fn to_pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_one_line_for_the_program_folder() {
        assert_eq!(MODULE_TEMPLATE.matches(PROGRAM_FOLDER_LINE).count(), 1);
        for (folder, expected) in [
            (Some("/opt/bin"), "const PROGRAM_FOLDER: string = \"/opt/bin\";"),
            (Some("/home/a \"b\"\\c"), r#"const PROGRAM_FOLDER: string = "/home/a \"b\"\\c";"#),
            (None, PROGRAM_FOLDER_LINE),
        ] {
            let text = module_text(folder.map(Path::new), ModuleReceipt::default());
            assert_eq!(text.matches(expected).count(), 1, "{text}");
        }
    }

    #[test]
    fn an_edited_module_is_recognized_and_keeps_its_receipt() {
        for receipt in [
            ModuleReceipt::default(),
            ModuleReceipt { created_skills_folder: true, settings: SettingsChange::Created },
            ModuleReceipt { created_skills_folder: false, settings: SettingsChange::KeyAdded },
        ] {
            let text = module_text(Some(Path::new("/opt/bin")), receipt);
            assert_eq!((read_receipt(&text), is_unedited_module(&text)), (Some(receipt), true), "{text}");
            let edited = text.replace("/opt/bin", "/opt/other");
            assert_eq!((read_receipt(&edited), is_unedited_module(&edited)), (Some(receipt), false));
        }
        for foreign in ["", MODULE_TEMPLATE, "// mine\n// plimsoll-init {}\n", "// mine\n// plimsoll-init\nx"]
        {
            assert_eq!((read_receipt(foreign), is_unedited_module(foreign)), (None, false), "{foreign}");
        }
    }

    #[test]
    fn a_manifest_of_any_version_is_ours_unless_it_was_changed() {
        for (text, expected) in [
            (manifest_text(), true),
            (manifest_text_with_version("0.0.1"), true),
            (manifest_text().replace("Plimsoll's module", "My module"), false),
            (manifest_text() + "\n", false),
            (r#"{"name": "plimsoll", "version": "0.1.0"}"#.to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_our_manifest(&text), expected, "{text}");
        }
    }

    #[test]
    fn only_files_with_the_clients_content_are_the_clients() {
        for (text, expected) in [
            ("{\n  \"extends\": \"./.claude-plugin/types/tsconfig.json\"\n}\n", true),
            ("{\"extends\": \"./.claude-plugin/types/tsconfig.json\", \"include\": []}", false),
            ("{}", false),
            ("// mine", false),
        ] {
            assert_eq!(is_tsconfig_of_client(text), expected, "{text}");
        }
        for (text, expected) in [
            ("*\n", true),
            ("# by the client\n.claude-plugin/types/\n/tsconfig.json\n.gitignore\n", true),
            ("*\n!mine\n", false),
            ("node_modules\n", false),
        ] {
            assert_eq!(ignores_only_client_files(text), expected, "{text}");
        }
    }
}
