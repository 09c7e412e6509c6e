//! Clients, runs and streams (SPEC 7).

use std::sync::Arc;
use std::time::Duration;

use super::{host_hooks, host_http, host_store};
use crate::dispatch::Context;
use crate::host::HostCallKind;
use crate::operation;
use crate::ops::{
    ClientCreate, ClientNumber, Empty, MetricsText, Prompt, Run, StreamItems, StreamNext,
};
use crate::options::{ClientOptions, StoreOption};
use crate::shared::Shared;
use crate::streams::{DEFAULT_ITEMS, Pulled};
use toolspan::{Client, Error, ErrorCode, RunResult, client};

pub(crate) fn create(context: &Context, args: ClientCreate) -> Result<ClientNumber, Error> {
    let shared = &context.shared;
    let client = build(shared, args.options)?;
    Ok(ClientNumber {
        client: shared.clients.insert(client)?,
    })
}

fn build(shared: &Arc<Shared>, options: ClientOptions) -> Result<Client, Error> {
    let required = |path| move || Error::config(path, "is required");
    let base_url = options.base_url.ok_or_else(required("baseUrl"))?;
    let style = options.style.ok_or_else(required("style"))?;
    let model = options.model.ok_or_else(required("model"))?;
    let mut builder = Client::builder(base_url, style, model)
        .logger(shared.logger.clone())
        .headers(options.headers)
        .retryable_statuses(options.retryable_statuses)
        .request_params(options.request_params);
    // What the host left out is not set, so that every default stays the core's.
    macro_rules! set {
        ($($option:ident => $setter:ident $(($convert:expr))?;)+) => {
            $(if let Some(value) = options.$option {
                builder = builder.$setter($($convert)?(value));
            })+
        };
    }
    set! {
        api_key => api_key;
        api_key_env => api_key_env;
        system_prompt => system_prompt;
        max_turns => max_turns;
        max_tool_concurrency => max_tool_concurrency;
        max_tool_output_bytes => max_tool_output_bytes;
        retries => retries;
        retry_base_ms => retry_base(Duration::from_millis);
        max_retry_delay_ms => max_retry_delay(Duration::from_millis);
        timeout_ms => timeout(Duration::from_millis);
        first_byte_timeout_ms => first_byte_timeout(Duration::from_millis);
        idle_timeout_ms => idle_timeout(Duration::from_millis);
    }
    let hooks = host_hooks::Functions {
        hooks: options.hooks,
        body_transform: options.body_transform,
        on_error: options.on_error,
    };
    builder = hooks.install(builder, &shared.host)?;
    builder = builder.http_transport(match options.http_client {
        Some(function) => host_http::transport(&shared.host, function)?,
        None => shared.transport()?,
    });
    builder = match options.store {
        None => builder,
        Some(StoreOption::Named(name)) => builder.store_named(&name),
        Some(StoreOption::Host(function)) => {
            builder.store(host_store::store(&shared.host, function)?)
        }
    };
    if let Some(function) = options.on_metric {
        let host = shared.host.clone();
        builder = builder.on_metric(Arc::new(move |event| {
            host.tell(
                operation::current(),
                HostCallKind::Metric,
                function.handler,
                &event,
            );
        }));
    }
    builder.build()
}

pub(crate) fn close(context: &Context, args: ClientNumber) -> Result<Empty, Error> {
    if let Some(client) = context.shared.clients.remove_once(args.client)? {
        client.close();
    }
    Ok(Empty {})
}

pub(crate) fn metrics(context: &Context, args: ClientNumber) -> Result<MetricsText, Error> {
    let client = context.shared.clients.get(args.client)?;
    Ok(MetricsText {
        text: client.metrics(),
    })
}

impl From<Prompt> for client::Prompt {
    fn from(prompt: Prompt) -> Self {
        match prompt {
            Prompt::Text(text) => text.into(),
            Prompt::Parts(parts) => parts.into(),
        }
    }
}

/// Puts the options that a run and a stream share into either.
macro_rules! with_options {
    ($context:expr, $start:ident, $args:expr) => {{
        let args = $args;
        let client = $context.shared.clients.get(args.client)?;
        let mut run = client.$start(args.prompt).cancel($context.stop());
        if let Some(number) = args.toolkit {
            run = run.toolkit(&$context.shared.toolkits.get(number)?);
        }
        if !args.history.is_empty() {
            run = run.history(args.history);
        }
        if let Some(id) = args.id {
            run = run.id(id);
        }
        if let Some(text) = args.system_prompt {
            run = run.system_prompt(text);
        }
        if let Some(model) = args.model {
            run = run.model(model);
        }
        if let Some(turns) = args.max_turns {
            run = run.max_turns(turns);
        }
        if let Some(ms) = args.timeout_ms {
            run = run.timeout(Duration::from_millis(ms));
        }
        run
    }};
}

pub(crate) async fn run(context: Context, args: Run) -> Result<RunResult, Error> {
    if args.id.is_some() {
        return Err(Error::argument(
            "id",
            "client.run has no memory; use client.ask",
        ));
    }
    finish(context, args).await
}

pub(crate) async fn ask(context: Context, args: Run) -> Result<RunResult, Error> {
    if args.id.is_none() {
        return Err(Error::argument(
            "id",
            "client.ask needs the id of a conversation",
        ));
    }
    finish(context, args).await
}

async fn finish(context: Context, args: Run) -> Result<RunResult, Error> {
    with_options!(context, run, args).await
}

pub(crate) async fn stream(context: Context, args: Run) -> Result<RunResult, Error> {
    let stream = context
        .stream
        .as_ref()
        .ok_or_else(|| Error::new(ErrorCode::Internal, "a stream was not made room for"))?;
    let stop = context.stop();
    let (run, events) = with_options!(context, stream, args).split();
    stream.start(events);
    let result = run.await;
    // Whoever cancelled it does not read on.
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = stream.read_to_end() => {}
    }
    result
}

pub(crate) async fn next(context: Context, args: StreamNext) -> Result<StreamItems, Error> {
    let most = args.max_items.unwrap_or(DEFAULT_ITEMS);
    if most == 0 {
        return Err(Error::argument("maxItems", "must be at least 1"));
    }
    let pulled = match context.shared.streams.get(args.stream) {
        Some(stream) => {
            let wait = args.max_wait_ms.map(Duration::from_millis);
            stream.pull(most, wait).await?
        }
        // Its terminal event is in the queue or was collected.
        None => Pulled::nothing(true),
    };
    Ok(StreamItems {
        items: pulled.items,
        end: pulled.end,
    })
}
