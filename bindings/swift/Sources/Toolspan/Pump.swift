import Foundation
import ToolspanNative

/// The one thread that collects events. It runs no function of the program: calls go to the task of their operation, log
/// records and metric events to a queue of their own.
final class Pump: Sendable {
    private struct WeakBox {
        weak var box: FunctionBox?
    }

    private struct State {
        var last: UInt64 = 0
        var operations: [UInt64: Operation] = [:]
        var functions: [UInt64: WeakBox] = [:]

        mutating func next() -> UInt64 {
            last += 1
            return last
        }
    }

    private let native: any NativeEngineProtocol
    private let state = Locked(State())
    private let sinks: Sinks
    private let drained = DispatchGroup()

    convenience init(_ options: JSONObject, log: LogSink?) throws {
        // Before any function that uniffi wrote is called: those end the process where the library is another.
        if let mismatch = nativeMismatch { throw ToolspanError.mismatch("the library is another one: \(mismatch)") }
        guard abiVersion() == ABI.version, schemaHash() == ABI.schemaHash else {
            throw ToolspanError.mismatch(
                "the library has interface \(abiVersion()) (\(String(schemaHash(), radix: 16))), "
                    + "this package was written for \(ABI.version) (\(String(ABI.schemaHash, radix: 16)))")
        }
        self.init(try refusals { try NativeEngine(options: options.text) }, log: log)
    }

    init(_ native: any NativeEngineProtocol, log: LogSink?) {
        self.native = native
        sinks = Sinks(log: log)
        drained.enter()
        let thread = Thread { [weak self, native, drained] in
            var reason = ToolspanError(code: .closed, message: "the engine was closed", retryable: false)
            do {
                while let text = native.poll(timeoutMs: .max, max: 0) { try self?.deliver(text) }
            } catch {
                // Nothing the library says can be relied on any more.
                native.abandon()
                let message = "an event of the library could not be read: \(describe(error))"
                reason = ToolspanError(code: .internal, message: message, retryable: false)
            }
            self?.fail(reason)
            drained.leave()
        }
        thread.name = "toolspan"
        thread.start()
    }

    deinit {
        native.abandon()
    }

    /// Does an operation that takes no time.
    func call(_ op: String, _ args: JSONObject = [:]) throws -> JSONValue {
        try JSONValue(parsing: refusals { try native.call(request: request(op, args)) })
    }

    /// Starts an operation. It is known before it is submitted, so that its first event finds it.
    func start(_ op: String, _ args: JSONObject) throws -> Operation {
        let text = request(op, args)
        let operation = state.with { state in
            let operation = Operation(state.next(), native)
            state.operations[operation.number] = operation
            return operation
        }
        do {
            try refusals { try native.submit(opId: operation.number, request: text) }
        } catch {
            state.with { _ = $0.operations.removeValue(forKey: operation.number) }
            throw error
        }
        return operation
    }

    /// Runs an operation to its end; the cancelled task of the caller cancels it.
    func run(_ op: String, _ args: JSONObject) async throws -> JSONValue {
        try await finish { try self.start(op, args) }.result
    }

    /// The same, with what functions of the program threw meanwhile.
    func finish(_ start: () throws -> Operation) async throws -> (result: JSONValue, thrown: Operation.Thrown) {
        if Task.isCancelled { throw ToolspanError.cancelled }
        let operation = try start()
        // Runs `onCancel` at once in a task that was cancelled meanwhile.
        let result = try await withTaskCancellationHandler {
            try await operation.outcome()
        } onCancel: {
            operation.cancel()
        }
        return (result, operation.thrown.with { $0 })
    }

    /// Submits something whose end nobody waits for.
    func submitAndForget(_ op: String, _ args: JSONObject) {
        let number = state.with { $0.next() }
        // Refused by an engine that is closed, and with it everything of it.
        try? native.submit(opId: number, request: request(op, args))
    }

    func know(_ box: FunctionBox) -> UInt64 {
        state.with { state in
            let number = state.next()
            state.functions[number] = WeakBox(box: box)
            return number
        }
    }

    func forget(functions: [UInt64]) {
        state.with { state in
            for number in functions { state.functions.removeValue(forKey: number) }
        }
    }

