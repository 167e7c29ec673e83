//! Captured traces: what a program did is in them, however it ended, and what cannot be captured
//! is said with a cure.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use elf::{ElfBytes, abi, endian::LittleEndian, segment::ProgramHeader};
use pagelab_trace::{
    Access, Op, Width,
    file::Compression,
    image::{Image, sidecar},
    raw,
};

use crate::support::{Ended, Lab, Live, binary, signal, skip, until};

/// A machine that guests are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machine {
    Riscv,
    X86,
}

const BOTH: [Machine; 2] = [Machine::Riscv, Machine::X86];

/// What a capture in these tests is made of; says what is missing otherwise.
fn tools(machine: Machine) -> Option<&'static str> {
    let (qemu, compiler, packages) = match machine {
        Machine::Riscv => (
            "qemu-riscv64",
            "riscv64-linux-gnu-gcc",
            "qemu-user gcc-riscv64-linux-gnu libc6-dev-riscv64-cross",
        ),
        Machine::X86 => ("qemu-x86_64", "cc", "qemu-user gcc libc6-dev"),
    };
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    for program in [qemu, compiler] {
        if !has(program) {
            skip(&format!("no {program}"), &format!("sudo apt-get install {packages}"));
            return None;
        }
    }
    build_the_plugin();
    Some(compiler)
}

/// The plugin is a library that nothing here links, so cargo does not build it for these tests.
fn build_the_plugin() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let binary = binary();
        let folder = binary.parent().unwrap();
        let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--locked", "--package", "pagelab-capture"]);
        build.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().unwrap().success(), "the plugin was not built");
    });
}

/// Compiles a guest; static unless told otherwise.
fn guest(lab: &Lab, machine: Machine, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = tools(machine)?;
    lab.file("guest.c", source);
    let path = lab.path("guest");
    let mut compile = Command::new(compiler);
    compile.args(["-O1", "-w", "-o"]).arg(&path).arg(lab.path("guest.c")).args(flags);
    let output = compile.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(path)
}

const STATIC: &[&str] = &["-static"];

/// Captures `./guest` into `t`, with these options and arguments.
fn capture(lab: &Lab, options: &[&str], arguments: &[&str]) -> Ended {
    let words = ["trace", "capture", "-o", "t"];
    lab.pagelab(&[&words, options, &["--", "./guest"], arguments].concat())
}

/// The operations of the trace `t`, all of whose records are whole.
#[track_caller]
fn ops(lab: &Lab) -> Vec<Op> {
    let bytes = fs::read(lab.path("t")).unwrap();
    let (mut at, mut ops) = (0, Vec::new());
    while let Some((op, length)) = raw::decode_one(&bytes[at..], at as u64).unwrap() {
        ops.push(op);
        at += length;
    }
    assert_eq!(at, bytes.len(), "the last record is cut");
    ops
}

/// The addresses that a guest printed, one a line.
fn printed(ended: &Ended) -> Vec<u64> {
    let lines = ended.stdout.lines().filter_map(|line| line.strip_prefix("0x"));
    lines.map(|digits| u64::from_str_radix(digits, 16).unwrap()).collect()
}

/// What was stored at an address, in order.
fn stores(ops: &[Op], addr: u64) -> Vec<u64> {
    let value = |op: &Op| match op.access {
        Access::Store(value) if op.addr == addr => Some(value),
        _ => None,
    };
    ops.iter().filter_map(value).collect()
}

fn loads(ops: &[Op], addr: u64) -> impl Iterator<Item = &Op> {
    ops.iter().filter(move |op| op.addr == addr && op.access == Access::Load)
}

const SUM: &str = r#"
#include <stdio.h>
volatile unsigned long sum;
int main(void)
{
    for (unsigned long i = 1; i <= 1000; i++)
        sum += i;
    printf("%p\n%p\n", (void *)&sum, (void *)main);
    return 0;
}
"#;

/// The sums that the guest stored one after the other.
fn sums() -> Vec<u64> {
    (1..=1000).map(|last| last * (last + 1) / 2).collect()
}

#[test]
fn what_a_program_loads_stores_and_fetches_is_in_its_trace() {
    for machine in BOTH {
        let lab = Lab::new();
        if guest(&lab, machine, SUM, STATIC).is_none() {
            continue;
        }
        let ended = capture(&lab, &["--no-image"], &[]);
        let ops = ops(&lab);
        let [sum, main] = printed(ended.exits(0))[..] else { panic!("{}", ended.stdout) };
        assert_eq!(stores(&ops, sum), sums());
        assert_eq!(loads(&ops, sum).filter(|op| op.width == Width::W8).count(), 1000);
        ended.shows(&[&format!("{} operations", ops.len()), "in t"]);
        // `main` is executed once, and its first instruction is read in pieces of its width.
        let fetched: Vec<&Op> = loads(&ops, main).collect();
        assert_eq!(fetched.len(), 1, "{machine:?}");
        if machine == Machine::Riscv {
            assert_eq!(fetched[0].width, Width::W2);
            assert!(loads(&ops, main + 2).all(|op| op.width == Width::W2));
        }
        // A loop of 1000 rounds fetches at least two instructions in each.
        let code = main..main + 256;
        let in_code = ops.iter().filter(|op| code.contains(&op.addr));
        assert!(in_code.count() > 2000);
        assert!(!lab.path("t.image").exists());
    }
}

#[test]
fn dynamic_and_position_independent_programs_can_be_captured() {
    for flags in [&[][..], &["-static-pie"], &["-no-pie"]] {
        let lab = Lab::new();
        let Some(_) = guest(&lab, Machine::X86, SUM, flags) else { return };
        let ended = capture(&lab, &[], &[]);
        let [sum, _] = printed(ended.exits(0))[..] else { panic!("{}", ended.stdout) };
        assert_eq!(stores(&ops(&lab), sum), sums(), "{flags:?}");
    }
}

