//! The book's page names what there is.

use tidegate_sim::{Code, Fault, Mark, TRANSITIONS};

const PAGE: &str = include_str!("../../docs/simulation.md");

#[test]
fn the_book_names_every_fault_code_step_and_mark() {
    let faults = Fault::ALL
        .iter()
        .map(|f| format!("| `{}` | {} |", f.name(), f.says()));
    let codes = Code::ALL.iter().map(|c| {
        let (name, promises, sentence) = (c.name(), c.promises(), c.sentence());
        format!("| `{name}` | {promises} | {sentence} |")
    });
    let steps = TRANSITIONS
        .iter()
        .map(|(from, to)| format!("| {} | {} |", from.name(), to.name()));
    let marks = Mark::ALL.iter().map(|m| format!("- {}", m.name()));
    for line in faults.chain(codes).chain(steps).chain(marks) {
        assert!(
            PAGE.lines().any(|said| said == line),
            "missing in docs/simulation.md: {line}"
        );
    }
}
