//! Whether and when a failed request is tried again (SPEC 7.6). Pure: the caller brings the clock and the chance.

use std::time::{Duration, SystemTime};

use super::options::RetryPolicy;

/// Statuses that are tried again without being asked to.
const RETRYABLE: [u16; 8] = [408, 409, 429, 500, 502, 503, 504, 529];

/// What to do about a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try again after this long.
    Wait(Duration),
    /// The provider asks for more patience than allowed.
    TooLong(Duration),
    /// The failure stands.
    GiveUp,
}

pub(crate) fn is_retryable(policy: &RetryPolicy, status: u16) -> bool {
    RETRYABLE.contains(&status) || policy.statuses.contains(&status)
}

/// `attempt` counts from 0; `asked` is what `Retry-After` says; `jitter` is at most 99 ms.
pub(crate) fn next(
    policy: &RetryPolicy,
    attempt: u32,
    retry: bool,
    asked: Option<Duration>,
    jitter: Duration,
) -> Next {
    if !retry {
        return Next::GiveUp;
    }
    match asked {
        // Whether attempts are left does not matter to somebody who should come back later.
        Some(asked) if asked > policy.max_delay => Next::TooLong(asked),
        _ if attempt >= policy.retries => Next::GiveUp,
        Some(asked) => Next::Wait(asked),
        None => {
            let factor = 2u32.saturating_pow(attempt);
            let backoff = policy.base.saturating_mul(factor).saturating_add(jitter);
            Next::Wait(backoff.min(policy.max_delay))
        }
    }
}

/// Reads `Retry-After`: whole seconds or an HTTP date. A date that has passed means now; anything else says nothing.
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are still a wait, a very long one.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = parse_date(value)?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// The day of the week says nothing that the date does not, so a wrong one is no reason to ignore it.
fn parse_date(value: &str) -> Option<SystemTime> {
    if let Ok(date) = httpdate::parse_http_date(value) {
        return Some(date);
    }
    let (_, rest) = value.split_once(", ")?;
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        .iter()
        .find_map(|day| httpdate::parse_http_date(&format!("{day}, {rest}")).ok())
}

/// 0 to 99 ms, so that many clients that failed together do not return together.
pub(crate) fn jitter() -> Duration {
    use std::hash::{BuildHasher, RandomState};
    Duration::from_millis(RandomState::new().hash_one(0u8) % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> RetryPolicy {
        RetryPolicy {
            retries: 2,
            base: Duration::from_millis(500),
            max_delay: Duration::from_secs(60),
            statuses: [418].into(),
        }
    }

    const JITTER: Duration = Duration::from_millis(7);

    #[test]
    fn the_delay_doubles_and_carries_the_jitter() {
        let wait = |attempt| next(&policy(), attempt, true, None, JITTER);
        assert_eq!(wait(0), Next::Wait(Duration::from_millis(507)));
        assert_eq!(wait(1), Next::Wait(Duration::from_millis(1007)));
        assert_eq!(wait(2), Next::GiveUp);
    }

    #[test]
    fn a_backoff_never_exceeds_the_ceiling() {
        let patient = RetryPolicy {
            retries: u32::MAX,
            ..policy()
        };
        let wait = next(&patient, 4_000, true, None, JITTER);
        assert_eq!(wait, Next::Wait(Duration::from_secs(60)));
    }

    #[test]
    fn what_the_provider_asks_for_wins_up_to_the_ceiling() {
        let ask = |seconds, attempt| {
            let asked = Some(Duration::from_secs(seconds));
            next(&policy(), attempt, true, asked, JITTER)
        };
        assert_eq!(ask(3, 0), Next::Wait(Duration::from_secs(3)));
        assert_eq!(ask(60, 0), Next::Wait(Duration::from_secs(60)));
        assert_eq!(ask(61, 0), Next::TooLong(Duration::from_secs(61)));
        assert_eq!(ask(61, 2), Next::TooLong(Duration::from_secs(61)));
        assert_eq!(ask(3, 2), Next::GiveUp);
    }

    #[test]
    fn what_is_not_retryable_is_not_tried_again() {
        let asked = Some(Duration::from_secs(3));
        assert_eq!(next(&policy(), 0, false, asked, JITTER), Next::GiveUp);
    }

    #[test]
    fn statuses_of_the_caller_add_to_ours() {
        let retried: Vec<u16> = [400, 401, 404, 408, 409, 418, 422, 429, 500, 503, 529]
            .into_iter()
            .filter(|status| is_retryable(&policy(), *status))
            .collect();
        assert_eq!(retried, [408, 409, 418, 429, 500, 503, 529]);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2026 07:27:30 GMT").unwrap();
        let read = |value| retry_after(value, now);
        assert_eq!(read("30"), Some(Duration::from_secs(30)));
        assert_eq!(read(" 0 "), Some(Duration::ZERO));
        assert_eq!(
            read("99999999999999999999999"),
            Some(Duration::from_secs(u64::MAX))
        );
        assert_eq!(
            read("Wed, 21 Oct 2026 07:28:00 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            read("Fri, 21 Oct 2026 07:28:00 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(read("Wed, 21 Oct 2026 07:20:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("-1"), None);
        assert_eq!(read("soon"), None);
        assert_eq!(read(""), None);
    }
}
