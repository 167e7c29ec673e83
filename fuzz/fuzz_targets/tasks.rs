//! A list of tasks of any text: no panic, a refusal that names a line, and what is read is written
//! back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_bench::tasks::List;
use pagelab_fuzz::sow;

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Ok(text) = str::from_utf8(input) else { return };
    match List::parse(text, "0") {
        Err((line, why)) => assert!(line > 0 && !why.is_empty()),
        Ok(list) => {
            let mut written = Vec::new();
            list.write(&mut written).expect("memory takes it");
            let again = List::parse(str::from_utf8(&written).expect("JSON is text"), "0");
            assert_eq!(again.as_ref(), Ok(&list));
            let all = (1..=list.head.shards.get().min(64)).filter_map(std::num::NonZeroU32::new);
            let count: usize = all.map(|shard| list.shard(shard).count()).sum();
            assert!(count <= list.tasks.len());
        }
    }
});

/// A list of no tasks, which is whole, and one that lacks its own.
fn seeds() -> Vec<Vec<u8>> {
    let head = |tasks: usize| {
        format!(
            "{{\"schema\":\"pagelab.tasks/1\",\"pagelab\":\"0\",\"suite\":\"s\",\"published\":[],\
             \"shards\":2,\"tasks\":{tasks}}}\n"
        )
    };
    let task = "{\"id\":\"00\",\"workload\":\"limit/timer\",\"case\":{},\"method\":{\"forks\":1,\
                \"repetitions_min\":1,\"repetitions_max\":1,\"budget_ns\":1,\"precision\":0.1,\
                \"limit_ns\":1,\"clock\":\"raw\"}}\n";
    vec![head(0).into_bytes(), (head(1) + task).into_bytes()]
}
