//! Installs our module for the client into the folder of the user's skills, as a plugin that consists of the module
//! alone, and removes it. The client loads it without any change of its settings (observed on 2.1.287, 2.1.329 and
//! 2.1.332), so the hooks in the settings stay as they are.

use super::compaction_setting::{
    self, KeyStatus, differs_only_in_compaction, with_compaction_key_added, without_compaction_key,
};
use super::files::{InstalledFileOutcome, plan_file_removal_if_unchanged};
use super::module_files::{
    self, ModuleReceipt, SettingsChange, hooks_text, ignores_only_client_files, is_our_manifest,
    is_tsconfig_of_client, is_unedited_module, manifest_text, module_text, read_receipt,
};
use super::program_home::version_link_or_upgrade_safe_program_path;
use super::restored_file::{RestoredFile, plan_redundant_backup_removal};
use super::{FileChange, InstallError, plan_backup};
use plimsoll_domain::settings::CompactionChoice;
use plimsoll_store::{config, disk, environment};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What an installation does about the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModuleRequest {
    /// A module that is already installed is renewed.
    #[default]
    RenewIfInstalled,
    /// The module is installed, and the user's choice is written into the settings unless they have one.
    Install(Option<CompactionChoice>),
    Remove,
}

/// What an installation changes about the module.
#[derive(Debug)]
pub enum ModuleChange {
    Installed(ModuleInstallation),
    /// Nothing is written, because these files are not ours, or the user has edited them.
    KeptFiles(Vec<PathBuf>),
    Removed(ModuleRemoval),
}

/// A module that is installed or renewed.
#[derive(Debug)]
pub struct ModuleInstallation {
    pub folder: PathBuf,
    /// True if a file changes.
    pub is_changed: bool,
    pub setting: SettingOutcome,
}

/// What happens to `compaction` in the user's own settings of Plimsoll.
#[derive(Debug, PartialEq, Eq)]
pub enum SettingOutcome {
    NotRequested,
    /// Not requested, and the file has no such key.
    Missing(PathBuf),
    Written(PathBuf, CompactionChoice),
    /// The key is already there.
    AlreadySet(PathBuf),
    /// The file is no valid JSON.
    Invalid(PathBuf),
}

/// The result of planning the module's removal.
#[derive(Debug, Default)]
pub struct ModuleRemoval {
    /// Our files.
    pub files: Vec<(PathBuf, InstalledFileOutcome)>,
    /// The files that the client has written beside them.
    pub client_file_count: usize,
    /// The user's own settings of Plimsoll without `compaction`.
    pub restored_settings: Option<RestoredFile>,
}

/// Returns true for a text that `init` or the client has written and nobody has changed.
type RecognizeText = fn(&str) -> bool;

/// The paths of the module's files.
struct ModulePaths {
    skills_folder: PathBuf,
    folder: PathBuf,
    manifest: PathBuf,
    hooks: PathBuf,
    module: PathBuf,
}

impl ModulePaths {
    fn in_client_config_folder() -> Option<ModulePaths> {
        let skills_folder = environment::client_config_folder()?.join("skills");
        let folder = skills_folder.join("plimsoll");
        Some(ModulePaths {
            manifest: folder.join(".claude-plugin/plugin.json"),
            hooks: folder.join("hooks/hooks.json"),
            module: folder.join("hooks/plimsoll.ts"),
            skills_folder,
            folder,
        })
    }

    /// Returns each file with the test that recognizes our unchanged text.
    fn files(&self) -> [(&Path, RecognizeText); 3] {
        [
            (&self.manifest, is_our_manifest),
            (&self.hooks, |text| text == hooks_text()),
            (&self.module, is_unedited_module),
        ]
    }

