//! Numbers that stand for objects: a kind, a place and a generation, so that a stale or foreign number is an error
//! and never somebody else's object. All numbers are below 2^53 and so survive in JavaScript.

use std::sync::{Mutex, MutexGuard, PoisonError};

use toolspan::{Error, ErrorCode};

const PLACE_BITS: u32 = 22;
const KIND_BITS: u32 = 2;
const GENERATION_BITS: u32 = 53 - PLACE_BITS - KIND_BITS;

/// What a number stands for. It is part of the number, so the number of a client is never taken for a toolkit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An engine; only the C ABI has these.
    Engine = 0,
    /// A toolkit.
    Toolkit = 1,
    /// A client.
    Client = 2,
    /// A conversation.
    Conversation = 3,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Engine => "engine",
            Kind::Toolkit => "toolkit",
            Kind::Client => "client",
            Kind::Conversation => "conversation",
        }
    }
}

struct Slot<T> {
    /// Counts up at every removal; a number carries the generation it was made in.
    generation: u64,
    value: Option<T>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

/// Objects by number. Values are cheap clones (`Arc` inside), so nothing is locked while one is used.
pub struct Table<T> {
    kind: Kind,
    first_generation: u64,
    slots: Mutex<Slots<T>>,
}

impl<T: Clone> Table<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Self {
        Table::starting_at(kind, 0)
    }

    /// An empty table whose numbers differ from those of one that starts at another generation.
    pub const fn starting_at(kind: Kind, generation: u64) -> Self {
        Table {
            kind,
            first_generation: generation % (1 << GENERATION_BITS),
            slots: Mutex::new(Slots {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// Takes the object in and gives its number, which is never 0.
    ///
    /// # Errors
    /// `limit_exceeded` when four million are open.
    pub fn insert(&self, value: T) -> Result<u64, Error> {
        let mut slots = self.lock();
        let place = match slots.free.pop() {
            Some(place) => place,
            None if slots.slots.len() < (1 << PLACE_BITS) - 1 => {
                slots.slots.push(Slot {
                    generation: self.first_generation,
                    value: None,
                });
                slots.slots.len() - 1
            }
            None => {
                return Err(Error::new(
                    ErrorCode::LimitExceeded,
                    format!("too many open {}s", self.kind.name()),
                ));
            }
        };
        let slot = &mut slots.slots[place];
        slot.value = Some(value);
        Ok(self.number(place, slot.generation))
    }

    /// The object of that number.
    ///
    /// # Errors
    /// `closed` when it was removed, `not_found` when it never existed.
    pub fn get(&self, number: u64) -> Result<T, Error> {
        let slots = self.lock();
        let place = self.find(&slots, number)?;
        let value = slots.slots[place].value.clone();
        value.ok_or_else(|| self.closed())
    }

    /// Removes the object of that number and gives it back.
    ///
    /// # Errors
    /// As in [`Table::get`].
    pub fn remove(&self, number: u64) -> Result<T, Error> {
        let mut slots = self.lock();
        let place = self.find(&slots, number)?;
        let slot = &mut slots.slots[place];
        let value = slot.value.take().ok_or_else(|| self.closed())?;
        slot.generation = (slot.generation + 1) % (1 << GENERATION_BITS);
        slots.free.push(place);
        Ok(value)
    }

    /// As [`Table::remove`], but removing twice is not an error: `None` the second time.
    ///
    /// # Errors
    /// `not_found` when it never existed.
    pub fn remove_once(&self, number: u64) -> Result<Option<T>, Error> {
        match self.remove(number) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code() == ErrorCode::Closed => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes everything.
    pub fn drain(&self) -> Vec<T> {
        let mut slots = self.lock();
        let mut values = Vec::new();
        for place in 0..slots.slots.len() {
            let slot = &mut slots.slots[place];
            if let Some(value) = slot.value.take() {
                slot.generation = (slot.generation + 1) % (1 << GENERATION_BITS);
                values.push(value);
                slots.free.push(place);
            }
        }
        values
    }

    /// How many are in the table.
    pub fn len(&self) -> usize {
        let slots = self.lock();
        slots.slots.len() - slots.free.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn number(&self, place: usize, generation: u64) -> u64 {
        let low = (place as u64 + 1) | (self.kind as u64) << PLACE_BITS;
        low | generation << (PLACE_BITS + KIND_BITS)
    }

    /// The place of a number, if the number is of this kind and of the generation that is there.
    fn find(&self, slots: &Slots<T>, number: u64) -> Result<usize, Error> {
        let kind = number >> PLACE_BITS & ((1 << KIND_BITS) - 1);
        let generation = number >> (PLACE_BITS + KIND_BITS);
        let place = usize::try_from(number & ((1 << PLACE_BITS) - 1))
            .ok()
            .and_then(|place| place.checked_sub(1))
            .filter(|place| kind == self.kind as u64 && *place < slots.slots.len());
        match place {
            Some(place) if generation == slots.slots[place].generation => Ok(place),
            Some(place) if generation < slots.slots[place].generation => Err(self.closed()),
            _ => Err(Error::new(
                ErrorCode::NotFound,
                format!("there is no {} {number}", self.kind.name()),
            )),
        }
    }

    fn closed(&self) -> Error {
        Error::new(
            ErrorCode::Closed,
            format!("the {} is closed", self.kind.name()),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Slots<T>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(found: Result<&str, Error>) -> ErrorCode {
        found.expect_err("an error").code()
    }

    #[test]
    fn a_number_is_good_for_one_object_of_one_kind() -> Result<(), Error> {
        let toolkits = Table::new(Kind::Toolkit);
        let clients = Table::new(Kind::Client);
        let first = toolkits.insert("a")?;
        assert_eq!(toolkits.get(first)?, "a");
        assert_eq!(
            clients.insert("c")? & 0xff,
            first & 0xff,
            "the same place in another table"
        );
        assert_eq!(code(clients.get(first)), ErrorCode::NotFound);
        assert_eq!(toolkits.remove(first)?, "a");
        assert_eq!(code(toolkits.get(first)), ErrorCode::Closed);
        let second = toolkits.insert("b")?;
        assert_eq!(code(toolkits.get(first)), ErrorCode::Closed);
        assert_eq!(code(toolkits.remove(first)), ErrorCode::Closed);
        assert_eq!(toolkits.get(second)?, "b");
        assert_eq!(code(toolkits.get(0)), ErrorCode::NotFound);
        assert_eq!(code(toolkits.get(u64::MAX)), ErrorCode::NotFound);
        assert_eq!(toolkits.len(), 1);
        assert_eq!(toolkits.drain(), ["b"]);
        assert!(toolkits.is_empty());
        assert_eq!(code(toolkits.get(second)), ErrorCode::Closed);
        Ok(())
    }
}
