//! What the plugin of an emulated machine wrote, of any bytes: no panic, the same twice, and
//! functions that add up to the path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fault::path::folded;
use pagelab_fuzz::sow;

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Ok(text) = str::from_utf8(input) else { return };
    let found = folded(text);
    assert_eq!(found, folded(text));
    if let Ok((whole, own)) = found {
        let sum = own.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        assert_eq!(sum, whole, "{own:?}");
    }
});

/// A log with a call, an interrupt and a sample that did more, and the same without its end.
fn seeds() -> Vec<Vec<u8>> {
    let at = |offset: u64| (1_u64 << 63) + offset;
    let run =
        |offset: u64, count: u64, end: u64| format!("[{},4,{count},1,1,0,0,{end},1]", at(offset));
    let path = |number: usize, runs: &[String]| {
        format!("{{\"path\":{{\"number\":{number},\"runs\":[{}]}}}}\n", runs.join(","))
    };
    let sample = |number: usize| {
        let places = "[[1,1],[0,0],[2,1],[1,1],[0,0],[3,2]]";
        format!("{{\"sample\":{{\"path\":{number},\"places\":{places}}}}}\n")
    };
    let symbols: String = [(0, "asm_exc_page_fault"), (256, "a"), (512, "asm_sysvec_timer")]
        .map(|(offset, name)| format!("{:x} T {name};", at(offset)))
        .concat();
    let record = [
        r#"{"say":{"record":{"schema":"pagelab.record/1","run":"r","boot":"","#,
        r#""workload":"fault/latency","nature":"simulated","case":{"kind":"write"},"#,
        r#""host":{"identity":{"cpu":"x"}},"outcome":{"failed":{"reason":"x"}}}}}"#,
    ]
    .concat();
    let whole = [
        format!("{{\"say\":{{\"symbols\":\"{symbols}\"}}}}\n"),
        "{\"say\":{\"repetition\":{\"arm\":\"pagelab\",\"number\":0}}}\n".to_owned(),
        path(0, &[run(0, 3, 1), run(256, 2, 0), run(4, 1, 2)]),
        sample(0),
        sample(0),
        path(1, &[run(0, 3, 1), run(512, 9, 0), run(516, 1, 2), run(256, 2, 0), run(4, 1, 2)]),
        sample(1),
        path(2, &[run(0, 3, 1), run(256, 2, 1), run(300, 4, 0), run(4, 1, 2)]),
        sample(2),
        format!("{record}\n"),
        "{\"end\":{\"is_open\":false}}\n".to_owned(),
    ]
    .concat()
    .into_bytes();
    vec![whole[..whole.len() - 20].to_vec(), whole]
}
