//! Checks whether the client loads our module, and names the modules of other plugins that act in its sessions.

use super::{ClientInfo, Finding, Section};
use crate::client_modules::{
    INSTALLED_MODULE_PLUGIN, describe_other_module, first_module_version, supports_modules,
};
use plimsoll_domain::Timestamp;
use plimsoll_domain::journal::OtherModule;
use plimsoll_domain::text::count_with_noun;

/// The module that `plimsoll init` has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModuleInfo {
    pub folder: String,
    /// The version in its manifest.
    pub version: Option<String>,
}

/// Whether the last session of this project loaded our module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ModuleLoadStatus {
    /// There is no session to tell it by: none was recorded since the module was installed, or the last one belongs to a
    /// run, in which the module is silent.
    #[default]
    Unknown,
    Loaded(Timestamp),
    NotLoaded,
}

/// What doctor knows about modules in the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleInfo {
    pub installed: Option<InstalledModuleInfo>,
    /// The client's name for our plugin, if it is enabled and has the module.
    pub plugin: Option<String>,
    pub load_status: ModuleLoadStatus,
    /// The settings file that sets `disableAllHooks`.
    pub hooks_disabling_file: Option<String>,
    /// The settings file that switches off the module that `init` has written.
    pub plugin_disabling_file: Option<String>,
    /// True if the client does not compact by itself.
    pub is_auto_compact_off: bool,
    /// The user's setting that only a module can carry out, `compaction` or `handoff_at`.
    pub setting_that_needs_module: Option<&'static str>,
    /// Modules of other plugins, each with its file.
    pub other_modules: Vec<(OtherModule, String)>,
}

impl ModuleInfo {
    fn is_present(&self) -> bool {
        self.installed.is_some() || self.plugin.is_some()
    }

    /// Returns true if the settings switch off every copy of our module.
    fn is_switched_off(&self) -> bool {
        self.hooks_disabling_file.is_some() || self.plugin_disabling_file.is_some() && self.plugin.is_none()
    }

    /// Returns which copy of our module answers: `init` or `plugin`.
    pub fn active_module_copy(&self) -> Option<&'static str> {
        let is_installed_copy_on = self.installed.is_some() && self.plugin_disabling_file.is_none();
        match (is_installed_copy_on, &self.plugin) {
            (true, _) => Some("init"),
            (false, Some(_)) => Some("plugin"),
            (false, None) => None,
        }
    }
}

/// Returns `None` if there is neither our module nor one of another plugin.
pub(super) fn check_module_and_other_modules(
    info: &ModuleInfo,
    client: &ClientInfo,
    program_version: &str,
) -> Option<Section> {
    if !info.is_present() && info.other_modules.is_empty() && info.setting_that_needs_module.is_none() {
        return None;
    }
    let mut findings = Vec::new();
    if let Some(setting) = info.setting_that_needs_module.filter(|_| !info.is_present()) {
        let message = format!("\"{setting}\" in your settings has no effect without the module");
        findings.push(Finding::warning("module.missing", message, "run `plimsoll init --user --module`"));
    }
    if info.is_present() {
        findings.extend(check_what_switches_it_off(info, client));
        findings.extend(check_installed_version(info, program_version));
    }
    findings.extend(info.other_modules.iter().map(other_module_note));
    Some(Section::new("Module", summarize(info), findings))
}

fn summarize(info: &ModuleInfo) -> String {
    let origin = match (&info.installed, &info.plugin) {
        (Some(_), Some(plugin)) => {
            format!("installed by `plimsoll init` and in the plugin {plugin}; the one of `init` is used")
        }
        (Some(_), None) => "installed by `plimsoll init`".to_owned(),
        (None, Some(plugin)) => format!("in the plugin {plugin}"),
        (None, None) if info.other_modules.is_empty() => return "not installed".to_owned(),
        (None, None) => {
            let count = count_with_noun(info.other_modules.len(), "module");
            return format!("not installed; {count} of other plugins");
        }
    };
    let load_text = match &info.load_status {
        ModuleLoadStatus::Loaded(_) => "; the last session loaded it",
        ModuleLoadStatus::NotLoaded => "; the last session did not load it",
        ModuleLoadStatus::Unknown => "; the last session does not show whether it loads",
    };
    origin + load_text
}

