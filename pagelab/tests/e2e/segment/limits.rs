//! Where segments end: programs that cannot have any, changes smaller than a leaf, mappings of
//! which a process has so many, and programs that are killed.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use super::*;

const NOBODY: u32 = 65_534;

/// The program with segments of maps, in one of its ways.
fn way(lab: &Lab, flags: &[&str], words: &[&str]) -> Option<(Ended, Value)> {
    let program = compiled(lab, "segments")?;
    let flags = [&["--heap", "64m", "--mmap", "512m"], flags].concat();
    let ran = segmented(lab, &flags, &[&[program.to_str().unwrap()], words].concat());
    ran.0.exits(0);
    Some(ran).filter(|(_, told)| is_glibc(told))
}

#[test]
fn half_a_leaf_is_given_back_one_is_mapped_over_and_a_thread_forks() {
    let lab = Lab::new();
    let Some((ended, told)) = way(&lab, &[], &["halves"]) else { return };
    assert_eq!(ended.stdout, "halves\n");
    assert!(claims(&told).contains(&"map-bytes"), "{told:#}");
    assert_eq!(told["end"]["processes"], 2, "{told:#}");
}

#[test]
fn a_process_has_mappings_left_however_often_it_cuts_its_segment() {
    let lab = Lab::new();
    let most = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let most: u64 = most.trim().parse().unwrap();
    // As `segment/library/src/splits.rs` has it: two for each page of its own, and 2048 for others.
    let expected = most.saturating_sub(2048) / 2;
    if most < 4096 || expected > 32 << 10 {
        return skip(
            "a process may have another number of mappings",
            "sysctl vm.max_map_count=65530",
        );
    }
    // Of segments that are mapped on demand the kernel has each mapping itself.
    let Some((ended, told)) = way(&lab, &["--zero", "ahead"], &["cuts", "256"]) else { return };
    assert_eq!(ended.stdout.trim(), expected.to_string());
    assert_eq!(told["leaves"]["bounded"], 1, "{told:#}");
    ended.complains(&["change refused, as the process has too many mappings"]);
}

#[test]
fn a_program_of_32_bits_or_of_another_user_is_refused_by_name() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let refused = |program: &str, why: &str| {
        let ended = lab.pagelab(&["segment", "run", "--", program]);
        ended.exits(2).complains(&[program, why, "pagelab try --rung collapse,thp-always"]);
        let wrap = ["segment", "wrap", program, "-o", "wrapped"];
        lab.pagelab(&wrap).exits(2).complains(&[program, why]);
        assert!(!lab.path("wrapped").exists(), "{program}");
    };
    // The header of a program of 32 bits: class, order, version; executable, of an 80386, and no
    // more than itself.
    let mut narrow = vec![0_u8; 52];
    narrow[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    (narrow[16], narrow[18], narrow[20], narrow[40]) = (2, 3, 1, 52);
    lab.program(lab.file("bytes", narrow), "narrow");
    refused("./narrow", "./narrow is of 32 bits");
    if !is_root() {
        // One that every distribution gives root's rights.
        let is_other = |path: &&str| {
            fs::metadata(path).is_ok_and(|file| file.uid() == 0 && file.mode() & 0o4000 != 0)
        };
        let Some(other) = ["/usr/bin/su", "/bin/su", "/usr/bin/passwd"].into_iter().find(is_other)
        else {
            return skip("no program takes the rights of another user", "run the tests as root");
        };
        return refused(other, &format!("{other} takes the rights of another user"));
    }
    let other = lab.program(fs::canonicalize("/bin/sleep").unwrap(), "other");
    chown(&other, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
    refused("./other", "./other takes the rights of another user");
}

#[test]
fn a_pool_is_given_back_though_the_program_is_killed() {
    let lab = Lab::new();
    let Some(_machine) = Machine::as_root() else { return };
    let Some((saved, _)) = pool(POOL_PAGES) else { return };
    build_library(PACKAGE);
    let run = [&["segment", "run"], &POOL[..], &["--", "sh", "-c", "kill -KILL $$"]].concat();
    let ended = lab.pagelab(&run);
    assert_eq!(ended.code, None, "it ends as its program does: {}", ended.stderr);
    saved.becomes(saved.found());
}
