//! Compiles the C twin: the minimal loops that measured ones are compared with.

fn main() {
    println!("cargo::rerun-if-changed=twin");
    cc::Build::new()
        .files(["twin/bandwidth.c", "twin/peers.c", "twin/round.c"])
        .opt_level(2)
        .flag_if_supported("-falign-loops=64")
        .warnings(true)
        .compile("pagelab_twin");
}
