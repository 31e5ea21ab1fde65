//! Passes two scripts to the linker: one makes all programs smaller, the other places everything that a hook
//! touches next to each other. The names are in `together.txt`, which `scripts/order.sh` has traced. Active
//! only if `scripts/build.sh` has found that the linker supports such scripts.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "a build script speaks to cargo so, and stops the build so"
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
    for argument in ["-T", &write_script("smaller.ld", WITHOUT_UNWIND_TABLES)] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    // All read-only sections share one segment, which avoids partly filled pages at the edges of segments.
    let script = write_script("together.ld", &order_script(include_str!("together.txt")));
    for argument in ["-T", &script, "-z", "noseparate-code"] {
        println!("cargo::rustc-link-arg-bin=plimsoll-hook={argument}");
    }
}

/// Discards the unwind tables, which are a fifteenth of a program. A panic aborts, and a backtrace of a
/// stripped program has no names. The tables of the C library's own start and end objects stay, because those
/// define where the tables begin and end.
const WITHOUT_UNWIND_TABLES: &str = "SECTIONS
{
  /DISCARD/ : { *(EXCLUDE_FILE(*crtbegin*.o *crtend*.o) .eh_frame .gcc_except_table .gcc_except_table.*) }
}
INSERT BEFORE .text;
";

/// Returns the script that places sections before the linker's own script does. A name that matches nothing
/// is ignored.
fn order_script(names: &str) -> String {
    let section_lines = |kinds: &str, sections: &[&str]| -> String {
        let section_line = |name: &str| {
            let sections: Vec<String> = sections.iter().map(|section| format!("{section}.{name}")).collect();
            format!("    *({})\n", sections.join(" "))
        };
        let kinds_and_names = names.lines().filter_map(|line| line.split_once(':'));
        kinds_and_names.filter(|(kind, _)| kinds.contains(kind)).map(|(_, name)| section_line(name)).collect()
    };
    // A function's jump tables have its name. Constants without a name are numbered anew in each build, so
    // all of them are included.
    let constants = section_lines("rtw", &[".rodata", ".rodata.unlikely"]);
    let functions = section_lines("tw", &[".text", ".text.unlikely"]);
    // The data that a hook writes lies at the end of the part from the file and at the start of the part that
    // only memory has, so that it shares one page.
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
