//! The nearest right name for a wrong one.
//!
//! It only compares; what the names mean is not known here.

/// A name with more changes than this is another name.
const DISTANCE_CAP: usize = 2;
/// A longer name is not compared (law 9).
const LENGTH_CAP: usize = 64;

/// The known name that is nearest to `wrong`, if one is near: at most two letters differ, or
/// only capitals do, and more is alike than differs.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.len() > LENGTH_CAP {
        return None;
    }
    let near = known.into_iter().filter_map(|name| {
        let distance = distance(wrong, name);
        let is_near = distance <= DISTANCE_CAP && distance < name.chars().count();
        is_near.then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}

/// Letters to insert, leave out, change or swap; capitals count for nothing beside them.
fn distance(wrong: &str, name: &str) -> usize {
    let plain = strsim::osa_distance(wrong, name);
    let folded = strsim::osa_distance(&wrong.to_lowercase(), &name.to_lowercase());
    plain.min(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let known = ["port", "bind", "auth", "timeoutSeconds", "id"];
        for (wrong, right) in [
            ("prot", Some("port")),
            ("Port", Some("port")),
            ("TIMEOUTSECONDS", Some("timeoutSeconds")),
            ("timeout_seconds", Some("timeoutSeconds")),
            ("timeoutMs", None),
            ("no", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), right, "{wrong}");
        }
    }
}
