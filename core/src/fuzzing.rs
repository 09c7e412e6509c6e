//! The private halves that `core/fuzz` drives, each with what must hold for any input. Behind a feature that nothing
//! shipped has (`conformance/tests/architecture.rs` checks it); no part of the API.

pub use crate::client::fuzzing::Streams;
pub use crate::mcp::fuzzing::plan;

use crate::sse::Decoder;

/// Wherever the network cuts an event stream, its events are the same. The first byte says how large the pieces are.
pub fn sse(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else {
        return;
    };
    let whole = events([stream]);
    let pieces = events(stream.chunks(usize::from(*first % 16) + 1));
    assert_eq!(whole, pieces);
    limited(stream);
}

/// Name, data, id and retry.
type Owned = (String, String, Option<String>, Option<u64>);

fn events<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
    let mut decoder = Decoder::new(usize::MAX);
    let mut events = Vec::new();
    let mut keep = |event: crate::sse::SseEvent<'_>| {
        let id = event.id.map(|id| id.into_owned());
        let (name, data) = (event.name.into_owned(), event.data.into_owned());
        events.push((name, data, id, event.retry));
    };
    for read in reads {
        decoder.push(read).expect("there is no limit");
        while let Some(event) = decoder.next_event().expect("there is no limit") {
            keep(event);
        }
    }
    if let Some(event) = decoder.finish().expect("there is no limit") {
        keep(event);
    }
    events
}

/// No event is larger than the limit: its data may at most grow threefold where bytes were no text.
fn limited(stream: &[u8]) {
    const LIMIT: usize = 64;
    let mut decoder = Decoder::new(LIMIT);
    for byte in stream {
        if decoder.push(&[*byte]).is_err() {
            return;
        }
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => assert!(event.data.len() <= 2 * 3 * LIMIT),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}
