//! Where segments end: programs that cannot have any, changes smaller than a leaf, mappings of
//! which a process has so many, and programs that are killed.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use super::*;

const NOBODY: u32 = 65_534;

#[test]
fn half_a_leaf_is_given_back_one_is_mapped_over_and_a_thread_forks() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let flags = ["--heap", "64m", "--mmap", "512m"];
    let (ended, told) = segmented(&lab, &flags, &[program.to_str().unwrap(), "halves"]);
    ended.exits(0);
    if !is_glibc(&told) {
        return;
    }
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
    let Some(program) = compiled(&lab, "segments") else { return };
    let Some(_machine) = Machine::as_root() else { return };
    let Some((saved, _)) = pool(160) else { return };
    let flags = ["--backing", "hugetlb", "--heap", "64m", "--mmap", "256m"];
    let (ended, told) = segmented(&lab, &flags, &[program.to_str().unwrap(), "cuts", "256"]);
    ended.exits(0);
    saved.is_back();
    if !is_glibc(&told) {
        return;
    }
    // A leaf of the pool that was cut takes one, too, and there are 128.
    let cuts: u64 = ended.stdout.trim().parse().unwrap();
    assert!((expected - 128..=expected).contains(&cuts), "{cuts} of {expected}: {told:#}");
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

#[test]
fn memory_that_is_zeroed_ahead_is_bounded_by_what_is_available() {
    let lab = Lab::new();
    build_library(PACKAGE);
    // All that is available, of which others need a part.
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    let much = format!("{}m", kib >> 10);
    let run = ["segment", "run", "--zero", "ahead", "--mmap", &much, "--", "touch", "started"];
    let ended = lab.pagelab(&run);
    ended.exits(3).complains(&["--zero ahead needs", "3 of 4 parts of", "--heap and --mmap"]);
    assert!(!lab.path("started").exists());
    let sizes = ["--heap", "64m", "--mmap", "64m", "--zero", "ahead"];
    let (ended, told) = segmented(&lab, &sizes, &["true"]);
    ended.exits(0);
    if is_glibc(&told) {
        assert_eq!(told["zeroing"]["ahead"]["bytes"], 128 << 20, "{told:#}");
    }
}

#[test]
fn what_a_back_end_lacks_is_told_before_the_program_starts() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let _machine = Machine::alone();
    let refused = |flags: &[&str], why: &[&str]| {
        let run = [&["segment", "run"], flags, &["--", "touch", "started"]].concat();
        lab.pagelab(&run).exits(3).complains(why);
        assert!(!lab.path("started").exists(), "{flags:?}");
    };
    if !Path::new("/dev/pagelab").exists() {
        refused(&["--backing", "module", "--heap", "64m"], &["the kernel module of pagelab"]);
    }
    if !is_root() {
        return refused(&POOL, &["--backing hugetlb needs", "are free: echo ", "| sudo tee"]);
    }
    let Some(_) = pool(POOL_PAGES) else { return };
    // The library lies beside the binary, as always.
    let own = lab.binary_for_everybody();
    lab.program(build_library(PACKAGE), "libpagelab_segment.so");
    let run = [&["segment", "run"], &POOL[..], &["--", "true"]].concat();
    let mut command = Command::new(own);
    command.args(run).uid(65534).gid(65534).current_dir(lab.path("."));
    let ended = lab.ended(&mut assert_cmd::Command::from_std(command));
    ended.exits(3).complains(&["64 free hugetlb pages of 2m, and 0 are free: echo ", "sudo tee"]);
}
