//! One request to the model, with its retries (SPEC 7.5, 7.6).

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::time::Duration;
use tokio::time::Instant;

use super::event::{Emitter, Event};
use super::hooks::{ErrorDecision, RequestFailure};
use super::options::Options;
use super::provider_error::{self, Failure, malformed, named};
use super::retry::{self, Next};
use super::wire::{self, Answer, Assembler, CallIds, Flow};
use crate::aside::aside;
use crate::clock::later;
use crate::error::{Error, ErrorCode, Result};
use crate::http::{HttpRequest, HttpResponse};
use crate::log::LogLevel;
use crate::sse::Decoder;

/// Largest answer in one piece.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Largest event of a stream.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;
/// Largest stream: an event of a few hundred bytes may bring one letter.
const MAX_STREAM_BYTES: usize = 512 * 1024 * 1024;
/// How long the end of a finished stream may take.
const RELEASE_GRACE: Duration = Duration::from_millis(20);
/// How much of an error's body is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How long it may take to arrive: the status says the most, and a body that drips must not hold up the next attempt.
const ERROR_PATIENCE: Duration = Duration::from_secs(5);

/// Sends a body until it is answered or the failure stands.
pub(super) async fn exchange(
    options: &Options,
    emitter: &Emitter,
    body: Bytes,
    ids: &mut CallIds,
) -> Result<Answer> {
    let mut attempt = 0;
    loop {
        let mut try_once = Attempt {
            options,
            emitter,
            shown: false,
        };
        let failure = match try_once.run(body.clone(), ids).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        // What was delivered cannot be taken back, and a second answer would repeat it.
        if try_once.shown || failure.error.code() == ErrorCode::Cancelled {
            return Err(failure.error);
        }
        let delay = decide(options, attempt, failure).await?;
        tokio::time::sleep(delay).await;
        attempt += 1;
    }
}

/// How long to wait before the next attempt, or the error when there is none.
async fn decide(options: &Options, attempt: u32, failure: Failure) -> Result<Duration> {
    let Failure { error, retry, wait } = failure;
    let again = match &options.on_error {
        None => retry,
        Some(hook) => {
            let decision = hook.call(RequestFailure {
                error: error.record().clone(),
                attempt,
                retryable: retry,
            });
            match decision.await? {
                ErrorDecision::Default => retry,
                ErrorDecision::Retry => true,
                ErrorDecision::Fail => false,
            }
        }
    };
    match retry::next(&options.retry, attempt, again, wait, retry::jitter()) {
        Next::GiveUp => Err(error),
        Next::TooLong(asked) => Err(too_long(options, asked, &error)),
        Next::Wait(delay) => {
            options.logger.log(
                LogLevel::Warn,
                "client",
                || {
                    format!(
                        "the request failed ({error}); trying again in {} ms",
                        delay.as_millis()
                    )
                },
                [("attempt", (attempt + 1).into())],
            );
            Ok(delay)
        }
    }
}

fn too_long(options: &Options, asked: Duration, cause: &Error) -> Error {
    let error = Error::new(
        ErrorCode::RateLimited,
        format!(
            "the provider asks to wait {} ms, longer than maxRetryDelayMs ({})",
            asked.as_millis(),
            options.retry.max_delay.as_millis()
        ),
    );
    let error = named(options.style, error)
        .retry_after(asked)
        .because(cause);
    match cause.record().http_status {
        Some(status) => error.http_status(status),
        None => error,
    }
}

/// One attempt.
struct Attempt<'a> {
    options: &'a Options,
    emitter: &'a Emitter,
    /// Something of the answer reached the reader.
    shown: bool,
}

