//! `cargo xtask dist`: what a user downloads, in `dist/`.
//!
//! One static executable that runs on every x86-64 Linux, whatever its C library, with its shell
//! completions and man pages; beside it the plugin of `trace capture` and the libraries that `try`,
//! `segment run` and `tier promote` preload, which need glibc. What the build needs beyond Rust
//! (the musl target, a C compiler that knows musl's headers) is installed where that is possible,
//! and named where it is not.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use elf::{ElfBytes, abi::PT_INTERP, endian::AnyEndian};

use crate::shell::{self, cargo, find, output, program, run};

const TARGET: &str = "x86_64-unknown-linux-musl";
/// The variable by which the `cc` crate is told the C compiler of [`TARGET`].
const CC: &str = "CC_x86_64_unknown_linux_musl";
const BUILT: &str = "target/x86_64-unknown-linux-musl/dist/pagelab";
const SHIPPED: &str = "dist/pagelab";
/// Libraries that others load, qemu-user and the programs that are tried: they link the C library
/// of the host.
const LIBRARIES: [&str; 4] =
    ["pagelab-capture", "pagelab-heat", "pagelab-preload", "pagelab-segment"];
const SIZE_MAX_BYTES: usize = 8 << 20;

/// Builds, checks and describes `dist/pagelab`.
pub(crate) fn dist() -> Result<()> {
    let mut build = cargo("build");
    build.args(["--profile", "dist", "--package", "pagelab", "--target", TARGET]);
    for_musl(&mut build)?;
    build.env("CARGO_ENCODED_RUSTFLAGS", without_local_paths()?);
    run("dist", &mut build)?;

    let file = fs::read(BUILT).with_context(|| format!("reading {BUILT}"))?;
    check(&file)?;
    fs::create_dir_all("dist").context("making dist/")?;
    fs::copy(BUILT, SHIPPED).with_context(|| format!("writing {SHIPPED}"))?;
    LIBRARIES.into_iter().try_for_each(library)?;
    generate()?;
    describe(file.len())
}

/// Builds a part that cannot be in a static binary; it is found beside the executable.
fn library(package: &str) -> Result<()> {
    let mut build = cargo("build");
    build.args(["--profile", "dist", "--package", package]);
    build.env("CARGO_ENCODED_RUSTFLAGS", without_local_paths()?);
    run("dist", &mut build)?;
    let file = format!("lib{}.so", package.replace('-', "_"));
    let (from, to) = (format!("target/dist/{file}"), format!("dist/{file}"));
    fs::copy(&from, &to).map(drop).with_context(|| format!("copying {from} to {to}"))
}

/// Makes sure that a build for [`TARGET`] finds what it needs.
fn for_musl(build: &mut Command) -> Result<()> {
    add_target()?;
    if let Some(compiler) = c_compiler() {
        build.env(CC, compiler);
    }
    Ok(())
}

fn add_target() -> Result<()> {
    let root = output(&mut program("rustc", ["--print", "sysroot"]))?;
    if Path::new(root.trim()).join("lib/rustlib").join(TARGET).is_dir() {
        return Ok(());
    }
    run("dist", &mut program("rustup", ["target", "add", TARGET])).with_context(|| {
        format!("this Rust has no {TARGET}; with a Rust that is not rustup's, install its musl std")
    })
}

/// The compiler to name to `cc`, or `None` where it finds one by itself.
fn c_compiler() -> Option<&'static str> {
    if env::var_os(CC).is_some() || find("musl-gcc").is_some() {
        return None;
    }
    if find("apt-get").is_some() && is_root() && install_musl_tools().is_ok() {
        return None;
    }
    shell::warn(
        "musl-gcc is missing, so gcc compiles the C file against the headers it finds.\n\
         Cure: sudo apt-get install musl-tools",
    );
    Some("gcc")
}

fn install_musl_tools() -> Result<()> {
    run("dist", &mut program("apt-get", ["update", "--quiet=2"]))?;
    let install = ["install", "--yes", "--no-install-recommends", "musl-tools"];
    run("dist", &mut program("apt-get", install))?;
    find("musl-gcc").map(drop).context("musl-tools brought no musl-gcc")
}

pub(crate) fn is_root() -> bool {
    output(&mut program("id", ["--user"])).is_ok_and(|id| id.trim() == "0")
}

/// Compiler flags that keep the builder's folders out of panic messages.
fn without_local_paths() -> Result<String> {
    let here = env::current_dir().context("reading the working directory")?;
    let mut flags = vec![format!("--remap-path-prefix={}=.", here.display())];
    let home = env::var_os("CARGO_HOME").map(Into::into);
    let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")));
    flags.extend(home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())));
    Ok(flags.join("\x1f"))
}

fn check(file: &[u8]) -> Result<()> {
    ensure!(is_static(file)?, "{BUILT} needs a dynamic loader: it is not one file");
    ensure!(
        file.len() <= SIZE_MAX_BYTES,
        "{BUILT} has {} bytes, more than {SIZE_MAX_BYTES}: find what grew with `cargo bloat`, \
         or raise SIZE_MAX_BYTES in xtask/src/dist.rs with the reason",
        file.len()
    );
    Ok(())
}

/// Whether an executable names no loader, so that it runs whatever the machine's C library.
fn is_static(file: &[u8]) -> Result<bool> {
    let file = ElfBytes::<AnyEndian>::minimal_parse(file).context("reading ELF headers")?;
    Ok(!file.segments().into_iter().flatten().any(|segment| segment.p_type == PT_INTERP))
}

/// Completions and man pages come from the binary itself, so that they are those of its arguments.
fn generate() -> Result<()> {
    let known =
        program(SHIPPED, ["generate", "--help"]).output().context("starting dist/pagelab")?;
    if !known.status.success() {
        shell::warn("this pagelab has no `generate`: no completions and no man pages were written");
        return Ok(());
    }
    run("dist", &mut program(SHIPPED, ["generate", "--out", "dist/share"]))
}

fn describe(bytes: usize) -> Result<()> {
    println!("{SHIPPED}: static, {bytes} bytes ({:.2} MiB)", bytes as f64 / f64::from(1 << 20));
    if find("sha256sum").is_some() {
        print!("{}", output(&mut program("sha256sum", [SHIPPED]))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dynamic_or_too_large_is_not_shipped() {
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        assert!(check(&file).is_ok());
        file.resize(SIZE_MAX_BYTES + 1, 0);
        assert!(check(&file).unwrap_err().to_string().contains("more than 8388608"));
        assert!(check(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn the_running_test_says_what_it_is() {
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        assert_eq!(is_static(&own).unwrap(), cfg!(target_feature = "crt-static"));
    }

    #[test]
    fn flags_name_the_folders_they_hide() {
        let here = env::current_dir().unwrap();
        let flags = without_local_paths().unwrap();
        assert!(flags.starts_with(&format!("--remap-path-prefix={}=.", here.display())), "{flags}");
    }
}
