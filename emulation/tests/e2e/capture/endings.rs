//! However a program ends, its trace holds what it did until then.

use std::{fs, io, path::Path};

use pagelab_trace::file::Compression;

use super::{BOTH, Machine, STATIC, capture, guest, loads, ops, printed, stores};
use crate::support::{Lab, Live, binary, signal, until};

/// A guest that prints where `mark` is, stores 1 to `last` there, and then does something.
fn ending(last: &str, then: &str) -> String {
    format!(
        r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned long mark;
static unsigned long counter;
static void *work(void *unused)
{{
    for (int i = 0; i < 1000; i++)
        __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
    return 0;
}}
int main(void)
{{
    printf("%p\n%p\n", (void *)&mark, (void *)&counter);
    fflush(stdout);
    for (unsigned long i = 1; i <= {last}; i++)
        mark = i;
    {then}
    return 0;
}}
"#
    )
}

/// Captures a guest that ends in some way; the trace has all that it stored.
#[track_caller]
fn is_whole_after(then: &str, code: i32, note: &str) {
    for machine in BOTH {
        let lab = Lab::new();
        if guest(&lab, machine, &ending("70000", then), STATIC).is_none() {
            continue;
        }
        let ended = capture(&lab, &["--no-fetch", "--no-image"], &[]);
        ended.exits(code).complains(&[note]);
        let ops = ops(&lab);
        // More than one piece of the plugin's buffer.
        assert!(fs::metadata(lab.path("t")).unwrap().len() > 1 << 20);
        let stored = stores(&ops, printed(&ended)[0]);
        assert_eq!(stored, (1..=70000).collect::<Vec<_>>(), "{machine:?}");
        ended.shows(&[&format!("{} operations", ops.len())]);
    }
}

#[test]
fn a_program_that_exits_with_an_error_is_captured_whole() {
    is_whole_after("_exit(3);", 0, "the program exited with 3");
}

#[test]
fn a_program_that_dies_of_a_signal_is_captured_until_then() {
    is_whole_after("abort();", 1, "died of signal 6");
    is_whole_after("*(volatile int *)16 = 0;", 1, "died of signal 11");
    is_whole_after("kill(getpid(), SIGKILL);", 1, "died of signal 9");
}

#[test]
fn a_program_that_becomes_another_one_is_captured_until_then() {
    is_whole_after("execl(\"/bin/true\", \"true\", NULL);", 0, "became another one");
}

#[test]
fn what_a_forked_child_does_is_not_in_the_trace() {
    let child = "if (!fork()) { for (int i = 0; i < 200000; i++) mark = 7; _exit(0); } wait(0);
                 mark = 8; _exit(1);";
    for machine in BOTH {
        let lab = Lab::new();
        if guest(&lab, machine, &ending("2", child), STATIC).is_none() {
            continue;
        }
        let ended = capture(&lab, &[], &[]);
        let mark = printed(ended.exits(0))[0];
        assert_eq!(stores(&ops(&lab), mark), [1, 2, 8], "{machine:?}");
    }
}

