//! Traces and emulated memory: what the tool has of them beside the portable libraries `trace` and
//! `emu`.

#[macro_use(host, usage)]
extern crate pagelab_cli;

pub mod capture;