    /// Blocks a thread of its own, not one of the tasks'. After it no event and no log record comes any more, whether the time
    /// sufficed or not.
    func close(timeoutMs: Int) async -> Bool {
        let timeoutMs = max(0, timeoutMs)
        return await withCheckedContinuation { continuation in
            Thread.detachNewThread { [native, drained, sinks] in
                let deadline = DispatchTime.now() + .milliseconds(timeoutMs)
                let ended = native.close(timeoutMs: UInt64(timeoutMs))
                let collected = drained.wait(timeout: deadline) == .success
                let told = sinks.close(deadline)
                continuation.resume(returning: ended && collected && told)
            }
        }
    }

    private func request(_ op: String, _ args: JSONObject) -> String {
        let request: JSONObject = ["op": .string(op), "args": .object(args)]
        return request.text
    }

    // On the thread of the pump.

    private func deliver(_ text: String) throws {
        guard let events = try JSONValue(parsing: text).arrayValue else { throw Unreadable(description: "events are a list") }
        for event in events { try deliver(event) }
    }

    private func deliver(_ event: JSONValue) throws {
        guard let type = event["type"]?.stringValue, let number = event["op"]?.unsigned else {
            throw Unreadable(description: "an event has a type and an operation")
        }
        switch type {
        case "host_call": hostCall(event, of: operation(number))
        case "host_call_cancelled":
            if let call = event["call"]?.unsigned { operation(number)?.deliver(.callCancelled(call)) }
        case "done": end(number, .done(event["result"] ?? .null))
        case "failed", "cancelled": end(number, .failed(record(event["error"] ?? .null)))
        default: break
        }
    }

    private func operation(_ number: UInt64) -> Operation? {
        state.with { $0.operations[number] }
    }

    private func end(_ number: UInt64, _ delivery: Operation.Delivery) {
        state.with { $0.operations.removeValue(forKey: number) }?.deliver(delivery)
    }

    /// Ends what still waits when no event will come any more.
    private func fail(_ error: ToolspanError) {
        let left = state.with { state in
            defer { state.operations = [:] }
            return state.operations.values.map { $0 }
        }
        for operation in left { operation.deliver(.failed(error)) }
    }

    private func hostCall(_ event: JSONValue, of operation: Operation?) {
        let call = event["call"]?.unsigned ?? 0
        let kind = event["kind"]?.stringValue ?? ""
        let payload = event["payload"] ?? .null
        let handler = event["handler"]?.unsigned
        let box = handler.flatMap { handler in state.with { $0.functions[handler]?.box } }
        if call == 0 { return notice(NoticeKind(rawValue: kind), box, payload, operation) }
        let hostCall = HostCall(number: call, kind: HostCallKind(rawValue: kind), box: box, payload: payload)
        if let operation {
            operation.deliver(.call(hostCall))
        } else {
            try? native.respond(callId: call, reply: HostCall.failure(NothingServes()).text)
        }
    }

    private func notice(_ kind: NoticeKind?, _ box: FunctionBox?, _ payload: JSONValue, _ operation: Operation?) {
        switch kind {
        case .log:
            if let record = try? LogRecord(json: payload) { sinks.put(log: record) }
        case .metric:
            guard case .metric(let sink)? = box?.function, let event = try? MetricEvent(json: payload) else { return }
            sinks.put { sink(event) }
        case .httpClose:
            if let stream = payload["stream"]?.unsigned { operation?.bodies.close(stream) }
        case nil:
            break
        }
    }

    private func record(_ json: JSONValue) -> ToolspanError {
        (try? ToolspanError(json: json)) ?? ToolspanError(record: json.text)
    }
}

extension JSONValue {
    var unsigned: UInt64? {
        if case .number(let number) = self { number.integer(UInt64.self) } else { nil }
    }
}

/// Why a text of the library is none of ours.
private struct Unreadable: Error, CustomStringConvertible {
    let description: String
}

/// What the library refuses, as the error of this package.
private func refusals<Result>(_ body: () throws -> Result) throws -> Result {
    do {
        return try body()
    } catch Refusal.Refused(let record) {
        throw ToolspanError(record: record)
    }
}