#[test]
fn a_dynamic_program_of_another_machine_needs_its_loader() {
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, SUM, &[]).is_none() {
        return;
    }
    if Path::new("/lib/ld-linux-riscv64-lp64d.so.1").exists() {
        skip("the loader is where QEMU finds it", "run this test on another machine");
        return;
    }
    let root = "--sysroot /usr/riscv64-linux-gnu";
    capture(&lab, &[], &[]).exits(2).complains(&["./guest is dynamic, and its loader", root]);
    assert!(!lab.path("t").exists());
    let words: Vec<&str> = root.split(' ').collect();
    let ended = capture(&lab, &words, &[]);
    let [sum, _] = printed(ended.exits(0))[..] else { panic!("{}", ended.stdout) };
    assert_eq!(stores(&ops(&lab), sum), sums());
}

#[test]
fn without_fetches_only_data_is_in_the_trace() {
    let lab = Lab::new();
    if guest(&lab, Machine::Riscv, SUM, STATIC).is_none() {
        return;
    }
    let ended = capture(&lab, &["--no-fetch"], &[]);
    let ops = ops(&lab);
    let [sum, main] = printed(ended.exits(0))[..] else { panic!("{}", ended.stdout) };
    assert_eq!(stores(&ops, sum), sums());
    assert_eq!(loads(&ops, main).count(), 0);
}

#[test]
fn a_capture_ends_after_as_many_operations_as_it_may_have() {
    for machine in BOTH {
        let lab = Lab::new();
        if guest(&lab, machine, SUM, STATIC).is_none() {
            continue;
        }
        for max in [1, 2, 3, 1001] {
            let ended = capture(&lab, &["--max", &max.to_string(), "--no-image"], &[]);
            ended.exits(0).complains(&["--max is reached"]);
            assert_eq!(ops(&lab).len(), max);
            assert!(!ended.stdout.contains("0x"), "the program went on:\n{}", ended.stdout);
            fs::remove_file(lab.path("t")).unwrap();
        }
    }
}

const PLACES: &str = r#"
#include <stdio.h>
extern char __ehdr_start[];
const char constant[] = "a constant of the program";
int main(int argc, char **argv)
{
    printf("%p\n%p\n%p\n", (void *)__ehdr_start, (void *)constant, (void *)argv[1]);
    return 0;
}
"#;

/// What an image holds at an address and after it.
#[track_caller]
fn at(image: &Image, addr: u64) -> &[u8] {
    let bytes = image.segments.iter().find_map(|segment| {
        segment.bytes.get(usize::try_from(addr.checked_sub(segment.addr)?).ok()?..)
    });
    bytes.filter(|bytes| !bytes.is_empty()).unwrap_or_else(|| panic!("nothing at {addr:#x}"))
}

/// The image that lies beside the trace `t`.
#[track_caller]
fn image(lab: &Lab) -> Image {
    Image::read(&sidecar(&lab.path("t")), None).unwrap()
}

#[test]
fn the_image_holds_what_was_in_memory_before_the_first_instruction() {
    // Not every glibc for riscv64 has the start of a static position-independent program.
    let pie: &[&str] = &["-static-pie"];
    for (machine, flags) in [(Machine::Riscv, STATIC), (Machine::X86, STATIC), (Machine::X86, pie)]
    {
        let lab = Lab::new();
        let Some(guest) = guest(&lab, machine, PLACES, flags) else { continue };
        let ended = capture(&lab, &[], &["an argument"]);
        ended.exits(0).shows(&["memory before the first", "t.image"]);
        let [header, constant, argument] = printed(&ended)[..] else { panic!("{}", ended.stdout) };
        let image = image(&lab);
        let program = fs::read(guest).unwrap();
        assert_eq!(at(&image, header)[..64], program[..64]);
        assert!(at(&image, constant).starts_with(b"a constant of the program\0"));
        assert!(at(&image, argument).starts_with(b"an argument\0"));
    }
}

#[test]
fn the_image_holds_every_instruction_of_a_static_program() {
    let lab = Lab::new();
    let Some(guest) = guest(&lab, Machine::Riscv, SUM, STATIC) else { return };
    capture(&lab, &[], &[]).exits(0);
    let program = fs::read(guest).unwrap();
    let elf = ElfBytes::<LittleEndian>::minimal_parse(&program).unwrap();
    let is_code =
        |part: &ProgramHeader| part.p_type == abi::PT_LOAD && part.p_flags & abi::PF_X != 0;
    let code = elf.segments().unwrap().iter().find(is_code).unwrap();
    let (start, bytes) = (code.p_vaddr, elf.segment_data(&code).unwrap());
    let (image, ops) = (image(&lab), ops(&lab));
    let executed = ops.iter().filter(|op| (start..start + code.p_filesz).contains(&op.addr));
    let fetches: Vec<&Op> = executed.filter(|op| op.width == Width::W2).collect();
    assert!(fetches.len() > ops.len() / 2);
    for op in fetches {
        let offset = usize::try_from(op.addr - start).unwrap();
        assert_eq!(at(&image, op.addr)[..2], bytes[offset..offset + 2], "{:#x}", op.addr);
    }
}

#[test]
fn the_image_can_have_another_name() {
    let lab = Lab::new();
    if guest(&lab, Machine::X86, PLACES, STATIC).is_none() {
        return;
    }
    capture(&lab, &["--image", "memory"], &[]).exits(0).shows(&["in memory"]);
    assert!(lab.path("memory").exists() && !lab.path("t.image").exists());
}

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
