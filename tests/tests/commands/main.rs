//! The command and its pages, the installers, the walls and the costs.

mod cost;
mod delivery;
mod docs;
mod doctor;
mod explain;
mod export;
mod foresight;
mod gates;
mod install;
mod report;
mod settings_schema;
mod soak;
mod terminal_words;
mod walls;
