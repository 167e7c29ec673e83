//! Captured traces: what a program did is in them.

mod endings;
mod refusals;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use elf::{ElfBytes, abi, endian::LittleEndian, segment::ProgramHeader};
use pagelab_trace::{
    Access, Op, Width,
    image::{Image, sidecar},
    raw,
};

use crate::support::{Ended, Lab, build_library, skip};

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
    build_library("pagelab-capture");
    Some(compiler)
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
