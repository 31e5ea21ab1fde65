//! `plimsoll report`: the command, the page that it writes, and the page in a browser.

mod browser;
mod long_run;
mod real_run;
mod report_command;
mod report_page;
mod sample_run;
