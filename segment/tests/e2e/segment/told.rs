//! What is told of a program with segments: when it ends, becomes another, or is asked; and who
//! zeroed its memory.

use serde_json::json;

use super::*;

#[test]
fn what_becomes_another_or_leaves_at_once_tells_before() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let flags = ["--heap", "256m", "--mmap", "256m"];
    // Its children leave by `_exit`; it becomes `echo` by `execlp`, which has a list of arguments.
    let words = [program.to_str().unwrap(), "1", "so"];
    let (ended, told) = segmented(&lab, &flags, &words);
    ended.exits(0);
    if !is_glibc(&told) {
        return;
    }
    let children = told["end"]["processes"].as_u64().unwrap() - 2;
    assert!((1..=4).contains(&children), "{told:#}");
    let (ended, told) = segmented(&lab, &flags, &["sh", "-c", "exec env sleep 0"]);
    ended.exits(0);
    assert_eq!(told["end"]["processes"], 3, "{told:#}");
    assert_eq!(told["names"], json!({ "sh": 1, "env": 1, "sleep": 1 }), "{told:#}");
    ended.complains(&["segments of sh, env, sleep: heap 256 MiB, maps 256 MiB reserved in each"]);
    // A search that fails is no end.
    let script = "exec 2>/dev/null; for i in 1 2 3; do (exec ./no-such-program); done; exit 0";
    let (ended, told) = segmented(&lab, &flags, &["sh", "-c", script]);
    ended.exits(0);
    assert_eq!(told["end"]["processes"], 4, "the shell and three of its own: {told:#}");
}

#[test]
fn no_more_of_the_stack_is_in_huge_pages_than_was_touched_ahead() {
    let lab = Lab::new();
    let script = "for i in 1 2 3; do (true; sleep 0; true); done; exit 0";
    let flags = ["--stack", "8m", "--heap", "256m", "--wait"];
    let (ended, told) = segmented(&lab, &flags, &["sh", "-c", script]);
    ended.exits(0);
    if !is_glibc(&told) {
        return;
    }
    assert_eq!(told["names"], json!({ "sh": 1, "sleep": 3 }), "{told:#}");
    // Forked children have the stack of their parent, and none of their own.
    let [touched, huge] = ["touched", "huge"].map(|name| told["stack"][name].as_u64().unwrap());
    assert!(touched > 4 * (7 << 20) && huge <= touched, "{told:#}");
    // The shell and its three subshells, and what each of these started.
    assert_eq!(told["end"]["processes"], 7, "{told:#}");
}

#[test]
fn a_program_that_runs_is_looked_at_from_outside() {
    let lab = Lab::new();
    if !is_glibc(&segmented(&lab, &[], &["sh", "-c", "exit 0"]).1) {
        return;
    }
    let script = "trap 'exit 3' TERM; /bin/true; echo ready >&2; while :; do sleep 0.02; done";
    let live = Live::start(&lab, &["segment", "run", "--heap", "256m", "--", "sh", "-c", script]);
    until("the program", || live.said().contains("ready").then_some(()));
    let status = lab.pagelab(&["segment", "status", &live.pid().to_string()]);
    status.exits(0).shows(&["segments of sh", "heap 256 MiB", "  so far", "in huge pages"]);
    signal("TERM", live.pid());
    live.end().exits(3).complains(&["  at the end  heap "]);
    let other = lab.pagelab(&["segment", "status", &std::process::id().to_string()]);
    other.exits(2).complains(&["runs no program with segments"]);
}

#[test]
fn a_signal_that_the_program_does_not_handle_ends_it() {
    let lab = Lab::new();
    let script = "trap - USR1; kill -USR1 $$; echo it goes on";
    let (ended, _) = segmented(&lab, &[], &["sh", "-c", script]);
    assert_eq!((ended.code, ended.stdout.as_str()), (None, ""), "SIGUSR1 ends it");
}

#[test]
fn what_is_given_back_is_zeroed_by_a_helper_that_nobody_notices() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let own = program.to_str().unwrap();
    for (mode, rounds, said) in [("again", "40", "again\n"), ("8000", "and", "fine\nand\n")] {
        let flags = ["--heap", "256m", "--mmap", "256m", "--zero", "release"];
        let (ended, told) = segmented(&lab, &flags, &[own, mode, rounds]);
        ended.exits(0);
        assert_eq!(ended.stdout, said, "{}", ended.stderr);
        if !is_glibc(&told) {
            return;
        }
        let zeroing = &told["zeroing"];
        let sum = ["helper", "own"].map(|who| zeroing[who]["bytes"].as_u64().unwrap());
        if mode == "again" && told["end"]["mmap"]["huge"] != 0 {
            assert!(zeroing["helpers"].as_u64().unwrap() > 1, "its own, and children's: {told:#}");
            assert!(sum[0] + sum[1] >= 24 << 20, "{told:#}");
            assert!(zeroing["helper"]["cpu_ns"].as_u64().unwrap() > 0, "{told:#}");
        }
    }
    // Without, nobody else is there.
    let (ended, told) = segmented(&lab, &["--mmap", "256m"], &[own, "again", "8"]);
    ended.exits(0);
    assert_eq!((&told["zeroing"]["helpers"], &told["zeroing"]["kept"]), (&0.into(), &0.into()));
}

#[test]
fn small_and_untouched_heaps_have_few_leaves_and_a_larger_one_gives_them_back() {
    let lab = Lab::new();
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        int main(int n, char **w) { char *p[4096]; int large = n == 2;\n\
        for (int i = 0; i < (large ? 4096 : 500); i++) { size_t s = large ? 32768 : 64 + i * 40;\n\
        p[i] = malloc(s); memset(p[i], 1, large ? s : 64); }\n\
        if (large) { for (int i = 0; i < 4096; i++) free(p[i]); }\n\
        for (int i = 0; n > 2 && i < 8; i++) { char *some = malloc(60 << 20);\n\
        for (int k = 0; k < 10; k++) some[k * (6 << 20)] = 1; }\n\
        return puts(\"so\") < 0; }\n";
    lab.file("sizes.c", source);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-builtin", "-o", "sizes", "sizes.c"]).current_dir(lab.path("."));
    if !cc.output().is_ok_and(|built| built.status.success()) {
        return skip("there is no C compiler", "apt-get install gcc");
    }
    // All sizes to 20 KB, of each a little: small pages, not a leaf for each size.
    let (ended, told) = segmented(&lab, &["--heap", "1g"], &["./sizes"]);
    ended.exits(0);
    if !is_glibc(&told) {
        return;
    }
    let had = |told: &Value| {
        let heap = &told["end"]["heap"];
        heap["huge"].as_u64().unwrap() + heap["base"].as_u64().unwrap()
    };
    assert!(had(&told) < 8 << 20 && told["end"]["heap"]["huge"] == 0, "{told:#}");
    // 128 MiB that were freed: but for a share they are gone.
    let (ended, told) = segmented(&lab, &["--heap", "1g"], &["./sizes", "large"]);
    ended.exits(0);
    assert!(had(&told) < 48 << 20, "{told:#}");
    // 480 MiB of which one page in 1536 is touched: large pages in the first block at most.
    let (ended, told) = segmented(&lab, &["--heap", "1g"], &["./sizes", "mostly", "untouched"]);
    ended.exits(0);
    assert!(had(&told) < 64 << 20, "{told:#}");
}