    /// Returns what `init` does not overwrite: files that it has not written, or that were changed since, and links. A
    /// skill with this name would become a plugin.
    fn user_files_at_our_paths(&self) -> Result<Vec<PathBuf>, InstallError> {
        let skill = self.folder.join("SKILL.md");
        let mut files: Vec<PathBuf> = disk::exists(&skill).then_some(skill).into_iter().collect();
        let folders = [self.folder.clone(), self.folder.join(".claude-plugin"), self.folder.join("hooks")];
        files.extend(folders.into_iter().filter(|folder| disk::is_link(folder)));
        for (path, is_ours) in self.files() {
            if disk::read_text(path)?.is_some_and(|text| !is_ours(&text)) {
                files.push(path.to_owned());
            }
        }
        Ok(files)
    }
}

/// A module that `init` has written, as the doctor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModule {
    pub folder: PathBuf,
    pub(crate) module_file: PathBuf,
    /// The version in its manifest.
    pub(crate) version: Option<String>,
}

/// Finds the module that `init` has written, even if the user has edited it.
pub fn find_installed_module() -> Option<InstalledModule> {
    let paths = ModulePaths::in_client_config_folder()?;
    let read_text = |path: &Path| disk::read_text(path).ok().flatten();
    read_receipt(&read_text(&paths.module)?)?;
    let version = module_files::manifest_version(&read_text(&paths.manifest)?);
    Some(InstalledModule { folder: paths.folder, module_file: paths.module, version })
}

/// Returns true if `init` has installed the module.
pub fn is_module_installed() -> bool {
    find_installed_module().is_some()
}

/// Returns true if the user's own settings of Plimsoll say what happens when the window is full, or if they cannot be
/// read.
pub fn is_compaction_set_or_unreadable() -> bool {
    let Some(path) = config::user_settings_path() else { return true };
    match disk::read_text(&path) {
        Ok(text) => compaction_setting::key_status(&text.unwrap_or_default()) != KeyStatus::Missing,
        Err(_) => true,
    }
}

/// Plans what is requested; `None` if nothing is to be said about the module.
pub(super) fn plan_module_request(
    request: ModuleRequest,
    changes: &mut Vec<FileChange>,
    emptied_folders: &mut Vec<PathBuf>,
) -> Result<Option<ModuleChange>, InstallError> {
    let paths = ModulePaths::in_client_config_folder().ok_or(InstallError::NoHome)?;
    match request {
        ModuleRequest::RenewIfInstalled if !is_module_installed() => Ok(None),
        ModuleRequest::RenewIfInstalled => plan_installation(&paths, None, changes).map(Some),
        ModuleRequest::Install(choice) => plan_installation(&paths, choice, changes).map(Some),
        ModuleRequest::Remove => {
            plan_removal(&paths, changes, emptied_folders).map(|removal| removal.map(ModuleChange::Removed))
        }
    }
}

/// Plans the removal of the module; `None` if there is nothing of it.
pub(super) fn plan_module_removal(
    changes: &mut Vec<FileChange>,
    emptied_folders: &mut Vec<PathBuf>,
) -> Result<Option<ModuleRemoval>, InstallError> {
    let Some(paths) = ModulePaths::in_client_config_folder() else { return Ok(None) };
    plan_removal(&paths, changes, emptied_folders)
}

/// Returns the files that an installation of the module may write.
pub(super) fn written_files() -> Vec<PathBuf> {
    let Some(paths) = ModulePaths::in_client_config_folder() else { return Vec::new() };
    let module_files = [paths.manifest, paths.hooks, paths.module];
    let settings_files = config::user_settings_path().map(|path| [settings_backup_path(&path), path]);
    module_files.into_iter().chain(settings_files.into_iter().flatten()).collect()
}

