//! Programs built with `AddressSanitizer`: its runtime ends a program into which a library is
//! preloaded, which is no fault of the program.

use std::{fs, path::PathBuf, process::Command};

use pagelab_interpose::{heat, preload, segment};
use pagelab_record::{Outcome, vocabulary::tried};

use crate::{
    support::{Lab, build_library, measured, skip},
    tries,
};

const SOURCE: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    int main(void) { char *p = malloc(1 << 20); memset(p, 7, 1 << 20); printf(\"%d\\n\", p[777]);\n\
    free(p); return 0; }\n";
/// What every refusal says, whoever refuses.
const WHY: [&str; 3] = ["is built with AddressSanitizer", "libasan", "LD_PRELOAD"];

/// A program whose runtime of `AddressSanitizer` is a library.
fn sanitized(lab: &Lab) -> Option<PathBuf> {
    let (source, program) = (lab.file("asan.c", SOURCE), lab.path("asan"));
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-fsanitize=address", "-o"]).arg(&program).arg(source).status();
    let runs = || Command::new(&program).output().is_ok_and(|ended| ended.status.success());
    if built.is_ok_and(|status| status.success()) && runs() {
        return Some(program);
    }
    skip("nothing runs here with AddressSanitizer", "apt-get install gcc libasan8");
    None
}

#[test]
fn a_program_of_address_sanitizer_takes_no_library_and_is_refused_by_name() {
    let lab = Lab::new();
    let Some(program) = sanitized(&lab) else { return };
    let program = program.to_str().unwrap();
    for package in [segment::PACKAGE, preload::PACKAGE, heat::PACKAGE] {
        build_library(package);
    }
    for words in [
        &["segment", "run", "--", program][..],
        &["segment", "wrap", program, "-o", "wrapped"],
        &["tier", "promote", "--source", "prot-none", "--", program],
    ] {
        let refused = lab.pagelab(words);
        refused.exits(2).complains(&WHY);
        assert_eq!(refused.stdout, "", "it does not run: {words:?}");
    }
    assert!(fs::metadata(lab.path("wrapped")).is_err());
    let preloaded = ["populate", "maps-thp", "segment", "mimalloc"];
    let ended = tries::tried(&lab, &preloaded.join(","), &[program]);
    ended.exits(0);
    let rungs = tries::rungs(&lab, "run");
    for name in preloaded {
        let Outcome::Skipped { need, cure } = &rungs[name].outcome else {
            panic!("{name}: {:?}", rungs[name].outcome);
        };
        assert!(WHY.iter().all(|why| need.contains(why)), "{need}");
        assert!(cure.contains("without -fsanitize=address"), "{cure}");
    }
    assert_eq!(measured(&rungs[tried::PLAIN]).counters[tried::EXIT], 0);
}
