//! What cannot be captured is said with a cure, and leaves nothing behind.

use std::fs;

use super::{Machine, STATIC, SUM, guest, tools};
use crate::support::{Lab, binary};

/// Refused with exit code 2 and these words; no file is made.
#[track_caller]
fn is_refused(lab: &Lab, words: &[&str], named: &[&str]) {
    let before = fs::read_dir(lab.path(".")).unwrap().count();
    lab.pagelab(&[&["trace", "capture"], words].concat()).exits(2).complains(named);
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), before, "something was left behind");
}

#[test]
fn what_is_no_program_is_refused_with_what_to_do() {
    let lab = Lab::new();
    is_refused(&lab, &["--", "./nothing"], &["there is no program ./nothing"]);
    is_refused(&lab, &["--", "no-such-program"], &["there is no program no-such-program"]);
    is_refused(&lab, &["--max", "0", "--", "true"], &["--max"]);
    is_refused(&lab, &[], &["PROGRAM"]);
    lab.file("script", "#!/bin/sh -e\necho\n");
    let cure = "pagelab trace capture -- /bin/sh -e ./script";
    is_refused(&lab, &["--", "./script"], &["./script is a script", cure]);
    lab.file("text", "hello\n");
    is_refused(&lab, &["--", "./text"], &["./text is no program", "ELF"]);
    let mut foreign = fs::read(binary()).unwrap();
    foreign.truncate(1 << 16);
    foreign[18..20].copy_from_slice(&22_u16.to_le_bytes());
    foreign[40..48].fill(0); // no sections: they are not in the copy
    lab.file("foreign", foreign);
    is_refused(&lab, &["--", "./foreign"], &["./foreign is for a machine", "22", "riscv64"]);
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let lab = Lab::new();
    if guest(&lab, Machine::X86, SUM, STATIC).is_none() {
        return;
    }
    lab.file("there", "mine");
    is_refused(&lab, &["-o", "there", "--", "./guest"], &["there", "it exists"]);
    is_refused(&lab, &["--image", "there", "--", "./guest"], &["there", "it exists"]);
    is_refused(&lab, &["-o", "no/where", "--", "./guest"], &["no/where", "No such file"]);
    lab.file("there.zst", "mine");
    is_refused(&lab, &["-o", "there.zst", "--", "./guest"], &["cannot create there.zst", "exists"]);
    assert_eq!(fs::read(lab.path("there")).unwrap(), b"mine");
}

#[test]
fn a_qemu_that_is_missing_or_loads_no_plugins_is_a_need_with_its_cure() {
    let lab = Lab::new();
    let run = || {
        let mut command = assert_cmd::Command::new(binary());
        lab.ended(command.args(["trace", "capture", "--"]).arg(binary()).env("PATH", "tools"))
    };
    run().exits(3).complains(&["this host lacks qemu-x86_64", "apt-get install qemu-user"]);
    fs::create_dir(lab.path("tools")).unwrap();
    let script = lab.file("script", "#!/bin/sh\necho '-L path'\n");
    lab.program(script, "tools/qemu-x86_64");
    run()
        .exits(3)
        .complains(&["this host lacks a qemu-x86_64 that loads plugins", "built without"]);
}

#[test]
fn a_plugin_that_is_missing_is_a_need_with_its_cure() {
    if tools(Machine::X86).is_none() {
        return;
    }
    let lab = Lab::new();
    let copy = lab.program(binary(), "pagelab");
    let mut command = assert_cmd::Command::new(&copy);
    let ended = lab.ended(command.args(["trace", "capture", "--"]).arg(&copy));
    ended.exits(3).complains(&["libpagelab_capture.so", "cargo build -p pagelab-capture"]);
}

#[test]
fn the_plugin_is_found_in_the_library_folder_too() {
    let lab = Lab::new();
    if guest(&lab, Machine::X86, SUM, STATIC).is_none() {
        return;
    }
    fs::create_dir_all(lab.path("bin,1")).unwrap();
    fs::create_dir_all(lab.path("lib/pagelab")).unwrap();
    let copy = lab.program(binary(), "bin,1/pagelab");
    let plugin = "libpagelab_capture.so";
    let built = binary().parent().unwrap().join(plugin);
    fs::copy(built, lab.path("lib/pagelab").join(plugin)).unwrap();
    let mut command = assert_cmd::Command::new(&copy);
    let ended = lab.ended(command.args(["trace", "capture", "--", "./guest"]));
    ended.exits(0).shows(&["operations", "in guest.trace"]);
    assert!(lab.path("guest.trace").exists() && lab.path("guest.trace.image").exists());
}
