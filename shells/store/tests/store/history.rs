//! Random histories: the store and the model of its rules must tell the same story.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tidegate_core::{
    Accept, Budget, Epoch, Fence, Fingerprint, Generation, Outcome, RequestId, Wall,
};
use tidegate_driver::{StoreDone, StoreOp, StoredText};

use crate::kit::{self, Kit, names};
use crate::model::Model;

/// An order before it knows the epoch of the life that it is given in.
#[derive(Clone, Debug)]
struct Draft {
    /// Lives back that its lease is from.
    stale: u64,
    session: u8,
    run: u8,
    attempt: u32,
    generation: u64,
    at: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Accept {
        body: u8,
        budget: Option<Budget>,
        claims: bool,
    },
    Claim {
        left_ms: Option<u64>,
    },
    Save {
        from: u64,
        text: String,
    },
    Settle {
        outcome: Outcome,
        text: StoredText,
    },
    Lookup,
    Transcript,
    Load,
    Lists,
}

impl Draft {
    fn op(&self, epoch: Epoch) -> StoreOp {
        let epoch = Epoch(epoch.0.saturating_sub(self.stale));
        let session = kit::session(self.session);
        let fence = Fence {
            generation: Generation(self.generation),
            ..kit::fence(self.session, self.run, self.attempt)
        };
        let at = Wall(self.at);
        match &self.kind {
            Kind::Accept {
                body,
                budget,
                claims,
            } => StoreOp::Accept {
                accept: Accept {
                    session,
                    generation: fence.generation,
                    epoch,
                    run: fence.run,
                    body: Fingerprint::from_u128((*body).into()),
                    request: RequestId::from_u128(1),
                    budget: *budget,
                    at,
                    claim: claims.then(|| kit::order(self.attempt, Some(500), self.at)),
                },
                names: names(self.session, self.run),
                message: format!("message {}", self.run),
            },
            Kind::Claim { left_ms } => {
                let claim = kit::order(self.attempt, *left_ms, self.at);
                StoreOp::Claim {
                    fence,
                    epoch,
                    claim,
                }
            }
            Kind::Save { from, text } => StoreOp::Save {
                fence,
                epoch,
                from: *from,
                text: text.clone(),
                at,
            },
            Kind::Settle { outcome, text } => {
                let mut terminal = kit::terminal(self.session, self.run, self.attempt, *outcome);
                terminal.ended_at = at;
                StoreOp::Settle {
                    fence,
                    epoch,
                    terminal,
                    text: text.clone(),
                }
            }
            Kind::Lookup => StoreOp::Lookup { run: fence.run },
            Kind::Transcript => StoreOp::Transcript { session },
            Kind::Load => StoreOp::Load { session },
            Kind::Lists if self.at.is_multiple_of(2) => StoreOp::OpenSessions,
            Kind::Lists => StoreOp::Sessions {
                limit: self.attempt,
            },
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    let budget = prop_oneof![
        Just(None),
        Just(Some(Budget::Unlimited)),
        (0u64..900).prop_map(|ms| Some(Budget::Limited(ms)))
    ];
    let outcome = prop_oneof![Just(Outcome::Completed), Just(kit::FAILED)];
    let text = (
        prop::option::of("[a-c]{1,3}"),
        prop::option::of("[d-f]{1,3}"),
    )
        .prop_map(|(reply, detail)| StoredText { reply, detail });
    prop_oneof![
        6 => (prop_oneof![9 => Just(1u8), 1 => Just(2u8)], budget, any::<bool>())
            .prop_map(|(body, budget, claims)| Kind::Accept { body, budget, claims }),
        5 => prop::option::of(0u64..900).prop_map(|left_ms| Kind::Claim { left_ms }),
        6 => (prop_oneof![3 => Just(0u64), 2 => Just(2), 1 => 0u64..6], "[xy]{2}")
            .prop_map(|(from, text)| Kind::Save { from, text }),
        4 => (outcome, text).prop_map(|(outcome, text)| Kind::Settle { outcome, text }),
        1 => Just(Kind::Lookup),
        1 => Just(Kind::Transcript),
        1 => Just(Kind::Load),
        1 => Just(Kind::Lists),
    ]
}

fn draft() -> impl Strategy<Value = Draft> {
    let stale = prop_oneof![19 => Just(0u64), 1 => Just(1)];
    let generation = prop_oneof![19 => Just(1u64), 1 => Just(2)];
    let attempt = prop_oneof![1 => Just(0u32), 5 => Just(1), 3 => Just(2), 1 => Just(3)];
    (
        stale,
        1u8..=2,
        1u8..=3,
        attempt,
        generation,
        0u64..1_000,
        kind(),
    )
        .prop_map(|(stale, session, run, attempt, generation, at, kind)| {
            // Mostly a run keeps to one session: run n of session s is 10 s + n.
            let run = if at % 11 == 0 {
                10 + run
            } else {
                session * 10 + run
            };
            Draft {
                stale,
                session,
                run,
                attempt,
                generation,
                at,
                kind,
            }
        })
}

/// What happens between two batches.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Restart,
    Crash,
}

fn batch() -> impl Strategy<Value = (Between, Vec<Draft>)> {
    let between = prop_oneof![8 => Just(Between::Nothing), 1 => Just(Between::Restart), 1 => Just(Between::Crash)];
    (between, prop::collection::vec(draft(), 1..7))
}

fn same(op: &StoreOp, store: &StoreDone, model: &StoreDone) -> Result<(), TestCaseError> {
    prop_assert_eq!(format!("{store:?}"), format!("{model:?}"), "of {:?}", op);
    Ok(())
}

fn compare(kit: &mut Kit, model: &mut Model, ops: Vec<StoreOp>) -> Result<(), TestCaseError> {
    let store = kit.run(ops.clone());
    for (op, done) in ops.iter().zip(&store) {
        same(op, done, &model.carry_out(op))?;
    }
    Ok(())
}

fn everything() -> Vec<StoreOp> {
    let mut ops = vec![StoreOp::OpenSessions, StoreOp::Sessions { limit: 9 }];
    for n in 1..=2 {
        let session = kit::session(n);
        ops.extend([StoreOp::Load { session }, StoreOp::Transcript { session }]);
        ops.extend((1..=3).map(|m| StoreOp::Lookup {
            run: kit::run(n * 10 + m),
        }));
    }
    ops
}

proptest! {
    // The gate replays one fixed block of histories; another seed finds others.
    #![proptest_config(ProptestConfig {
        cases: 96,
        rng_seed: RngSeed::Fixed(4_711),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// P06, P07, I20, I21, I22, I26, I60: the store and the rules tell the same story, batch
    /// by batch, over restarts and crashes.
    #[test]
    fn any_history_agrees_with_the_rules(history in prop::collection::vec(batch(), 1..12)) {
        let mut kit = Kit::new();
        let mut model = Model::default();
        for (between, drafts) in history {
            match between {
                Between::Nothing => {}
                Between::Restart => kit.reopen(),
                Between::Crash => kit = kit.crashed(),
            }
            let epoch = kit.epoch();
            model.open(epoch);
            let ops = drafts.iter().map(|draft| draft.op(epoch)).collect();
            compare(&mut kit, &mut model, ops)?;
        }
        compare(&mut kit, &mut model, everything())?;
    }
}
