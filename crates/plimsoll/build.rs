//! Hands the linker two scripts: one makes all programs smaller, and by the other what a hook touches lies side by side. `together.txt` has
//! the names, which `scripts/order.sh` has traced. Only if `scripts/build.sh` has found that the linker takes such scripts.
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
    if std::env::var_os("PLIMSOLL_TOGETHER").is_none_or(|asked| asked.is_empty()) {
        return;
    }
    let folder = std::env::var_os("OUT_DIR").unwrap();
    let write_script = |name: &str, script: &str| {
        let path = Path::new(&folder).join(name);
        std::fs::write(&path, script).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for word in ["-T", &write_script("smaller.ld", WITHOUT_UNWIND_TABLES)] {
        println!("cargo::rustc-link-arg-bins={word}");
    }
    // All that is only read is one segment: fewer pages at edges.
    let script = write_script("together.ld", &order_script(include_str!("together.txt")));
    for word in ["-T", &script, "-z", "noseparate-code"] {
        println!("cargo::rustc-link-arg-bin=plimsoll-hook={word}");
    }
}

/// The tables by which a stack is unwound are a fifteenth of a program. A panic aborts, and in a stripped program a backtrace has no names.
/// Those of the C library's own objects stay, which name their begin and their end.
const WITHOUT_UNWIND_TABLES: &str = "SECTIONS
{
  /DISCARD/ : { *(EXCLUDE_FILE(*crtbegin*.o *crtend*.o) .eh_frame .gcc_except_table .gcc_except_table.*) }
}
INSERT BEFORE .text;
";

/// Places before the linker's own script does. A name that nothing has is passed over.
fn order_script(names: &str) -> String {
    let named = |kinds: &str, sections: &[&str]| -> String {
        let line = |name: &str| {
            let sections: Vec<String> = sections.iter().map(|section| format!("{section}.{name}")).collect();
            format!("    *({})\n", sections.join(" "))
        };
        let names = names.lines().filter_map(|line| line.split_once(':'));
        names.filter(|(kind, _)| kinds.contains(kind)).map(|(_, name)| line(name)).collect()
    };
    // A function's tables of jumps have its name. Constants without one are numbered anew in each build: they come all.
    let constants = named("rtw", &[".rodata", ".rodata.unlikely"]);
    let functions = named("tw", &[".text", ".text.unlikely"]);
    // What is written first ends the file's part and begins what only memory has: one page.
    let (data, blank) = (named("d", &[".data", ".data.rel.local"]), named("b", &[".bss"]));
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
{blank}  }}
}}
INSERT BEFORE .bss;
"
    )
}
