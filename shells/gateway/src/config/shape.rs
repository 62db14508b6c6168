//! The table as a tree: what may stand where.
//!
//! It is made from the table and from nothing else; reading and the schema both walk it.

use super::table::{KEYS, Key, RETIRED, Retired, SHORTS};

/// What may stand at a place.
#[derive(Clone, Debug)]
pub enum Shape {
    /// The value of a key.
    Leaf(&'static Key),
    /// An object of these keys.
    Group(Group),
    /// An object of any names.
    Map(Box<Shape>),
    /// A list.
    List(Box<Shape>),
    /// Something of an older configuration.
    Retired(&'static Retired),
}

/// A closed object.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// What it may hold, in the order of the table.
    pub holds: Vec<(&'static str, Shape)>,
    /// The key that its short form sets.
    pub short: Option<&'static str>,
}

impl Group {
    /// The whole configuration.
    #[must_use]
    pub fn root() -> Self {
        let mut root = Self::default();
        for key in KEYS {
            root.grow(&steps(key.path), &Shape::Leaf(key));
        }
        for retired in RETIRED {
            root.grow(&steps(retired.path), &Shape::Retired(retired));
        }
        for short in SHORTS {
            if let Some(group) = root.group(&steps(short.path)) {
                group.short = Some(short.name);
            }
        }
        root
    }

    /// What may stand under a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Shape> {
        let found = self.holds.iter().find(|(known, _)| *known == name);
        found.map(|(_, shape)| shape)
    }

    /// The names that a new file may hold here.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let living = self.holds.iter().filter(|(_, shape)| shape.is_living());
        living.map(|(name, _)| *name)
    }

    fn grow(&mut self, path: &[&'static str], end: &Shape) {
        let [name, rest @ ..] = path else { return };
        if self.get(name).is_none() {
            self.holds.push((name, grown(rest, end)));
        } else if let Some(shape) = self.get_mut(name) {
            shape.grow(rest, end);
        }
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Shape> {
        let found = self.holds.iter_mut().find(|(known, _)| *known == name);
        found.map(|(_, shape)| shape)
    }

    fn group(&mut self, path: &[&str]) -> Option<&mut Self> {
        let [name, rest @ ..] = path else {
            return Some(self);
        };
        match self.get_mut(name)? {
            Shape::Group(group) => group.group(rest),
            _ => None,
        }
    }
}

impl Shape {
    /// Whether a new file may hold it.
    #[must_use]
    pub fn is_living(&self) -> bool {
        match self {
            Self::Leaf(_) => true,
            Self::Group(group) => group.names().next().is_some(),
            Self::Map(of) | Self::List(of) => of.is_living(),
            Self::Retired(_) => false,
        }
    }

    fn grow(&mut self, path: &[&'static str], end: &Self) {
        match (self, path) {
            (Self::Group(group), _) => group.grow(path, end),
            (Self::Map(of) | Self::List(of), [_, rest @ ..]) => of.grow(rest, end),
            _ => {}
        }
    }
}

/// A fresh branch that ends in `end`.
fn grown(path: &[&'static str], end: &Shape) -> Shape {
    match path {
        [] => end.clone(),
        ["*", rest @ ..] => Shape::Map(Box::new(grown(rest, end))),
        ["[]", rest @ ..] => Shape::List(Box::new(grown(rest, end))),
        path => {
            let mut group = Group::default();
            group.grow(path, end);
            Shape::Group(group)
        }
    }
}

/// The steps of a path of the table: names, `*` and `[]`.
#[must_use]
pub fn steps(path: &'static str) -> Vec<&'static str> {
    path.split('.')
        .flat_map(|part| match part.strip_suffix("[]") {
            Some(name) => vec![name, "[]"],
            None => vec![part],
        })
        .collect()
}
