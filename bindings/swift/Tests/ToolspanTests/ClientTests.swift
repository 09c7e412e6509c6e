import Foundation
import Testing

@testable import Toolspan

private struct AddArgs: ToolArguments {
    static let descriptions = ["a": "The first"]
    var a: Int
    var b: Int?
}

private let add = Tool("add", "Add two integers") { (args: AddArgs) in args.a + (args.b ?? 0) }

private struct Far: Error, CustomStringConvertible {
    let description = "too far"
}

@Test func aRunCallsTheProgramsToolAndGivesTheAnswer() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(oneCall("add", ["a": 1, "b": 2], "three"))
    let toolkit = try await Toolkit(tools: [add], engine: engine)
    let result = try await scenario.client(engine).run("1 + 2?", toolkit: toolkit)
    #expect(result.text == "three")
    #expect(result.status == .done)
    #expect(result.toolCalls.map(\.output) == ["3"])
    #expect(result.toolCalls.first?.args == ["a": 1, "b": 2])
    #expect(result.usage.totalTokens == 30)
    #expect(result.messages.map { $0["role"]?.stringValue } == ["user", "assistant", "tool", "assistant"])
    let sent = try await scenario.seen()["llm"]?["main"]?["requests"]?[0]?["body"]
    let body = try sent?.stringValue.map { try JSONValue(parsing: $0) } ?? sent
    #expect(body?["tools"]?[0]?["function"]?["parameters"]?.text == #"{"type":"object","properties":{"a":{"type":"integer","description":"The first"},"b":{"type":"integer"}},"required":["a"]}"#)
    #expect(await engine.close())
}

@Test func whatAToolThrewIsTheCauseOfItsResult() async throws {
    let engine = try Engine()
    let fails = Tool("fails") { () -> String in throw Far() }
    let scenario = try await Scenario(oneCall("fails", [:], "sorry"))
    let toolkit = try await Toolkit(tools: [fails, add], engine: engine)
    let result = try await scenario.client(engine).run("go", toolkit: toolkit)
    #expect(result.toolCalls.map(\.output) == ["too far"])
    #expect(result.toolCalls.first?.cause is Far)
    let direct = try await toolkit.execute("fails")
    #expect(direct.isError && direct.cause is Far)
    // Without the check of the core, so that it is the decoder that reads the arguments.
    var unchecked = ToolkitOptions()
    unchecked.tools = [add]
    unchecked.validateArguments = false
    let decoding = try await Toolkit(unchecked, engine: engine)
    #expect(try await decoding.execute("add", ["a": "one"]).output == "Invalid arguments. a: expected Int, found a text")
    #expect(try await decoding.execute("add", ["b": 1]).output == "Invalid arguments. a: is missing")
    #expect(await engine.close())
}

@Test func whatAHookThrewIsTheCauseOfTheError() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(says("never seen"))
    let client = try scenario.client(engine) { $0.hooks.beforeLLM = { _ in throw Far() } }
    let error = await failure { try await client.run("go") }
    #expect(error?.code == .hostFailed)
    #expect(error?.cause is Far)
    #expect(await engine.close())
}

@Test func aToolMayRunTheClientThatCalledItAndKnowsItsCall() async throws {
    let engine = try Engine()
    let scenario = try await Scenario([
        "llm": [
            "main": ["style": "openai", "replies": [["calls": [["id": "c1", "name": "ask", "args": [:]]]], ["text": "outer"]]],
            "sub": ["style": "openai", "replies": [["text": "inner"]]],
        ]
    ])
    let sub = try scenario.client(engine, "sub")
    let ask = Tool("ask") { "\(ToolCall.current?.id ?? "?") \(try await sub.run("?").text)" }
    let toolkit = try await Toolkit(tools: [ask], engine: engine)
    let result = try await scenario.client(engine).run("go", toolkit: toolkit)
    #expect(result.text == "outer")
    #expect(result.toolCalls.map(\.output) == ["c1 inner"])
    #expect(await engine.close())
}

private enum Local {
    @TaskLocal static var user = "nobody"
}

@Test func aToolSeesTheTaskLocalValuesOfItsCaller() async throws {
    let engine = try Engine()
    let toolkit = try await Toolkit(tools: [Tool("who") { Local.user }], engine: engine)
    @Sendable func who(_ name: String) async throws -> String {
        try await Local.$user.withValue(name) { try await toolkit.execute("who").output }
    }
    async let ann = who("ann")
    async let bob = who("bob")
    #expect(try await [ann, bob] == ["ann", "bob"])
    #expect(await engine.close())
}

