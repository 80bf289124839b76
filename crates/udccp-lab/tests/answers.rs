//! Answers to a study's questions appear on both pages, with the verdicts of their claims.

mod common;

use common::made_up::{fairness, results};
use udccp_lab::analysis::Analysis;
use udccp_lab::report;
use udccp_lab::schema::Experiment;

/// The small experiment as an answer to the study `paper`.
fn answering() -> Experiment {
    let text = common::SMALL.replacen("[[claim]]\n", "[[claim]]\nid = \"newreno\"\n", 1).replacen(
        "[[claim]]\nsays = \"less",
        "[[claim]]\nid = \"falls\"\nsays = \"less",
        1,
    );
    let answer = "[answer]\nstudy = \"paper\"\nquestion = \"Is it <fair>?\"\n\
                  [[answer.sentence]]\nsays = \"It is.\"\nclaims = [\"newreno\"]\n\
                  [[answer.sentence]]\nsays = \"Less at long ways.\"\n\
                  claims = [\"falls\", \"newreno\"]\n";
    common::read(&text.replacen("[topology]", &format!("{answer}\n[topology]"), 1))
}

/// A study that asks the question.
fn asking() -> Experiment {
    let study = "id = \"paper\"\n[study]\ntitle = \"A paper\"\nauthors = \"A. B.\"\n\
                 published = \"2008\"\n";
    let text = common::SMALL.replacen("id = \"small\"\n", "", 1);
    let text = text.replacen("asks = \"Do tests see what campaigns do?\"\n", "", 1);
    common::read(&text.replacen("schema = 1\n", &format!("schema = 1\n{study}"), 1))
}

/// An analysis in which every run has this fairness index.
fn analysis(experiment: &Experiment, index: f64) -> Analysis<'_> {
    Analysis::of(experiment, results(experiment, "", |_| fairness(index)))
}

#[test]
fn answers_appear_on_their_own_page_and_on_the_study() {
    let (ours, study) = (answering(), asking());
    let all = [analysis(&study, 0.95), analysis(&ours, 0.95)];
    let folder = tempfile::tempdir().unwrap();
    report::write(folder.path(), &all, &report::About::default()).unwrap();
    let page = |id: &str| std::fs::read_to_string(folder.path().join(id)).unwrap();

    let own = page("small.html");
    assert!(own.contains("<h3>Is it &lt;fair&gt;?</h3>"), "{own}");
    assert!(own.contains("href=\"#claim-1\""), "{own}");
    let paper = page("paper.html");
    assert!(paper.contains("Open questions of the study"), "{paper}");
    assert!(
        paper.contains("It is. <a class=\"chip close\" href=\"small.html#claim-1\""),
        "{paper}"
    );
    // A constant value does not fall: the second sentence has one claim that fails and one that
    // holds.
    assert!(paper.contains("<a class=\"chip differs\" href=\"small.html#claim-3\""), "{paper}");
    assert!(!report::page(&all[0]).contains("id=\"answers\""));
}

#[test]
fn a_claim_that_fails_is_shown_beside_its_sentence() {
    let experiment = answering();
    let page = report::page(&analysis(&experiment, 0.6));
    assert!(page.contains("It is. <a class=\"chip differs\" href=\"#claim-1\""), "{page}");
    let text = report::markdown(&analysis(&experiment, 0.6));
    let head = "### Is it <fair>?\n\nIt is. Less at long ways.\n\n- fails: fair with NewReno\n";
    assert!(text.starts_with(head), "{text}");
}

#[test]
fn a_study_without_answers_has_no_heading_for_them() {
    let study = asking();
    assert!(!report::page(&analysis(&study, 0.95)).contains("id=\"answers\""));
}
