import Foundation
import Testing
import ToolspanNative

@testable import Toolspan

private let limit = TimeLimitTrait.timeLimit(.minutes(1))

private struct Weak<Object: AnyObject> {
    weak var object: Object?
}

private let closedError = ToolspanError(code: .closed, message: "closed", retryable: false)

/// A tool is entered by a task, and a task may be late: here the end of the call is there before the task that serves begins.
@Test(limit, arguments: [[Toolspan.Operation.Delivery.callCancelled(7), .done([:])], [.failed(closedError)]])
func aFunctionIsNotEnteredOnceNobodyWaits(_ end: [Toolspan.Operation.Delivery]) async throws {
    let operation = Toolspan.Operation(1, try NativeEngine(options: "{}"))
    let entered = Shared(false)
    var function = Weak<FunctionBox>()
    do {
        let tool = Tool("t") { () -> String in
            entered.with { $0 = true }
            return "late"
        }
        let box = FunctionBox(.tool(tool))
        function.object = box
        operation.deliver(.call(HostCall(number: 7, kind: .toolExecute, box: box, payload: [:])))
    }
    end.forEach(operation.deliver)
    _ = try? await operation.outcome()
    // The task that served has ended, and nothing can enter the tool any more.
    #expect(await eventually { function.object == nil })
    #expect(entered.with { $0 } == false)
}

@Test(limit) func theSystemsHTTPStackFollowsNoRedirect() async throws {
    let engine = try Engine()
    let elsewhere = try await Scenario(says("leaked"))
    let target = elsewhere.servers["llm"]?["main"]?["baseUrl"] ?? .null
    let scenario = try await Scenario([
        "llm": ["main": ["style": "openai", "replies": [["status": 307, "headers": ["location": target], "json": [:]]]]]
    ])
    let client = try scenario.client(engine) {
        $0.apiKey = "sk-marker"
        $0.httpClient = URLSessionHTTPClient()
    }
    let error = await failure { try await client.run("go") }
    #expect(error?.httpStatus == 307)
    #expect(try await scenario.seen()["llm"]?["main"]?["requests"]?.arrayValue?.count == 1)
    #expect(try await elsewhere.seen()["llm"]?["main"]?["requests"]?.arrayValue?.count == 0)
    #expect(await engine.close())
}

/// Refuses the answer that opens a body, as it happens when the operation is cancelled meanwhile.
private final class Refusing: NativeEngine, @unchecked Sendable {
    let last = Shared<UInt64>(0)

    override func submit(opId: UInt64, request: String) throws {
        last.with { $0 = opId }
        try super.submit(opId: opId, request: request)
    }

    override func respond(callId: UInt64, reply: String) throws {
        guard reply.contains(#""stream""#) else { return try super.respond(callId: callId, reply: reply) }
        cancel(opId: last.with { $0 })
        throw Refusal.Refused(record: "{}")
    }
}

/// An answer whose body never ends by itself.
private struct Endless: HTTPClient {
    let ended = Shared(0)

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        let (body, pieces) = AsyncThrowingStream.makeStream(of: Data.self)
        pieces.onTermination = { _ in ended.with { $0 += 1 } }
        return HTTPResponse(status: 200, headers: [HTTPHeader(name: "content-type", value: "text/event-stream")], body: body)
    }
}

@Test(limit) func aBodyThatTheLibraryNeverLearntOfIsClosed() async throws {
    let engine = Engine(Pump(try Refusing(options: Engine.options().text), log: nil))
    let endless = Endless()
    var options = ClientOptions(baseURL: "http://127.0.0.1:9", style: .openAI, model: "m")
    (options.apiKey, options.httpClient) = ("k", endless)
    let client = try Client(options, engine: engine)
    #expect(await failure { try await client.run("go") }?.code == .cancelled)
    #expect(await eventually { endless.ended.with { $0 } == 1 })
    // The client still has its transport.
    withExtendedLifetime(client) {}
    #expect(await engine.close())
}

@Test(limit) func aBodyEndsWithItsOperation() async throws {
    let bodies = HTTPBodies()
    let endless = Endless()
    #expect(try await bodies.send([:], with: endless, as: 3)["stream"] == 3)
    _ = try await bodies.send([:], with: endless, as: 4)
    bodies.close(3)
    #expect(await eventually { endless.ended.with { $0 } == 1 })
    bodies.end()
    #expect(await eventually { endless.ended.with { $0 } == 2 })
    // One that comes after the end is closed at once.
    await #expect(throws: Unwanted.self) { try await bodies.send([:], with: endless, as: 5) }
    #expect(await eventually { endless.ended.with { $0 } == 3 })
}

/// Says something that cannot be read, once it is told to.
private final class Garbled: NativeEngine, @unchecked Sendable {
    let text = Shared<String?>(nil)

    override func poll(timeoutMs: UInt64, max: UInt32) -> String? {
        let events = super.poll(timeoutMs: timeoutMs, max: max)
        return text.with { $0 } ?? events
    }
}