@Test func aStreamGivesTheEventsOfTheRun() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(oneCall("add", ["a": 2], "so be it"))
    let toolkit = try await Toolkit(tools: [add], engine: engine)
    let stream = try scenario.client(engine).stream("go", toolkit: toolkit)
    // Nothing is sent before the first event is asked for.
    #expect(try engine.counters().openStreams == 0)
    var text = ""
    var told: [String] = []
    for try await event in stream {
        switch event {
        case .text(let delta): text += delta
        case .toolCall(let id, let name, let args): told.append("\(id) \(name) \(args)")
        case .toolResult(_, _, let output, let isError, _): told.append("\(output) \(isError)")
        case .done(let result): told.append(result.text)
        default: break
        }
    }
    #expect(text == "so be it")
    #expect(told == [#"c1 add {"a":2}"#, "2 false", "so be it"])
    for try await _ in stream { Issue.record("a stream is read once") }
    #expect(try engine.counters().openStreams == 0)
    #expect(await engine.close())
}

/// An upstream that says one word and then nothing more.
private let stalls: JSONValue = [
    "llm": ["main": ["style": "openai", "replies": [["sse": [["data": ["choices": [["index": 0, "delta": ["content": "Hel"]]]]], ["hang": true]]]]]]
]

@Test func leavingAStreamClosesItsConnection() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(stalls)
    let stream = try scenario.client(engine).stream("go")
    for try await _ in stream { break }
    try await scenario.wait(["llm": "main", "connections": 0])
    // The stream is still held, and there is nothing more of it.
    for try await _ in stream { Issue.record("the run was left") }
    #expect(await engine.close())
}

@Test func cancellingTheTaskOfALoopClosesItsConnection() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(stalls)
    let client = try scenario.client(engine)
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let loop = Task { for try await _ in client.stream("go") { start.yield() } }
    for await _ in started { break }
    loop.cancel()
    let error = await failure { try await loop.value }
    #expect(error?.code == .cancelled)
    try await scenario.wait(["llm": "main", "connections": 0])
    #expect(await engine.close())
}

@Test func optionsReachTheLibraryAndItsRefusalsHaveAPath() async throws {
    let engine = try Engine()
    let error = failure(ToolspanError.self) {
        try Client(baseURL: "http://127.0.0.1:9", style: Style(rawValue: "gopher"), model: "m", engine: engine)
    }
    #expect(error?.code == .invalidConfig)
    #expect(error?.path == "style")
    #expect(error.map { "\($0)".hasPrefix("invalid_config: style: ") } == true)
    let other = try await Toolkit(engine: Engine())
    let client = try Client(baseURL: "http://127.0.0.1:9", style: .openAI, model: "m", engine: engine) { $0.apiKey = "k" }
    #expect(await failure { try await client.run("go", toolkit: other) }?.path == "toolkit")
    #expect(await engine.close())
}

private actor Memory: ConversationStore {
    var kept: [String: JSONValue] = [:]
    func get(id: String) -> JSONValue? { kept[id] }
    func save(id: String, transcript: JSONValue) { kept[id] = transcript }
}

@Test func conversationsAreKeptInTheProgramsStore() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(["llm": ["main": ["style": "openai", "replies": [["text": "one"], ["text": "two"]]]]])
    let memory = Memory()
    let client = try scenario.client(engine) { $0.store = .custom(memory) }
    #expect(try await client.ask("1?", id: "x").conversationId == "x")
    #expect(await memory.kept["x"]?["messages"]?.arrayValue?.count == 2)
    let conversation = try client.conversation(id: "x")
    #expect(try await conversation.send("2?").text == "two")
    #expect(try await conversation.messages().count == 4)
    #expect(try await client.conversationStore().get(id: "x")?["messages"]?.arrayValue?.count == 4)
    try await conversation.reset()
    #expect(try await conversation.messages().isEmpty)
    try await conversation.close()
    try await conversation.close()
    #expect(await failure { try await conversation.send("3?") }?.code == .closed)
    #expect(await engine.close())
}

@Test func theSystemsHTTPStackCanCarryTheRequests() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(["llm": ["main": ["style": "openai", "replies": [["text": "carried"], ["text": "carried"]]]]])
    let client = try scenario.client(engine) { $0.httpClient = URLSessionHTTPClient() }
    #expect(try await client.run("go").text == "carried")
    var text = ""
    for try await event in client.stream("go") { if case .text(let delta) = event { text += delta } }
    #expect(text == "carried")
    #expect(await engine.close())
}

@Test func logRecordsAreThereWhenTheEngineIsClosed() async throws {
    let records = Shared<[LogRecord]>([])
    let engine = try Engine(log: { record in records.with { $0.append(record) } })
    _ = try await Toolkit(mcpConfig: gone, engine: engine)
    #expect(await engine.close())
    #expect(records.with { $0.filter { $0.level == .warn || $0.level == .error }.count } == 1)
}
