//! Operations about the library itself.

use crate::dispatch::Context;
use crate::ops::{Counters, Nothing, Version};
use toolspan::Error;

pub(crate) fn version(_: &Context, _: Nothing) -> Result<Version, Error> {
    Ok(Version {
        version: toolspan::VERSION,
    })
}

pub(crate) fn counters(context: &Context, _: Nothing) -> Result<Counters, Error> {
    let shared = &context.shared;
    let this_one = usize::from(context.operation.is_some());
    Ok(Counters {
        open_toolkits: shared.counters.open_toolkits(),
        connected_servers: shared.counters.connected_servers(),
        open_clients: shared.clients.len(),
        operations: shared.operations.len().saturating_sub(this_one),
        open_streams: shared.streams.len(),
    })
}
