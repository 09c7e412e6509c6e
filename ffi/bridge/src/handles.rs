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
    slots: Mutex<Slots<T>>,
}

impl<T: Clone> Table<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Self {
        Table {
            kind,
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
                    generation: 0,
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
    /// `not_found` when it was removed or never existed.
    pub fn get(&self, number: u64) -> Result<T, Error> {
        self.place(number)
            .and_then(|place| self.lock().slots.get(place)?.at(number)?.clone())
            .ok_or_else(|| self.not_found(number))
    }

    /// Removes the object of that number and gives it back.
    ///
    /// # Errors
    /// `not_found` as in [`Table::get`].
    pub fn remove(&self, number: u64) -> Result<T, Error> {
        let place = self.place(number).ok_or_else(|| self.not_found(number))?;
        let mut slots = self.lock();
        let value = slots
            .slots
            .get_mut(place)
            .filter(|slot| slot.is(number))
            .and_then(|slot| {
                slot.generation = (slot.generation + 1) % (1 << GENERATION_BITS);
                slot.value.take()
            })
            .ok_or_else(|| self.not_found(number))?;
        slots.free.push(place);
        Ok(value)
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

    /// Where the object of a number of this kind would be.
    fn place(&self, number: u64) -> Option<usize> {
        let kind = number >> PLACE_BITS & ((1 << KIND_BITS) - 1);
        let place = number & ((1 << PLACE_BITS) - 1);
        if kind != self.kind as u64 {
            return None;
        }
        usize::try_from(place).ok()?.checked_sub(1)
    }

    fn not_found(&self, number: u64) -> Error {
        Error::new(
            ErrorCode::NotFound,
            format!("there is no open {} {number}", self.kind.name()),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Slots<T>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Slot<T> {
    fn is(&self, number: u64) -> bool {
        self.value.is_some() && number >> (PLACE_BITS + KIND_BITS) == self.generation
    }

    fn at(&self, number: u64) -> Option<&Option<T>> {
        self.is(number).then_some(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_good_for_one_object_of_one_kind() -> Result<(), Error> {
        let toolkits = Table::new(Kind::Toolkit);
        let clients = Table::new(Kind::Client);
        let first = toolkits.insert("a")?;
        assert_eq!(toolkits.get(first)?, "a");
        assert_eq!(
            clients.get(first).map_err(|e: Error| e.code()),
            Err::<&str, _>(ErrorCode::NotFound)
        );
        assert_eq!(toolkits.remove(first)?, "a");
        let second = toolkits.insert("b")?;
        assert_ne!(first, second);
        assert_eq!(
            toolkits.get(first).map_err(|e| e.code()),
            Err(ErrorCode::NotFound)
        );
        assert_eq!(toolkits.get(second)?, "b");
        assert_eq!(
            toolkits.get(0).map_err(|e| e.code()),
            Err(ErrorCode::NotFound)
        );
        assert_eq!(
            toolkits.get(u64::MAX).map_err(|e| e.code()),
            Err(ErrorCode::NotFound)
        );
        assert_eq!(toolkits.len(), 1);
        assert_eq!(toolkits.drain(), ["b"]);
        assert!(toolkits.is_empty());
        Ok(())
    }
}
