//! Odd ways to drive the core.

use super::*;
use tidegate_core::{Subject, Wall};

const NOW: Now = Now {
    time: Time(5),
    wall: Wall(5),
};

fn wait(n: u128) -> Input {
    Input::Wait {
        request: RequestId::from_u128(n),
        run: RunId::from_u128(1),
        timeout_ms: Some(50),
    }
}

/// law 11: a snapshot goes on as its original, a dropped drain comes back whole, and a time
/// that goes back is clamped and counted; whatever is done, the orders are the same.
#[test]
fn odd_ways_to_drive_the_core_change_nothing_of_what_it_orders() {
    let tricks = [
        Trick::Restore,
        Trick::Halves(0),
        Trick::Halves(1),
        Trick::Halves(9),
        Trick::Back(3),
    ];
    for trick in tricks {
        let mut plain = System::new(Config::default(), None);
        let mut odd = System::new(Config::default(), None);
        for n in 0..50 {
            let (mut expected, mut outputs) = (Vec::new(), Vec::new());
            assert!(plain.handle(NOW, &wait(n), None, &mut expected));
            let trick = (n > 0).then_some(trick);
            assert!(odd.handle(NOW, &wait(n), trick, &mut outputs));
            assert_eq!(expected, outputs, "{trick:?}");
        }
    }
}

/// law 11
#[test]
fn a_twin_that_goes_another_way_is_seen() {
    let mut system = System::new(Config::default(), None);
    let mut outputs = Vec::new();
    assert!(system.handle(NOW, &wait(1), Some(Trick::Restore), &mut outputs));
    let other = Config {
        waits_cap: 0,
        ..Config::default()
    };
    system.twin = Some((Core::new(other), TWIN_INPUTS));
    outputs.clear();
    assert!(!system.handle(NOW, &wait(2), None, &mut outputs));
    let named = |o: &Output| matches!(o, Output::Lookup { ticket, .. } if ticket.subject == Subject::Request(RequestId::from_u128(2)));
    assert!(
        outputs.iter().any(named),
        "the restored core's outputs count"
    );
}
