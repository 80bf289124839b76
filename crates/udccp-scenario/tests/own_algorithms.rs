//! A custom window algorithm must name an existing flow.

use std::path::Path;

use udccp_cc::{Algorithm, CustomAlgorithm};
use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, RunError, RunOptions, document, library, run};

fn with_own(flow: &str) -> Result<Record, RunError> {
    let text = library::text(Path::new("scenarios/two-flows-short.toml")).expect("a scenario");
    let root = document::parse("two-flows-short.toml", text.to_owned()).expect("TOML");
    let scenario = Scenario::read(&root).expect("a scenario");
    let reno = CustomAlgorithm::new("own", |packets| Algorithm::default().build(packets));
    let algorithms = [(flow.to_owned(), Algorithm::Custom(reno))];
    run("own", &scenario, 1, RunOptions { algorithms: &algorithms, ..RunOptions::default() })
}

#[test]
fn an_unknown_flow_is_an_error() {
    let error = with_own("frist").expect_err("the flow is called first").to_string();
    assert!(error.contains("\"frist\"") && error.contains("`first`"), "{error}");
    assert!(with_own("first").is_ok());
}
