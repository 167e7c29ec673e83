//! The same bytes on every machine: digests of whole outcomes.
//!
//! A digest changes when anything in the simulator, a policy or the random numbers does. Then the
//! new one belongs here, with a reason in the change.

use crate::setup::{run, scenario};

#[test]
fn outcomes_are_the_same_everywhere() {
    let expected: &[(&str, &str, u64)] = &[
        ("uniform", "pghot", 0x0622_fa67_6aa7_968a),
        ("zipf", "pghot-v3", 0x5118_cd58_6c17_5178),
        ("zipf", "pghot-heap", 0xad8c_bb08_4830_120f),
        ("zipf", "threshold:threshold=1", 0xb5a5_2f58_1eaf_ead1),
        ("gups", "pagelab", 0xa35d_0d11_8a33_d600),
        ("pmbench", "histogram", 0xd66d_c77e_c1a5_705d),
        ("zipf", "history", 0x6cf3_3310_6dfe_a4ad),
        ("chase", "numab2", 0xc683_f9da_6518_16df),
        ("phases", "two-ema", 0xbd89_0adc_935f_2e54),
        ("stream", "tpp", 0x052f_5f03_5490_01e4),
        ("slightly-larger", "latency-balance", 0x698a_5bb7_cb36_362a),
        ("phases", "damon-region", 0x6991_71a9_ce36_7648),
        ("gups", "oracle", 0xf25c_df42_cd96_b715),
    ];
    let mut got = Vec::new();
    for &(generator, policy, _) in expected {
        let digest = run(&scenario(generator, 4096, 1500, policy)).digest();
        got.push((generator, policy, digest));
    }
    assert_eq!(got, expected);
}