#[test]
fn a_program_that_closes_what_is_not_its_own_disturbs_nothing() {
    let close = "for (int i = 3; i < 1024; i++) close(i);
                 int file = open(\"mine\", O_WRONLY | O_CREAT, 0600);
                 if (file != 3) return 9;
                 for (int i = 0; i < 200000; i++) mark = i;
                 write(file, \"mine\", 4); close(file);";
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, &ending("0", close), STATIC).is_none() {
        return;
    }
    let ended = capture(&lab, &[], &[]);
    let mark = printed(ended.exits(0))[0];
    assert_eq!(ended.stderr, "");
    assert_eq!(stores(&ops(&lab), mark), (0..200_000).collect::<Vec<_>>());
    assert_eq!(fs::read(lab.path("mine")).unwrap(), b"mine");
}

#[test]
fn atomic_accesses_of_all_threads_are_loads_and_stores() {
    let threads = "pthread_t all[4];
                   for (int i = 0; i < 4; i++) pthread_create(&all[i], 0, work, 0);
                   for (int i = 0; i < 4; i++) pthread_join(all[i], 0);";
    for machine in BOTH {
        let lab = Lab::new();
        let flags = ["-static", "-pthread"];
        if guest(&lab, machine, &ending("0", threads), &flags).is_none() {
            continue;
        }
        let ended = capture(&lab, &["--no-fetch"], &[]);
        let counter = printed(ended.exits(0))[1];
        let ops = ops(&lab);
        let stored = stores(&ops, counter);
        assert_eq!((loads(&ops, counter).count(), stored.len()), (4000, 4000), "{machine:?}");
        // Another thread may have gone on before a value was read, but not gone back.
        assert_eq!(stored.iter().max(), Some(&4000));
    }
}

#[test]
fn an_interrupt_leaves_a_trace_that_can_be_read() {
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, &ending("~0ul", ""), STATIC).is_none() {
        return;
    }
    let words = ["trace", "capture", "--no-fetch", "-o", "t", "--", "./guest"];
    let mut live = Live::start(&lab, &words);
    until("a piece of the trace", || {
        assert!(live.is_running());
        fs::metadata(lab.path("t")).ok().filter(|about| about.len() > 3 << 20)
    });
    signal("INT", live.pid());
    let ended = live.end();
    ended.exits(130).complains(&["interrupted; the trace holds all"]);
    let stored = stores(&ops(&lab), printed(&ended)[0]);
    assert_eq!(stored, (1..=stored.len() as u64).collect::<Vec<_>>());
    assert!(lab.path("t.image").exists());
}

#[test]
fn a_name_that_asks_for_compression_gets_it() {
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, &ending("70000", "abort();"), STATIC).is_none() {
        return;
    }
    for end in ["gz", "xz", "zst"] {
        let name = format!("t.{end}");
        let words = ["trace", "capture", "--no-fetch", "-o", &name, "--", "./guest"];
        let ended = lab.pagelab(&words);
        ended.exits(1).shows(&["operations", &name, &format!("{name}.image")]);
        let packed = pagelab_trace::file::open(&lab.path(&name)).unwrap();
        assert_eq!(packed.compression(), Compression::of_path(Path::new(&name)));
        let mut plain = fs::File::create(lab.path("t")).unwrap();
        io::copy(&mut packed.into_reader(), &mut plain).unwrap();
        let stored = stores(&ops(&lab), printed(&ended)[0]);
        assert_eq!(stored, (1..=70000).collect::<Vec<_>>(), "{name}");
        assert!(fs::metadata(lab.path(&name)).unwrap().len() < 1 << 20);
    }
}

#[test]
fn a_disk_that_is_full_ends_a_compressed_capture_too() {
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, &ending("~0ul", ""), STATIC).is_none() {
        return;
    }
    // Above what the plugin's buffer takes.
    let script = "trap '' XFSZ; ulimit -f 2200; \
                  exec \"$0\" trace capture --no-fetch -o t.gz -- ./guest";
    let mut command = assert_cmd::Command::new("sh");
    let ended = lab.ended(command.args(["-c", script]).arg(binary()));
    ended.exits(3).complains(&["cannot write t.gz", "File too large"]);
}

#[test]
fn a_disk_that_is_full_ends_the_capture_with_whole_records() {
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, &ending("~0ul", ""), STATIC).is_none() {
        return;
    }
    // A limit on the size of files fails as a full disk does, where its signal is ignored.
    let script = "trap '' XFSZ; ulimit -f 8000; exec \"$0\" trace capture -o t -- ./guest";
    let mut command = assert_cmd::Command::new("sh");
    let ended = lab.ended(command.args(["-c", script]).arg(binary()));
    ended.exits(3).complains(&["cannot write t", "t holds what came before", "File too large"]);
    let ops = ops(&lab);
    assert!(ops.len() > 100_000);
    let stored = stores(&ops, printed(&ended)[0]);
    assert_eq!(stored, (1..=stored.len() as u64).collect::<Vec<_>>());
}
