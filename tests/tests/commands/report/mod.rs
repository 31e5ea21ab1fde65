//! `plimsoll report`: the page of the morning, as it is written, and as a browser shows it.

mod browser;
mod long_run;
mod real_run;
mod report_command;
mod report_page;
mod sample_run;