impl Attempt<'_> {
    async fn run(&mut self, body: Bytes, ids: &mut CallIds) -> Result<Answer, Failure> {
        let options = self.options;
        let first_byte = later(Instant::now(), options.first_byte_timeout);
        let request = HttpRequest {
            method: "POST",
            url: options.endpoint.clone(),
            headers: options.headers.clone(),
            body,
        };
        let response = tokio::time::timeout_at(first_byte, options.transport.send(request))
            .await
            .map_err(|_| silence(options, true))?
            .map_err(|error| Failure {
                retry: error.code() == ErrorCode::ConnectionFailed,
                error: named(options.style, error),
                wait: None,
            })?;
        let (status, form) = (response.status, Form::of(&response, self.emitter.is_on()));
        let retry_after = response.header("retry-after").map(str::to_owned);
        let mut body = Body {
            options,
            pieces: response.body,
            first_byte: Some(first_byte),
            room: match form {
                Form::Stream => MAX_STREAM_BYTES,
                Form::Whole | Form::Page => MAX_ANSWER_BYTES,
            },
        };
        if !(200..300).contains(&status) {
            let said = body.head(MAX_ERROR_BYTES).await;
            let retry_after = retry_after.as_deref();
            return Err(provider_error::from_status(
                options,
                status,
                retry_after,
                &said,
            ));
        }
        match form {
            Form::Stream => self.stream(body, ids).await,
            Form::Whole => {
                let text = body.whole().await?;
                let answer = aside(text.len(), || wire::read_answer(options, &text, ids))?;
                self.show_whole(&answer).await?;
                Ok(answer)
            }
            Form::Page => Err(malformed(
                options.style,
                "the endpoint answered with a web page; check baseUrl",
            )),
        }
    }

    async fn stream(&mut self, mut body: Body<'_>, ids: &mut CallIds) -> Result<Answer, Failure> {
        let options = self.options;
        let mut decoder = Decoder::new(MAX_EVENT_BYTES);
        let mut assembler = Assembler::new(options.style);
        let mut out = Vec::new();
        loop {
            let piece = body
                .next()
                .await
                .map_err(|failure| interrupted(options, failure))?;
            let at_end = piece.is_none();
            let too_large = |error| Failure::fatal(named(options.style, error));
            if let Some(piece) = piece {
                decoder.push(&piece).map_err(too_large)?;
            }
            loop {
                let event = match at_end {
                    false => decoder.next_event(),
                    true => decoder.finish(),
                };
                let Some(event) = event.map_err(too_large)? else {
                    break;
                };
                let flow = assembler.take(options, &event.name, &event.data, &mut out)?;
                self.show(&mut out).await?;
                if flow == Flow::End {
                    body.release().await;
                    return assembler.answer(options, ids);
                }
            }
            if at_end {
                if assembler.may_end() {
                    return assembler.answer(options, ids);
                }
                let error = Error::new(
                    ErrorCode::StreamInterrupted,
                    "the stream ended before the answer did",
                );
                return Err(Failure::fatal(named(options.style, error)));
            }
        }
    }

    async fn show(&mut self, events: &mut Vec<Event>) -> Result<(), Failure> {
        for event in events.drain(..) {
            self.shown |= self.emitter.is_on();
            self.emitter.emit(|| event).await.map_err(Failure::fatal)?;
        }
        Ok(())
    }

    /// A server that answers a stream request in one piece is shown as one piece.
    async fn show_whole(&mut self, answer: &Answer) -> Result<(), Failure> {
        if !self.emitter.is_on() {
            return Ok(());
        }
        let mut events = Vec::new();
        if !answer.reasoning.is_empty() {
            events.push(Event::Reasoning {
                delta: answer.reasoning.clone(),
            });
        }
        if !answer.text.is_empty() {
            events.push(Event::Text {
                delta: answer.text.clone(),
            });
        }
        self.show(&mut events).await
    }
}

/// How an answer is to be read. Decided by what came, not by what was asked for: some servers always stream, some never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Stream,
    Whole,
    Page,
}

impl Form {
    fn of(response: &HttpResponse, asked_for_stream: bool) -> Form {
        let kind = response.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "text/event-stream" => Form::Stream,
            "text/html" => Form::Page,
            kind if kind.ends_with("json") => Form::Whole,
            _ if asked_for_stream => Form::Stream,
            _ => Form::Whole,
        }
    }
}

/// The bytes of an answer under the two limits of silence.
struct Body<'a> {
    options: &'a Options,
    pieces: BoxStream<'static, Result<Bytes>>,
    /// Until when the first byte must come; `None` once it has.
    first_byte: Option<Instant>,
    /// How many more bytes may come.
    room: usize,
}

impl Body<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let options = self.options;
        let beginning = self.first_byte.is_some();
        let until = match self.first_byte {
            Some(until) => until,
            None => later(Instant::now(), options.idle_timeout),
        };
        let piece = tokio::time::timeout_at(until, self.pieces.next())
            .await
            .map_err(|_| silence(options, beginning))?;
        self.first_byte = None;
        let Some(piece) = piece else { return Ok(None) };
        let piece = piece.map_err(|error| Failure {
            retry: beginning && error.code() == ErrorCode::ConnectionFailed,
            error: named(options.style, error),
            wait: None,
        })?;
        match self.room.checked_sub(piece.len()) {
            Some(room) => self.room = room,
            None => {
                let error = Error::new(ErrorCode::LimitExceeded, "the answer is too large");
                return Err(Failure::fatal(named(options.style, error)));
            }
        }
        Ok(Some(piece))
    }

    async fn whole(&mut self) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// The beginning of the body, as much as arrives in good order and soon.
    async fn head(&mut self, most: usize) -> Vec<u8> {
        let mut head = Vec::new();
        let until = later(Instant::now(), ERROR_PATIENCE);
        while let Ok(Ok(Some(piece))) = tokio::time::timeout_at(until, self.next()).await {
            let room = most - head.len();
            head.extend_from_slice(&piece[..piece.len().min(room)]);
            if head.len() == most {
                break;
            }
        }
        head
    }

    /// Lets go of a body that has said everything. Read to its end it leaves its connection to the next request, and that
    /// end is nearly always here already.
    async fn release(mut self) {
        let rest = async { while let Some(Ok(_)) = self.pieces.next().await {} };
        // A server that keeps the stream open loses its connection; that is no reason to wait for it.
        let _ended = tokio::time::timeout(RELEASE_GRACE, rest).await;
    }
}