@Test(limit, arguments: ["[{", "{}", #"[{"type":"done"}]"#])
func whatCannotBeReadFailsWhatWaits(_ text: String) async throws {
    let native = try Garbled(options: Engine.options().text)
    let engine = Engine(Pump(native, log: nil))
    let (entered, enter) = AsyncStream.makeStream(of: Void.self)
    let waits = Tool("waits") { () -> String in
        enter.yield()
        try await Task.sleep(nanoseconds: 1_000_000_000_000)
        return "late"
    }
    let toolkit = try await Toolkit(tools: [waits], engine: engine)
    let codes = Shared<[ErrorCode?]>([])
    func execute() {
        Task {
            let error = await failure { try await toolkit.execute("waits") }
            codes.with { $0.append(error?.code) }
        }
    }
    execute()
    for await _ in entered { break }
    native.text.with { $0 = text }
    execute()
    try #require(await eventually { codes.with { $0.count } == 2 })
    #expect(codes.with { $0 } == [.internal, .internal])
    #expect(await failure { try await toolkit.execute("waits") }?.code == .closed)
}

@Test(limit) func aSinkThatBlocksHoldsUpNobody() async throws {
    let (log, metric) = (Gate(), Gate())
    let engine = try Engine(log: { _ in log.enter() })
    let other = try Engine()
    let texts = Shared<[String]>([])
    for engine in [engine, other] {
        let scenario = try await Scenario(oneCall("t", [:], "so be it"))
        let client = try scenario.client(engine) { if engine === other { $0.onMetric = { _ in metric.enter() } } }
        Task {
            let toolkit = try await Toolkit(mcpConfig: gone, tools: [Tool("t") { "x" }], engine: engine)
            let text = try await client.run("go", toolkit: toolkit).text
            texts.with { $0.append(text) }
        }
    }
    #expect(await eventually { log.entered && metric.entered })
    #expect(await eventually { texts.with { $0 } == ["so be it", "so be it"] })
    log.open()
    metric.open()
    #expect(await engine.close())
    #expect(await other.close())
}

@Test(limit) func sinksThatLagBehindMissWhatIsTooMuchAndHearSo() async {
    let gate = Gate()
    let records = Shared<[LogRecord]>([])
    let calls = Shared(0)
    let sinks = Sinks(log: { record in records.with { $0.append(record) } })
    sinks.put { gate.enter() }
    #expect(await eventually { gate.entered })
    for _ in 0..<Sinks.limit + 5 { sinks.put { calls.with { $0 += 1 } } }
    gate.open()
    #expect(sinks.close(.now() + 20))
    #expect(calls.with { $0 } == Sinks.limit)
    #expect(records.with { $0.map(\.message) } == ["5 log and metric events were dropped because the program's sinks lag behind"])
    #expect(records.with { $0.map(\.level) } == [.warn])
}

@Test(limit) func aCloseKeepsItsLimitWhateverIsUnderWay() async throws {
    let gate = Gate()
    let told = Shared(0)
    let engine = try Engine(log: { _ in
        told.with { $0 += 1 }
        gate.enter()
    })
    let ends = Shared<[String: Bool]>([:])
    func close(_ name: String, _ timeoutMs: Int) {
        Task {
            let ended = await engine.close(timeoutMs: timeoutMs)
            ends.with { $0[name] = ended }
        }
    }
    let made = Shared(0)
    for _ in 0..<3 {
        Task {
            _ = try await Toolkit(mcpConfig: gone, engine: engine)
            made.with { $0 += 1 }
        }
    }
    try #require(await eventually { made.with { $0 } == 3 && gate.entered })
    close("long", .max)
    close("short", 10)
    close("negative", -1)
    #expect(await eventually { ends.with { $0 } == ["short": false, "negative": false] })
    gate.open()
    #expect(await eventually { ends.with { $0["long"] } == true })
    // What was not told in time never is.
    #expect(told.with { $0 } == 1)
}

/// Hears of the end late.
private final class Stuck: NativeEngine, @unchecked Sendable {
    let gate = Gate()

    override func poll(timeoutMs: UInt64, max: UInt32) -> String? {
        let text = super.poll(timeoutMs: timeoutMs, max: max)
        if text == nil { gate.enter() }
        return text
    }
}

@Test(limit) func aCloseDoesNotWaitForThePumpBeyondItsLimit() async throws {
    let native = try Stuck(options: Engine.options().text)
    let engine = Engine(Pump(native, log: nil))
    let ended = Shared<Bool?>(nil)
    Task {
        let end = await engine.close(timeoutMs: 10)
        ended.with { $0 = end }
    }
    try #require(await eventually { ended.with { $0 } == false })
    native.gate.open()
    #expect(await engine.close(timeoutMs: 20_000))
}

@Test(limit) func aToolThatIsRefusedIsForgotten() async throws {
    final class Token: Sendable {}
    let engine = try Engine()
    let toolkit = try await Toolkit(tools: [Tool("t") { "first" }], engine: engine)
    func tool(_ name: String, _ token: inout Weak<Token>) -> Tool {
        let held = Token()
        token.object = held
        return Tool(name) { withExtendedLifetime(held) { "second" } }
    }
    var (taken, invalid, kept) = (Weak<Token>(), Weak<Token>(), Weak<Token>())
    #expect(try toolkit.register(tool("t", &taken)) == false)
    #expect(failure(ToolspanError.self) { try toolkit.register(tool("", &invalid)) }?.code == .invalidConfig)
    #expect(try toolkit.register(tool("u", &kept)))
    #expect(taken.object == nil)
    #expect(invalid.object == nil)
    #expect(try await toolkit.execute("u").output == "second")
    #expect(await engine.close())
}
