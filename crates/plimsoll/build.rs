//! Passes two scripts to the linker. One makes all programs smaller. The other places all code and data that a hook uses
//! next to each other; `scripts/order.sh` traces the symbols and writes them to `together.txt`. Enabled only if
//! `scripts/build.sh` has found that the linker supports such scripts.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "a build script prints its directives for cargo, and stops the build by panicking"
)]

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=PLIMSOLL_TOGETHER");
    println!("cargo::rerun-if-changed=together.txt");
    if std::env::var_os("PLIMSOLL_TOGETHER").is_none_or(|value| value.is_empty()) {
        return;
    }
    let folder = std::env::var_os("OUT_DIR").unwrap();
    let write_script = |name: &str, script: &str| {
        let path = Path::new(&folder).join(name);
        std::fs::write(&path, script).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for argument in ["-T", &write_script("smaller.ld", DISCARD_UNWIND_TABLES_SCRIPT)] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    // All read-only sections share one segment, which avoids partly filled pages at the edges of segments.
    let script =
        write_script("together.ld", &render_linker_script_grouping_symbols(include_str!("together.txt")));
    for argument in ["-T", &script, "-z", "noseparate-code"] {
        println!("cargo::rustc-link-arg-bin=plimsoll-hook={argument}");
    }
}

/// A linker script that discards the unwind tables, which are a fifteenth of a program's size. They are not needed: a
/// panic aborts, and a backtrace of a stripped program has no names. The tables of the C library's start and end objects
/// are kept, because those define where the tables begin and end.
const DISCARD_UNWIND_TABLES_SCRIPT: &str = "SECTIONS
{
  /DISCARD/ : { *(EXCLUDE_FILE(*crtbegin*.o *crtend*.o) .eh_frame .gcc_except_table .gcc_except_table.*) }
}
INSERT BEFORE .text;
";

/// Returns a linker script that places the sections of these symbols next to each other, before the linker's default
/// script places the others. Each line of `symbol_list` is `KIND:SYMBOL`; a symbol that does not exist is ignored.
fn render_linker_script_grouping_symbols(symbol_list: &str) -> String {
    let section_lines = |kinds: &str, sections: &[&str]| -> String {
        let section_line = |symbol_name: &str| {
            let symbol_sections: Vec<String> =
                sections.iter().map(|section| format!("{section}.{symbol_name}")).collect();
            format!("    *({})\n", symbol_sections.join(" "))
        };
        let kinds_and_names = symbol_list.lines().filter_map(|line| line.split_once(':'));
        kinds_and_names
            .filter(|(kind, _)| kinds.contains(kind))
            .map(|(_, symbol_name)| section_line(symbol_name))
            .collect()
    };
    // A function's jump tables have its name. Unnamed constants get different numbers in each build, so all
    // of them are included.
    let constants = section_lines("rtw", &[".rodata", ".rodata.unlikely"]);
    let functions = section_lines("tw", &[".text", ".text.unlikely"]);
    // The data that a hook writes is at the end of `.data` and at the start of `.bss`, so that it shares one page.
    let (data, zeroed_data) =
        (section_lines("d", &[".data", ".data.rel.local"]), section_lines("b", &[".bss"]));
    format!(
        "SECTIONS
{{
  .rodata.together : {{
    *(.rodata.cst*)
    *(.rodata.str*)
{constants}    *(.rodata..Lanon.*)
  }}
  .text.together : {{
    *crt1.o(.text)
    *libc.a:*(.text)
    KEEP(*(SORT_NONE(.fini)))
{functions}  }}
}}
INSERT BEFORE .text;
SECTIONS
{{
  .data.apart : {{ *(.data.*backtrace*) }}
  .data.together : ALIGN(0x1000) {{
{data}  }}
}}
INSERT BEFORE .data;
SECTIONS
{{
  .bss.together (NOLOAD) : {{
    *libc.a:*(COMMON)
{zeroed_data}  }}
}}
INSERT BEFORE .bss;
"
    )
}
