//! The table of operations. Names, arguments, results and the work behind them stand side by side and nowhere else.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::event;
use crate::operation::Operation;
use crate::ops::{self, Empty, Nothing};
use crate::request;
use crate::shared::Shared;
use crate::streams::StreamGuard;
use crate::work::{client, conversation, misc, toolkit};
use toolspan::aside::aside;
use toolspan::mcp::Inventory;
use toolspan::schema::Compiled;
use toolspan::{Error, ErrorCode, RunResult, ToolResult};

/// What the work of an operation has at hand.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// The operation; absent in a direct call.
    pub(crate) operation: Option<Arc<Operation>>,
    /// Where the events of `client.stream` go.
    pub(crate) stream: Option<StreamGuard>,
}

impl Context {
    /// The token of the operation for work that ends by itself when it is cancelled.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.operation
            .as_ref()
            .map_or_else(CancellationToken::new, |operation| operation.linger())
    }
}

macro_rules! operations {
    (
        immediate { $($(#[doc = $idoc:literal])+ $(#[cfg($icfg:meta)])? $ivariant:ident = $iname:literal: $iargs:ty => $iresult:ty, $irun:path;)+ }
        submitted { $($(#[doc = $sdoc:literal])+ $(#[cfg($scfg:meta)])? $svariant:ident = $sname:literal: $sargs:ty => $sresult:ty, $srun:path;)+ }
    ) => {
        /// Every operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op {
            $($(#[doc = $idoc])+ $(#[cfg($icfg)])? $ivariant,)+
            $($(#[doc = $sdoc])+ $(#[cfg($scfg)])? $svariant,)+
        }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Op] = &[$($(#[cfg($icfg)])? Op::$ivariant,)+ $($(#[cfg($scfg)])? Op::$svariant,)+];

            /// The name in a request.
            pub const fn as_str(self) -> &'static str {
                match self { $($(#[cfg($icfg)])? Op::$ivariant => $iname,)+ $($(#[cfg($scfg)])? Op::$svariant => $sname,)+ }
            }

            /// One line for documentation.
            pub const fn describe(self) -> &'static str {
                match self { $($(#[cfg($icfg)])? Op::$ivariant => concat!($($idoc),+),)+ $($(#[cfg($scfg)])? Op::$svariant => concat!($($sdoc),+),)+ }
            }

            /// Whether [`crate::Engine::call`] does it; [`crate::Engine::submit`] does all.
            pub const fn immediate(self) -> bool {
                match self { $($(#[cfg($icfg)])? Op::$ivariant => true,)+ $($(#[cfg($scfg)])? Op::$svariant => false,)+ }
            }

            pub(crate) fn named(name: &str) -> Option<Op> {
                match name { $($(#[cfg($icfg)])? $iname => Some(Op::$ivariant),)+ $($(#[cfg($scfg)])? $sname => Some(Op::$svariant),)+ _ => None }
            }

            /// JSON Schemas of the arguments and the result.
            pub(crate) fn schemas(self, generator: &mut schemars::SchemaGenerator) -> (schemars::Schema, schemars::Schema) {
                match self {
                    $($(#[cfg($icfg)])? Op::$ivariant => (generator.subschema_for::<$iargs>(), generator.subschema_for::<$iresult>()),)+
                    $($(#[cfg($scfg)])? Op::$svariant => (generator.subschema_for::<$sargs>(), generator.subschema_for::<$sresult>()),)+
                }
            }
        }

        /// Does an immediate operation.
        pub(crate) fn now(op: Op, context: &Context, args: &str) -> Result<String, Error> {
            match op {
                $($(#[cfg($icfg)])? Op::$ivariant => {
                    let result: $iresult = $irun(context, request::decode::<$iargs>(args)?)?;
                    event::json(&result)
                })+
                _ => Err(Error::new(ErrorCode::Internal, "the operation has to be submitted")),
            }
        }

        /// Does an operation that takes time.
        pub(crate) async fn later(op: Op, context: Context, args: String) -> Result<String, Error> {
            match op {
                $($(#[cfg($scfg)])? Op::$svariant => {
                    let args = aside(args.len(), || request::decode::<$sargs>(&args))?;
                    // On the heap, so that a small operation does not carry the size of the largest.
                    let result: $sresult = Box::pin($srun(context, args)).await?;
                    event::json(&result)
                })+
                _ => now(op, &context, &args),
            }
        }
    };
}

operations! {
    immediate {
        /// Version of the library.
        Version = "version": Nothing => ops::Version, misc::version;
        /// What is open and running in this engine.
        Counters = "counters": Nothing => ops::Counters, misc::counters;
        /// The tools of a toolkit, in order (SPEC 4.1).
        ToolkitTools = "toolkit.tools": ops::ToolkitNumber => ops::Tools, toolkit::tools;
        /// One tool by name.
        ToolkitGet = "toolkit.get": ops::ToolkitGet => ops::MaybeTool, toolkit::get;
        /// Adds a native tool (SPEC 4.3).
        ToolkitRegister = "toolkit.register": ops::ToolkitRegister => ops::Registered, toolkit::register;
        /// What became of each MCP server (SPEC 3.3).
        ToolkitStatus = "toolkit.status": ops::ToolkitNumber => ops::Servers, toolkit::status;
        /// The tools as a provider declares them (SPEC 5).
        ToolkitAdapt = "toolkit.adapt": ops::ToolkitAdapt => Compiled, toolkit::adapt;
        /// Checks options and makes a client (SPEC 7.1). Nothing is sent.
        ClientCreate = "client.create": ops::ClientCreate => ops::ClientNumber, client::create;
        /// Ends the runs of a client and forgets it.
        ClientClose = "client.close": ops::ClientNumber => Empty, client::close;
        /// What a client has counted (SPEC 10).
        ClientMetrics = "client.metrics": ops::ClientNumber => ops::MetricsText, client::metrics;
        /// A conversation of a client (SPEC 7.7).
        ConversationCreate = "conversation.create": ops::ConversationCreate => ops::ConversationNumber, conversation::create;
        /// Forgets the number; what is stored stays.
        ConversationClose = "conversation.close": ops::ConversationNumber => Empty, conversation::close;
        /// Panics at once.
        #[cfg(feature = "test-ops")] TestPanicNow = "test.panicNow": Nothing => Empty, crate::work::test::panic_now;
    }
    submitted {
        /// Connects, lists and assembles a toolkit (SPEC 4.1).
        ToolkitCreate = "toolkit.create": ops::ToolkitCreate => ops::ToolkitNumber, toolkit::create;
        /// Executes one call outside a run (SPEC 4.3).
        ToolkitExecute = "toolkit.execute": ops::ToolkitExecute => ToolResult, toolkit::execute;
        /// Ends a toolkit (SPEC 3.8).
        ToolkitClose = "toolkit.close": ops::ToolkitNumber => Empty, toolkit::close;
        /// Connects, lists, disconnects (SPEC 3.6).
        McpList = "mcp.list": ops::McpList => Inventory, toolkit::list;
        /// A run (SPEC 7.3).
        ClientRun = "client.run": ops::Run => RunResult, client::run;
        /// A run with a memory (SPEC 7.7).
        ClientAsk = "client.ask": ops::Run => RunResult, client::ask;
        /// A run seen event by event with `stream.next` (SPEC 7.5). Cancel it to leave early.
        ClientStream = "client.stream": ops::Run => RunResult, client::stream;
        /// The next events of a stream. One that has ended, or never was, is at its end.
        StreamNext = "stream.next": ops::StreamNext => ops::StreamItems, client::next;
        /// The next prompt of a conversation.
        ConversationSend = "conversation.send": ops::ConversationSend => RunResult, conversation::send;
        /// What was said so far.
        ConversationMessages = "conversation.messages": ops::ConversationNumber => ops::Messages, conversation::messages;
        /// Forgets what was said.
        ConversationReset = "conversation.reset": ops::ConversationNumber => Empty, conversation::reset;
        /// Reads the store of a client.
        StoreGet = "store.get": ops::StoreGet => ops::MaybeTranscript, conversation::get;
        /// Writes the store of a client.
        StoreSave = "store.save": ops::StoreSave => Empty, conversation::save;
        /// Panics where it is told to.
        #[cfg(feature = "test-ops")] TestPanic = "test.panic": crate::work::test::Panic => crate::work::test::Bomb, crate::work::test::panic;
        /// Logs a record, then never yields.
        #[cfg(feature = "test-ops")] TestBlock = "test.block": Nothing => Empty, crate::work::test::block;
    }
}
