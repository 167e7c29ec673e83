//! Compiles the C twin, the minimal loop that `fault/throughput` is compared with.

fn main() {
    println!("cargo::rerun-if-changed=twin/round.c");
    cc::Build::new()
        .file("twin/round.c")
        .opt_level(2)
        .flag_if_supported("-falign-loops=64")
        .warnings(true)
        .compile("pagelab_twin");
}
