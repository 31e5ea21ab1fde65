//! `plimsoll report`: the page of the morning, as it is written, and as a browser shows it.

mod browser;
mod commands;
mod long;
mod night;
mod page;
mod real;