/// Silence before an answer is like a connection that failed; silence in the middle of one ends it.
fn silence(options: &Options, beginning: bool) -> Failure {
    let (what, limit) = match beginning {
        true => ("the beginning of the answer", options.first_byte_timeout),
        false => ("the next piece of the answer", options.idle_timeout),
    };
    Failure {
        error: named(options.style, Error::timeout(what, limit)),
        retry: beginning,
        wait: None,
    }
}

/// A connection that breaks in the middle of a stream is a stream without its end. One that breaks before is tried again.
fn interrupted(options: &Options, failure: Failure) -> Failure {
    if failure.retry || failure.error.code() != ErrorCode::ConnectionFailed {
        return failure;
    }
    let error = Error::new(
        ErrorCode::StreamInterrupted,
        "the connection broke before the answer ended",
    );
    Failure::fatal(named(options.style, error).because(&failure.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::client::options::tests::options;
    use crate::http::HttpTransport;
    use crate::style::Style;
    use futures_util::stream;
    use std::sync::{Arc, Mutex};

    const ANSWER: &str = r#"{"choices":[{"message":{"role":"assistant","content":"yes"}}]}"#;

    /// Answers 200 with these bodies, one after the other.
    struct Answers(Mutex<Vec<Result<Bytes>>>);

    #[async_trait::async_trait]
    impl HttpTransport for Answers {
        async fn send(&self, _: HttpRequest) -> Result<HttpResponse> {
            let body = self.0.lock().unwrap().remove(0);
            Ok(HttpResponse {
                status: 200,
                headers: Vec::new(),
                body: stream::iter([body]).boxed(),
            })
        }
    }

    fn client(bodies: Vec<Result<Bytes>>) -> crate::ClientBuilder {
        Client::builder("http://127.0.0.1:9", Style::OpenAi, "m")
            .http_transport(Arc::new(Answers(Mutex::new(bodies))))
            .retry_base(Duration::ZERO)
    }

    #[tokio::test]
    async fn a_limit_of_silence_may_be_as_long_as_the_clock_cannot_tell() {
        let client = client(vec![Ok(ANSWER.into())])
            .first_byte_timeout(Duration::MAX)
            .idle_timeout(Duration::MAX);
        let result = client.build().unwrap().run("hi").await.unwrap();
        assert_eq!(result.text, "yes");
    }

    #[tokio::test]
    async fn a_connection_that_breaks_behind_the_headers_is_tried_again() {
        let broken = Err(Error::new(ErrorCode::ConnectionFailed, "reset"));
        let client = client(vec![broken, Ok(ANSWER.into())]).build().unwrap();
        let result = client.run("hi").await.unwrap();
        assert_eq!(result.text, "yes");
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_never_ends_is_read_as_far_as_it_came() {
        let options = options(Style::OpenAi);
        let letter = |()| async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Some((Ok(Bytes::from_static(b"x")), ()))
        };
        let mut body = Body {
            options: &options,
            pieces: stream::unfold((), letter).boxed(),
            first_byte: None,
            room: MAX_ANSWER_BYTES,
        };
        let begun = Instant::now();
        assert_eq!(body.head(MAX_ERROR_BYTES).await.len(), 2);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test]
    async fn a_stream_without_end_has_an_end() {
        let options = options(Style::OpenAi);
        let piece = Bytes::from(vec![b' '; 1024 * 1024]);
        let pieces = stream::iter(std::iter::repeat_n(Ok(piece), 1000)).boxed();
        let mut body = Body {
            options: &options,
            pieces,
            first_byte: None,
            room: MAX_STREAM_BYTES,
        };
        let mut read = 0;
        let failure = loop {
            match body.next().await {
                Ok(piece) => read += piece.unwrap().len(),
                Err(failure) => break failure,
            }
        };
        assert_eq!(read, MAX_STREAM_BYTES);
        assert_eq!(failure.error.code(), ErrorCode::LimitExceeded);
    }
}