fn check_what_switches_it_off(info: &ModuleInfo, client: &ClientInfo) -> Vec<Finding> {
    let mut findings = Vec::new();
    let version_text = client.version_text.as_deref().unwrap_or_default();
    let is_old_client = client.parsed_version().is_some() && !supports_modules(version_text);
    if is_old_client {
        let message = format!(
            "Claude Code {} does not load modules; {} is the first version that does. The hooks keep working",
            version_text.split_whitespace().next().unwrap_or("?"),
            first_module_version()
        );
        findings.push(Finding::warning("module.old_client", message, "update Claude Code"));
    }
    findings.extend(info.hooks_disabling_file.iter().map(|path| {
        let message = "\"disableAllHooks\" is true, so no module is loaded";
        Finding::warning("module.hooks_disabled", message, "remove it, or set it to false")
            .with_path(path.clone())
    }));
    findings.extend(info.plugin_disabling_file.iter().map(|path| {
        let message = format!("\"enabledPlugins\" switches {INSTALLED_MODULE_PLUGIN} off");
        let advice = "nothing if you want that; to switch it on, remove the entry";
        Finding::note("module.switched_off", message, advice).with_path(path.clone())
    }));
    if info.is_auto_compact_off {
        let message = "automatic compaction is off, so no handoff takes the place of a summary; only the key above the prompt remains";
        let advice = "nothing if you want that; `/config` in Claude Code switches it on";
        findings.push(Finding::note("module.no_auto_compact", message, advice));
    }
    if info.load_status == ModuleLoadStatus::NotLoaded && !is_old_client && !info.is_switched_off() {
        let message = "the last session did not load the module. `--bare`, `--safe-mode`, managed settings or a switch of Anthropic's can turn modules off; the hooks keep working";
        let advice = "start a session without these options; if the module stays off, `claude plugin list` may say why";
        findings.push(Finding::warning("module.not_loaded", message, advice));
    }
    findings
}

fn check_installed_version(info: &ModuleInfo, program_version: &str) -> Option<Finding> {
    let installed = info.installed.as_ref()?;
    let version = installed.version.as_deref().filter(|version| *version != program_version)?;
    let message = format!("the module is {version}, and the programs are {program_version}");
    let advice = "run `plimsoll init --user`, then restart your sessions";
    Some(Finding::warning("module.other_version", message, advice).with_path(installed.folder.clone()))
}

