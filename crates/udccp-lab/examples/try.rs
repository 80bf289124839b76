fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let e = udccp_lab::schema::Experiment::load(std::path::Path::new(&path))
        .unwrap_or_else(|e| panic!("{e}"));
    let changes: Vec<_> = args.map(|a| udccp_lab::document::Override::parse(&a).unwrap()).collect();
    let s = e.scenario_with(&vec![], &changes).unwrap_or_else(|e| panic!("{e}"));
    let mut r = udccp_lab::run(
        &e.id,
        &s,
        1,
        udccp_lab::RunOptions { check: cfg!(debug_assertions), pcap: None },
    )
    .unwrap_or_else(|e| panic!("{e}"));
    for f in &mut r.flows {
        f.series.cwnd_packets.clear();
        f.series.t_s.clear();
        f.series.throughput_mbps.truncate(if std::env::var("ALL").is_ok() { 300 } else { 0 });
        f.series.goodput_mbps.clear();
    }
    println!("{}", serde_json::to_string_pretty(&r).unwrap());
}
