//! The golden file of the module's interface, against the C header.
//!
//! The Rust half of the interface is compared with the same file, so the two halves agree.

use std::{env, fs, path::Path, process::Command};

#[test]
fn the_c_header_has_the_layout_of_the_golden_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../memtype/kmod");
    let program = env::temp_dir().join(format!("pagelab-layout-{}", std::process::id()));
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    let Ok(status) = compile.arg(folder.join("tests/layout.c")).status() else {
        eprintln!("skipped: there is no C compiler; to run it: sudo apt-get install gcc");
        return;
    };
    assert!(status.success(), "the header does not compile");
    let printed = Command::new(&program).output().unwrap().stdout;
    fs::remove_file(program).unwrap();
    let golden = fs::read_to_string(folder.join("uapi/layout.txt")).unwrap();
    assert_eq!(String::from_utf8(printed).unwrap(), golden);
}