fn other_module_note((module, path): &(OtherModule, String)) -> Finding {
    let message = format!(
        "a module of another plugin can act inside your sessions and those of `plimsoll run`: {}",
        describe_other_module(module)
    );
    let advice = "nothing if you trust it; a module that answers compactions, continues turns or changes prompts may work against a run";
    Finding::note("module.other", message, advice).with_path(path.clone())
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    const PROGRAM_VERSION: &str = "0.1.0";

    fn client(version: &str) -> ClientInfo {
        ClientInfo {
            path: Some("claude".to_owned()),
            version_text: Some(version.to_owned()),
            ..ClientInfo::default()
        }
    }

    fn installed_module() -> ModuleInfo {
        let installed = InstalledModuleInfo {
            folder: "~/.claude/skills/plimsoll".to_owned(),
            version: Some("0.1.0".to_owned()),
        };
        ModuleInfo { installed: Some(installed), ..ModuleInfo::default() }
    }

    fn other_module() -> (OtherModule, String) {
        let module =
            OtherModule { plugin: "other@market".to_owned(), events: vec!["session.compact".to_owned()] };
        (module, "other.js".to_owned())
    }

    /// A change to the facts, the client's version, and the expected codes.
    type Case = (fn(&mut ModuleInfo), &'static str, &'static [&'static str]);

    #[test]
    fn what_switches_the_module_off_is_named() {
        const NEW: &str = "2.1.329 (Claude Code)";
        const OLD: &str = "2.1.286 (Claude Code)";
        let cases: [Case; 15] = [
            (|_| (), NEW, &[]),
            (|_| (), OLD, &["module.old_client"]),
            (|_| (), "no version", &[]),
            (|info| info.load_status = ModuleLoadStatus::Loaded(Timestamp::UNKNOWN), NEW, &[]),
            (|info| info.load_status = ModuleLoadStatus::NotLoaded, NEW, &["module.not_loaded"]),
            // The known reason is enough.
            (|info| info.load_status = ModuleLoadStatus::NotLoaded, OLD, &["module.old_client"]),
            (
                |info| {
                    info.load_status = ModuleLoadStatus::NotLoaded;
                    info.hooks_disabling_file = Some("settings.json".to_owned());
                },
                NEW,
                &["module.hooks_disabled"],
            ),
            (
                |info| {
                    info.load_status = ModuleLoadStatus::NotLoaded;
                    info.plugin_disabling_file = Some("settings.json".to_owned());
                },
                NEW,
                &["module.switched_off"],
            ),
            // The plugin's copy should have been loaded.
            (
                |info| {
                    info.load_status = ModuleLoadStatus::NotLoaded;
                    info.plugin_disabling_file = Some("settings.json".to_owned());
                    info.plugin = Some("plimsoll@plimsoll".to_owned());
                },
                NEW,
                &["module.switched_off", "module.not_loaded"],
            ),
            (|info| info.is_auto_compact_off = true, NEW, &["module.no_auto_compact"]),
            (
                |info| info.installed.as_mut().unwrap().version = Some("0.0.9".to_owned()),
                NEW,
                &["module.other_version"],
            ),
            (|info| info.other_modules.push(other_module()), NEW, &["module.other"]),
            (|info| info.setting_that_needs_module = Some("compaction"), NEW, &[]),
            (
                |info| {
                    info.installed = None;
                    info.setting_that_needs_module = Some("handoff_at");
                },
                NEW,
                &["module.missing"],
            ),
            (
                |info| {
                    info.installed = None;
                    info.is_auto_compact_off = true;
                    info.other_modules.push(other_module());
                },
                NEW,
                &["module.other"],
            ),
        ];
        for (change, version, expected) in cases {
            let mut info = installed_module();
            change(&mut info);
            let section = check_module_and_other_modules(&info, &client(version), PROGRAM_VERSION).unwrap();
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
    }

    #[test]
    fn the_summary_names_the_copy_that_answers() {
        let summary = |info: &ModuleInfo| {
            check_module_and_other_modules(info, &client("2.1.329"), PROGRAM_VERSION)
                .map(|section| section.summary)
        };
        assert_eq!(summary(&ModuleInfo::default()), None);
        let mut info = installed_module();
        assert_eq!(info.active_module_copy(), Some("init"));
        insta::assert_snapshot!(summary(&info).unwrap(), @"installed by `plimsoll init`; the last session does not show whether it loads");
        info.plugin = Some("plimsoll@plimsoll".to_owned());
        info.load_status = ModuleLoadStatus::Loaded(Timestamp::UNKNOWN);
        assert_eq!(info.active_module_copy(), Some("init"));
        insta::assert_snapshot!(summary(&info).unwrap(), @"installed by `plimsoll init` and in the plugin plimsoll@plimsoll; the one of `init` is used; the last session loaded it");
        info.installed = None;
        info.load_status = ModuleLoadStatus::NotLoaded;
        assert_eq!(info.active_module_copy(), Some("plugin"));
        insta::assert_snapshot!(summary(&info).unwrap(), @"in the plugin plimsoll@plimsoll; the last session did not load it");
        let others = ModuleInfo { other_modules: vec![other_module()], ..ModuleInfo::default() };
        assert_eq!(others.active_module_copy(), None);
        insta::assert_snapshot!(summary(&others).unwrap(), @"not installed; 1 module of other plugins");
    }
}