fn plan_installation(
    paths: &ModulePaths,
    choice: Option<CompactionChoice>,
    changes: &mut Vec<FileChange>,
) -> Result<ModuleChange, InstallError> {
    let user_files = paths.user_files_at_our_paths()?;
    if !user_files.is_empty() {
        return Ok(ModuleChange::KeptFiles(user_files));
    }
    let current_module = disk::read_text(&paths.module)?;
    let mut receipt = current_module.as_deref().and_then(read_receipt).unwrap_or_else(|| ModuleReceipt {
        created_skills_folder: !disk::exists(&paths.skills_folder),
        ..ModuleReceipt::default()
    });
    let mut setting_changes = Vec::new();
    let setting = match choice {
        None => config::user_settings_path()
            .filter(|_| !is_compaction_set_or_unreadable())
            .map_or(SettingOutcome::NotRequested, SettingOutcome::Missing),
        Some(choice) => plan_adding_compaction_key_if_missing(choice, &mut receipt, &mut setting_changes)?,
    };
    let program_folder = version_link_or_upgrade_safe_program_path("plimsoll")
        .and_then(|path| Some(path.parent()?.to_owned()));
    let mut module_changes = Vec::new();
    // The client reads the manifest first, so it is written last: a kill in between leaves no plugin. The receipt is in
    // the module, so it is written before the settings.
    for (path, text) in [
        (&paths.module, module_text(program_folder.as_deref(), receipt)),
        (&paths.hooks, hooks_text()),
        (&paths.manifest, manifest_text()),
    ] {
        let (before, after) = (disk::read(path)?, Some(text.into_bytes()));
        if before != after {
            module_changes.push(FileChange { path: path.clone(), before, after });
        }
    }
    let is_changed = !module_changes.is_empty();
    changes.extend(module_changes.into_iter().chain(setting_changes));
    Ok(ModuleChange::Installed(ModuleInstallation { folder: paths.folder.clone(), is_changed, setting }))
}

fn settings_backup_path(settings_path: &Path) -> PathBuf {
    let mut path = settings_path.as_os_str().to_owned();
    path.push(".plimsoll-backup");
    path.into()
}

/// Plans the key in the user's own settings of Plimsoll, and before it a backup of the file.
fn plan_adding_compaction_key_if_missing(
    choice: CompactionChoice,
    receipt: &mut ModuleReceipt,
    changes: &mut Vec<FileChange>,
) -> Result<SettingOutcome, InstallError> {
    let Some(path) = config::user_settings_path() else { return Ok(SettingOutcome::NotRequested) };
    let before = disk::read(&path)?;
    let current_text = match std::str::from_utf8(before.as_deref().unwrap_or_default()) {
        Ok(text) => text.to_owned(),
        Err(_) => return Ok(SettingOutcome::Invalid(path)),
    };
    match compaction_setting::key_status(&current_text) {
        KeyStatus::Invalid => return Ok(SettingOutcome::Invalid(path)),
        KeyStatus::Present => return Ok(SettingOutcome::AlreadySet(path)),
        KeyStatus::Missing => {}
    }
    receipt.settings = SettingsChange::Created;
    if let Some(bytes) = &before {
        receipt.settings = SettingsChange::KeyAdded;
        changes.push(plan_backup(&settings_backup_path(&path), bytes)?);
    }
    let after = Some(with_compaction_key_added(&current_text, choice).into_bytes());
    changes.push(FileChange { path: path.clone(), before, after });
    Ok(SettingOutcome::Written(path, choice))
}

fn plan_removal(
    paths: &ModulePaths,
    changes: &mut Vec<FileChange>,
    emptied_folders: &mut Vec<PathBuf>,
) -> Result<Option<ModuleRemoval>, InstallError> {
    let receipt = disk::read_text(&paths.module)?.as_deref().and_then(read_receipt);
    let is_our_folder = receipt.is_some()
        || disk::read_text(&paths.manifest)?.is_some_and(|manifest| is_our_manifest(&manifest));
    if !is_our_folder {
        return Ok(None);
    }
    let mut removal = ModuleRemoval::default();
    for (path, is_ours) in paths.files() {
        removal.files.push(plan_file_removal_if_unchanged(path, is_ours, changes)?);
    }
    let receipt = receipt.unwrap_or_default();
    removal.restored_settings = plan_settings_restoration(receipt.settings, changes)?;
    let client_files = plan_removal_of_files_written_by_client(&paths.folder, changes)?;
    removal.client_file_count = client_files.len();
    // Subfolders before the folders that contain them; those with files of the user stay.
    emptied_folders.extend(types_subfolders(&paths.folder));
    emptied_folders
        .extend([".claude-plugin/types", ".claude-plugin", "hooks"].map(|name| paths.folder.join(name)));
    emptied_folders.push(paths.folder.clone());
    emptied_folders.extend(receipt.created_skills_folder.then(|| paths.skills_folder.clone()));
    Ok(Some(removal))
}

