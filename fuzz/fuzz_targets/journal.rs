//! A journal of any bytes: no panic, and what was read can be written and read again.
//!
//! The one idea: what a report would ask of the records (histograms, quantiles) is asked here, too,
//! because it is as foreign as the journal that it comes from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::{file_of, sow};
use pagelab_record::{
    Outcome, Record, Series,
    journal::{self, Contents, JournalError},
    stats::Samples,
};

fn read(bytes: &[u8]) -> Result<Contents, JournalError> {
    journal::read(file_of(bytes))
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    if let Ok(text) = str::from_utf8(input)
        && let Ok(records) = journal::read_records(text)
    {
        let again = lines(&[], &records);
        let again = journal::read_records(str::from_utf8(&again).expect("JSON is text"));
        assert_eq!(again.as_ref(), Ok(&records));
    }
    let Ok(contents) = read(input) else { return };
    let header = serde_json::to_vec(&contents.header).expect("a header can be written");
    let again = read(&lines(&header, &contents.records)).expect("what we write is a journal");
    assert_eq!((again.header, again.damage), (contents.header, None));
    assert_eq!(again.records, contents.records);
    for record in &contents.records {
        if let Outcome::Measured(measured) = &record.outcome {
            measured.series.iter().take(8).for_each(|one| ask(&measured.series, one));
        }
    }
});

/// A journal of these: a line each.
fn lines(header: &[u8], records: &[Record]) -> Vec<u8> {
    let mut bytes = header.to_vec();
    if !header.is_empty() {
        bytes.push(b'\n');
    }
    for record in records {
        serde_json::to_writer(&mut bytes, record).expect("a record can be written");
        bytes.push(b'\n');
    }
    bytes
}

/// What a report asks of a series.
fn ask(series: &[Series], one: &Series) {
    let samples = Samples::of(series, &one.name, &one.arm, one.clock);
    let (min, max) = (samples.min(), samples.max());
    assert_eq!(samples.is_empty(), min.is_none());
    if let (Some(min), Some(max), Some(estimate)) = (min, max, samples.estimate(0.5)) {
        assert!(min <= max && estimate.low <= estimate.value && estimate.value <= estimate.high);
    }
    assert!(samples.mean().is_none_or(f64::is_finite));
    samples.merged();
    let _ = samples.len();
}

/// A header and records of every outcome and every kind of data.
fn seeds() -> Vec<Vec<u8>> {
    let header =
        br#"{"schema":"pagelab.run/1","run":"r","pagelab":"0","plan":[["a/b",{"k":"v"}]]}"#;
    let record = |outcome: &str| {
        let head = r#"{"schema":"pagelab.record/1","run":"r","boot":"","workload":"a/b","nature":"#;
        let host = r#""measured","case":{"k":"v"},"host":{"identity":{"cpu":"x"}},"outcome":"#;
        [head, host, outcome, "}\n"].concat()
    };
    let mut histogram = pagelab_record::latency::empty();
    histogram.saturating_record(100);
    let histogram = pagelab_record::latency::encode(&histogram);
    let series = |data: &str| {
        format!(r#"{{"name":"touch","arm":"a","clock":"tsc","unit":"ns","ops":4,{data}}}"#)
    };
    let measured = format!(
        r#"{{"measured":{{"series":[{},{},{}],"counters":{{"faults":7}},"witness":[{}]}}}}"#,
        series(r#""values":[1,2,3]"#),
        series(&format!(r#""histogram":"{histogram}""#)),
        series(r#""summary":{"n":3,"p50":2}"#),
        r#"{"claim":"faults","expected":7,"observed":7,"holds":true}"#,
    );
    let outcomes = [
        r#"{"skipped":{"need":"root","cure":"sudo"}}"#,
        r#"{"failed":{"reason":"it died"}}"#,
        &measured,
    ];
    let records: String = outcomes.into_iter().map(record).collect();
    let whole = [header, &b"\n"[..], records.as_bytes()].concat();
    vec![
        whole[..whole.len() - 9].to_vec(),
        records.into_bytes(),
        [header, &b"\n{}\n"[..]].concat(),
        whole,
    ]
}
