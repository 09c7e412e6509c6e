import ToolspanNative

/// One operation that was submitted: its host calls are served, beside each other, in tasks that inherit the caller's
/// task-local values and priority; it ends with the library's one terminal event.
final class Operation: Sendable {
    enum Delivery: Sendable {
        case call(HostCall)
        case callCancelled(UInt64)
        case metric(MetricSink, MetricEvent)
        case done(JSONValue)
        case failed(ToolspanError)
    }

    /// What functions of the program threw.
    struct Thrown: Sendable {
        var byHostCall: [UInt64: any Error] = [:]
        var byToolCall: [String: any Error] = [:]
        var first: (any Error)? { byHostCall.min { $0.key < $1.key }?.value }
    }

    let number: UInt64
    let thrown = Locked(Thrown())
    private let native: NativeEngine
    private let mailbox = Mailbox<Delivery>()

    init(_ number: UInt64, _ native: NativeEngine) {
        self.number = number
        self.native = native
    }

    func deliver(_ delivery: Delivery) {
        mailbox.put(delivery)
    }

    /// Asks the library to stop it, which ends it with `cancelled`.
    func cancel() {
        native.cancel(opId: number)
    }

    /// Serves until the end. To be called once; a cancelled task changes nothing here, see ``Pump/run(_:_:)``.
    func outcome() async throws -> JSONValue {
        var serving: [UInt64: Task<Void, Never>] = [:]
        defer { for task in serving.values { task.cancel() } }
        while true {
            switch await mailbox.take() {
            case .call(let call):
                serving[call.number] = Task { await self.serve(call) }
            case .callCancelled(let number):
                serving.removeValue(forKey: number)?.cancel()
            case .metric(let sink, let event):
                sink(event)
            case .done(let result):
                return result
            case .failed(var error):
                if let call = error.hostCall { error.cause = thrown.with { $0.byHostCall[UInt64(call)] } }
                if error.code == .cancelled, error.cause == nil { error.cause = CancellationError() }
                throw error
            }
        }
    }

    private func serve(_ call: HostCall) async {
        let reply: JSONValue
        do {
            reply = ["ok": try await call.answer()]
        } catch {
            thrown.with { thrown in
                thrown.byHostCall[call.number] = error
                if let id = call.payload["callId"]?.stringValue { thrown.byToolCall[id] = error }
            }
            reply = HostCall.failure(error)
        }
        // Nobody waits for the answer of a call that was taken back.
        if Task.isCancelled { return }
        // Refused when the operation has ended meanwhile, or the library has failed the call itself.
        try? native.respond(callId: call.number, reply: reply.text)
    }
}
