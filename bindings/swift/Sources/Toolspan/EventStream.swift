/// The events of one run (SPEC 7.5). The run starts when the first is asked for; leaving the loop, or cancelling its task, ends
/// the run and closes its connection. A reader that is slow slows the sender. There is one run, so it is read once: a second
/// loop goes on where the first ended, which is nowhere.
public struct EventStream: AsyncSequence, Sendable {
    public typealias Element = Event

    let reader: EventReader

    init(client: Client, toolkit: Toolkit?, args: @escaping @Sendable () throws -> JSONObject) {
        reader = EventReader(client, toolkit, args)
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(loop: Loop(reader: reader))
    }

    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        let loop: Loop

        public mutating func next() async throws -> Event? {
            try await loop.reader.next()
        }
    }

    /// One loop over the events; when it is left, it is dropped.
    final class Loop: Sendable {
        let reader: EventReader

        init(reader: EventReader) {
            self.reader = reader
        }

        deinit {
            reader.leave()
        }
    }
}

/// Pulls the events of a run in batches.
final class EventReader: Sendable {
    private struct Running {
        let operation: Operation
        /// Serves the calls of the run, and knows how it ended.
        let ended: Task<JSONValue, any Error>
    }

    private struct State {
        var running: Running?
        /// The next event is the last.
        var batch: [Event] = []
        var atEnd = false
        var left = false
    }

    private let state = Locked(State())
    private let client: Client
    private let toolkit: Toolkit?
    private let args: @Sendable () throws -> JSONObject

    init(_ client: Client, _ toolkit: Toolkit?, _ args: @escaping @Sendable () throws -> JSONObject) {
        self.client = client
        self.toolkit = toolkit
        self.args = args
    }

    func next() async throws -> Event? {
        while true {
            let (event, atEnd) = state.with { ($0.batch.popLast(), $0.atEnd) }
            if let event { return event }
            if Task.isCancelled {
                leave()
                throw ToolspanError.cancelled
            }
            guard let running = try running() else { return nil }
            if atEnd {
                _ = try await running.ended.value
                state.with { $0.left = true }
                return nil
            }
            try await fill(running)
        }
    }

    /// Ends the run, whether it had started or not.
    func leave() {
        let running = state.with { state in
            state.left = true
            return state.running
        }
        running?.operation.cancel()
    }

    /// The run, started when it was not; nil when it was left.
    private func running() throws -> Running? {
        try state.with { state in
            if state.left { return nil }
            if let running = state.running { return running }
            let operation = try client.handle.pump.start("client.stream", args())
            let running = Running(operation: operation, ended: Task { try await operation.outcome() })
            state.running = running
            return running
        }
    }

    private func fill(_ running: Running) async throws {
        let operation = running.operation
        do {
            let json = try await client.handle.pump.run("stream.next", ["stream": .number(JSONNumber(operation.number))])
            let events = try [Event](json: json["items"] ?? [])
            let thrown = operation.thrown.with { $0 }
            state.with { state in
                state.batch = events.reversed().map { event in
                    if case .done(let result) = event { .done(result.because(thrown)) } else { event }
                }
                state.atEnd = json["end"] == true
            }
        } catch {
            // A stream that has ended is not known any more; how it ended says more than that.
            leave()
            _ = try await running.ended.value
            throw error
        }
    }
}
