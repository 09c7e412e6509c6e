import Foundation

/// Calls log and metric sinks of the program one after another, on a thread of their own: a slow sink delays only what it is
/// told itself.
final class Sinks: Sendable {
    typealias Call = @Sendable () -> Void

    /// How much the sinks may lag behind, as in the library itself (SPEC 9).
    static let limit = 8192

    private struct State {
        var waiting: ArraySlice<Call> = []
        var dropped = 0
        var working = false
        var muted = false
    }

    private let state = Locked(State())
    private let queue = DispatchQueue(label: "toolspan.sinks")
    private let work = DispatchGroup()
    private let log: LogSink?

    init(log: LogSink?) {
        self.log = log
    }

    /// Adds a call; beyond the limit it is dropped, and the log is told how many were.
    func put(_ call: @escaping Call) {
        let begins = state.with { state in
            if state.muted { return false }
            guard state.waiting.count < Self.limit else {
                state.dropped += 1
                return false
            }
            if let lost = lost(&state) { state.waiting.append(lost) }
            state.waiting.append(call)
            if state.working { return false }
            state.working = true
            work.enter()
            return true
        }
        if begins { queue.async { self.empty() } }
    }

    /// Tells the log record to the sink for it.
    func put(log record: LogRecord) {
        guard let log else { return }
        put { log(record) }
    }

    /// Waits until nothing is left to call; what is left at the deadline is forgotten. Says whether the time sufficed.
    func close(_ deadline: DispatchTime) -> Bool {
        let empty = work.wait(timeout: deadline) == .success
        state.with { state in
            state.muted = true
            state.waiting = []
            state.dropped = 0
        }
        return empty
    }

    private func empty() {
        while let call = next() { call() }
    }

    private func next() -> Call? {
        state.with { state in
            if let call = state.waiting.popFirst() ?? lost(&state) { return call }
            state.working = false
            work.leave()
            return nil
        }
    }

    /// What says how many calls were dropped, once there is room again.
    private func lost(_ state: inout State) -> Call? {
        let count = state.dropped
        guard count > 0, let log else { return nil }
        state.dropped = 0
        let message = "\(count) log and metric events were dropped because the program's sinks lag behind"
        return { log(LogRecord(level: .warn, target: "bridge", message: message)) }
    }
}
