import Foundation

/// A value behind a lock. The one place of this package that promises the compiler something it cannot see.
final class Locked<Value>: @unchecked Sendable {
    // Unchecked: `value` is touched only with `lock` held, and `with` lets nothing but its result out.
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    func with<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// Values from one thread to one task, in order. Taking is not ended by a cancelled task: what comes last says how it ended.
final class Mailbox<Value: Sendable>: Sendable {
    private struct State {
        var waiting: CheckedContinuation<Value, Never>?
        var values: [Value] = []
    }
    private let state = Locked(State())

    func put(_ value: Value) {
        let waiting = state.with { state in
            guard let waiting = state.waiting else {
                state.values.append(value)
                return nil as CheckedContinuation<Value, Never>?
            }
            state.waiting = nil
            return waiting
        }
        waiting?.resume(returning: value)
    }

    func take() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.with { state in
                guard !state.values.isEmpty else {
                    state.waiting = continuation
                    return nil as Value?
                }
                return state.values.removeFirst()
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
