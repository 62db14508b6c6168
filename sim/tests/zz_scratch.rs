//! scratch
use tidegate_sim::*;
#[test]
fn scratch() {
    let seed: u64 = std::fs::read_to_string("/tmp/seed")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let from: u64 = std::fs::read_to_string("/tmp/from")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let mut watch = |s: &Step<'_>| {
        if s.index >= from {
            println!(
                "{} {}ms life{} {:?}",
                s.index, s.now.time.0, s.life, s.input
            );
            for o in s.outputs {
                println!("      -> {o:?}");
            }
        }
    };
    let r = run_choices(
        &mut Seeded::new(seed),
        &Options::default(),
        Some(&mut watch),
    );
    println!("{:?}", r.header);
    for v in r.violations {
        println!("{v}");
    }
}
