import ToolspanNative

/// One operation that was submitted: its host calls are served, beside each other, in tasks that inherit the caller's
/// task-local values and priority; it ends with the library's one terminal event.
final class Operation: Sendable {
    enum Delivery: Sendable {
        case call(HostCall)
        case callCancelled(UInt64)
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
    /// Bodies of answers of the program's own HTTP client, which end with the operation.
    let bodies = HTTPBodies()
    private let native: any NativeEngineProtocol
    private let mailbox = Mailbox<Delivery>()
    /// The calls somebody waits for, as the pump knows it: a task may get to a call long after it was taken back.
    private let wanted = Locked<Set<UInt64>>([])

    init(_ number: UInt64, _ native: any NativeEngineProtocol) {
        self.number = number
        self.native = native
    }

    func deliver(_ delivery: Delivery) {
        wanted.with { wanted in
            switch delivery {
            case .call(let call): wanted.insert(call.number)
            case .callCancelled(let call): wanted.remove(call)
            case .done, .failed: wanted.removeAll()
            }
        }
        mailbox.put(delivery)
    }

    /// Whether somebody waits for the answer of that call.
    func wants(_ call: UInt64) -> Bool {
        wanted.with { $0.contains(call) }
    }

    /// Asks the library to stop it, which ends it with `cancelled`.
    func cancel() {
        native.cancel(opId: number)
    }

    /// Serves until the end. To be called once; a cancelled task changes nothing here, see ``Pump/run(_:_:)``.
    func outcome() async throws -> JSONValue {
        var serving: [UInt64: Task<Void, Never>] = [:]
        defer {
            for task in serving.values { task.cancel() }
            bodies.end()
        }
        while true {
            switch await mailbox.take() {
            case .call(let call):
                serving[call.number] = Task { await self.serve(call) }
            case .callCancelled(let number):
                serving.removeValue(forKey: number)?.cancel()
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
            reply = ["ok": try await call.answer(of: self)]
        } catch is Unwanted {
            return
        } catch {
            thrown.with { thrown in
                thrown.byHostCall[call.number] = error
                if let id = call.payload["callId"]?.stringValue { thrown.byToolCall[id] = error }
            }
            reply = HostCall.failure(error)
        }
        do {
            guard wants(call.number) else { throw Unwanted() }
            try native.respond(callId: call.number, reply: reply.text)
        } catch {
            // Taken back meanwhile, or refused: the library never learns of a body that this opened.
            bodies.close(call.number)
        }
    }
}

/// Nobody waits for the answer of a call any more.
struct Unwanted: Error {}
