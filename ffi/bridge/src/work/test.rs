//! Operations that misbehave on demand. Only with the feature `test-ops`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::dispatch::Context;
use crate::host::HostCallKind;
use crate::ops::{Empty, Nothing};
use toolspan::Error;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum At {
    Call,
    Poll,
    Encode,
    Drop,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Panic {
    at: At,
}

#[derive(JsonSchema)]
pub(crate) struct Bomb;

impl Serialize for Bomb {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("asked to panic while a result is written")
    }
}

struct Falling;

impl Drop for Falling {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("asked to panic in a destructor")
        }
    }
}

pub(crate) fn panic_now(_: &Context, _: Nothing) -> Result<Empty, Error> {
    panic!("asked to panic at once")
}

pub(crate) async fn panic(_: Context, args: Panic) -> Result<Bomb, Error> {
    match args.at {
        At::Call => panic!("asked to panic in the first poll"),
        At::Poll => {
            tokio::task::yield_now().await;
            panic!("asked to panic in a later poll")
        }
        At::Encode => Ok(Bomb),
        At::Drop => {
            let _falling = Falling;
            tokio::task::yield_now().await;
            Err(Error::cancelled())
        }
    }
}

pub(crate) async fn block(context: Context, _: Nothing) -> Result<Empty, Error> {
    context.shared.host.tell(0, HostCallKind::Log, 0, &"blocks");
    loop {
        std::thread::park();
    }
}