/// Returns the folders of the client's declarations for editors. Nothing is followed out of the module's folder.
fn types_subfolders(folder: &Path) -> Vec<PathBuf> {
    let types_folder = folder.join(".claude-plugin/types");
    if ![folder, &folder.join(".claude-plugin"), &types_folder].into_iter().all(disk::is_folder_and_not_link)
    {
        return Vec::new();
    }
    // `claude-code`, `claude-code-mcp` and `claude-code-tools` (observed on 2.1.332)
    let names = disk::list_names(&types_folder).into_iter().filter(|name| name.starts_with("claude-code"));
    names.map(|name| types_folder.join(name)).filter(|path| disk::is_folder_and_not_link(path)).collect()
}

/// Plans the removal of what the client writes beside a module: its declarations for editors.
fn plan_removal_of_files_written_by_client(
    folder: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Vec<PathBuf>, InstallError> {
    let types_folder = folder.join(".claude-plugin/types");
    let subfolders = types_subfolders(folder);
    let own_names: &[&str] = if subfolders.is_empty() { &[] } else { &["tsconfig.json", ".gitignore"] };
    let declarations = subfolders
        .into_iter()
        .flat_map(|folder| disk::list_names(&folder).into_iter().map(move |name| folder.join(name)));
    let mut client_files: Vec<PathBuf> = own_names
        .iter()
        .map(|name| types_folder.join(name))
        .chain(declarations)
        .filter(|path| !disk::is_link(path) && disk::is_file(path))
        .collect();
    for (name, is_written_by_client) in
        [("tsconfig.json", is_tsconfig_of_client as RecognizeText), (".gitignore", ignores_only_client_files)]
    {
        let path = folder.join(name);
        let text = if disk::is_link(&path) { None } else { disk::read_text(&path)? };
        client_files.extend(text.filter(|text| is_written_by_client(text)).map(|_| path));
    }
    for path in &client_files {
        changes.push(FileChange { path: path.clone(), before: disk::read(path)?, after: None });
    }
    Ok(client_files)
}

/// Plans the user's own settings of Plimsoll without the key, if `init` has added it.
fn plan_settings_restoration(
    change: SettingsChange,
    changes: &mut Vec<FileChange>,
) -> Result<Option<RestoredFile>, InstallError> {
    let Some(path) = config::user_settings_path().filter(|_| change != SettingsChange::Unchanged) else {
        return Ok(None);
    };
    let Some(current_bytes) = disk::read(&path)? else { return Ok(None) };
    let backup_path = settings_backup_path(&path);
    let backup_bytes = match change {
        SettingsChange::KeyAdded => disk::read(&backup_path)?,
        SettingsChange::Created | SettingsChange::Unchanged => None,
    };
    let current_text = String::from_utf8_lossy(&current_bytes);
    let original_text = match &backup_bytes {
        Some(bytes) => Some(String::from_utf8_lossy(bytes)),
        // The original is unknown if the user has removed the backup.
        None => (change == SettingsChange::Created).then(Cow::default),
    };
    let is_unedited =
        original_text.as_deref().is_some_and(|original| differs_only_in_compaction(original, &current_text));
    let restored_text = if is_unedited {
        original_text.filter(|_| backup_bytes.is_some()).map(Cow::into_owned)
    } else {
        let Some(text) = without_compaction_key(&current_text) else {
            plan_redundant_backup_removal(&backup_path, backup_bytes, &current_bytes, changes);
            return Ok(None);
        };
        Some(text)
    };
    Ok(Some(RestoredFile::plan_text_and_backup_removal_if_original(
        (&path, &current_bytes),
        restored_text,
        (&backup_path, backup_bytes),
        changes,
    )))
}
