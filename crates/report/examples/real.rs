//! temp
fn main() {
    let a = std::env::args().nth(1).unwrap();
    let c = pagelab_record::journal::read(std::path::Path::new(&a)).unwrap();
    let p: Vec<_> = c.header.published.iter().flat_map(|n| pagelab_record::journal::read_records(&std::fs::read_to_string(format!("/work/main/published/{n}.jsonl")).unwrap()).unwrap()).collect();
    let r = pagelab_report::Report::of(&c.header, &c.records, c.damage.as_ref(), &p);
    std::fs::write("/tmp/real.html", r.html()).unwrap();
    println!("{}", r.terminal(pagelab_report::Style { color: false, width: 160 }));
}
