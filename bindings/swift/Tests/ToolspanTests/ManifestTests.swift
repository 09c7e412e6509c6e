import Foundation
import Testing
import ToolspanNative

@testable import Toolspan

/// What the core has and this package lacks, or the other way round, by name.
private func difference(_ ours: [String], _ manifest: JSONValue?, but: [String] = []) -> [String] {
    let theirs = (manifest?.arrayValue ?? []).compactMap(\.stringValue).filter { !but.contains($0) }
    return theirs.filter { !ours.contains($0) }.map { "missing: \($0)" } + ours.filter { !theirs.contains($0) }.map { "unknown: \($0)" }
}

private let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
private let manifest: JSONValue = {
    let file = package.deletingLastPathComponent().appendingPathComponent("api-manifest.json")
    return (try? String(contentsOf: file, encoding: .utf8)).flatMap { try? JSONValue(parsing: $0) } ?? .null
}()

/// The properties of a value, in the contract's spelling.
private func properties(_ value: Any) -> [String] {
    Mirror(reflecting: value).children.compactMap(\.label).map { $0 == "baseURL" ? "baseUrl" : $0 }
}

@Test func everyOptionIsThere() {
    let records = manifest["records"]
    let client = ClientOptions(baseURL: "", style: .openAI, model: "")
    #expect(difference(properties(client), records?["ClientOptions"]) == [])
    #expect(difference(properties(ToolkitOptions()), records?["ToolkitOptions"]) == [])
    #expect(difference(properties(Hooks()), records?["HookOptions"]) == [])
    #expect(difference(properties(RunOptions()), records?["Run"], but: ["client", "toolkit", "prompt", "id"]) == [])
}

@Test func everyOptionIsWritten() throws {
    let functions = Functions(try Engine().pump)
    var client = ClientOptions(baseURL: "u", style: .openAI, model: "m")
    client.apiKey = ""
    client.apiKeyEnv = ""
    client.systemPrompt = ""
    for path: WritableKeyPath<ClientOptions, Int?> in [
        \.maxTurns, \.maxToolConcurrency, \.maxToolOutputBytes, \.retries, \.retryBaseMs, \.maxRetryDelayMs, \.timeoutMs,
        \.firstByteTimeoutMs, \.idleTimeoutMs,
    ] { client[keyPath: path] = 1 }
    client.bodyTransform = { $0 }
    client.hooks.beforeLLM = { _ in nil }
    client.hooks.afterLLM = { _ in }
    client.hooks.beforeTool = { _ in nil }
    client.hooks.afterTool = { _ in nil }
    client.onError = { _ in nil }
    client.httpClient = URLSessionHTTPClient()
    client.store = "memory"
    client.onMetric = { _ in }
    let json = client.json(functions)
    #expect(difference(json.keys, manifest["records"]?["ClientOptions"]) == [])
    #expect(difference(json["hooks"]?.objectValue?.keys ?? [], manifest["records"]?["HookOptions"]) == [])
    var toolkit = ToolkitOptions()
    toolkit.mcpConfig = "mcp.json"
    toolkit.mcpConfigText = "{}"
    toolkit.validateArguments = true
    toolkit.timeoutMs = 1
    #expect(difference(toolkit.json(functions).keys, manifest["records"]?["ToolkitOptions"]) == [])
    let tool = Tool(name: "t", hints: Hints(readOnly: true, destructive: false, openWorld: false)) { .value(.object($0)) }
    #expect(difference(tool.json(functions).keys, manifest["records"]?["ToolSpec"]) == [])
    var run = RunOptions()
    (run.history, run.systemPrompt, run.model, run.maxTurns, run.timeoutMs) = ([], "", "", 1, 1)
    #expect(difference(run.json(functions).keys, manifest["records"]?["Run"], but: ["client", "toolkit", "prompt", "id"]) == [])
}

@Test func everyFieldOfARecordIsThere() {
    func keys<Key: CodingKey & CaseIterable>(_: Key.Type) -> [String] { Key.allCases.map(\.stringValue) }
    let records: [(String, [String])] = [
        ("ErrorRecord", keys(ToolspanError.CodingKeys.self)), ("Cause", keys(ErrorCause.CodingKeys.self)),
        ("ToolResult", keys(ToolResult.CodingKeys.self)), ("Hints", keys(Hints.CodingKeys.self)),
        ("ToolInfo", keys(ToolInfo.CodingKeys.self)), ("ServerStatus", keys(ServerStatus.CodingKeys.self)),
        ("InventoryTool", keys(ListedTool.CodingKeys.self)), ("Inventory", keys(Inventory.CodingKeys.self)),
        ("Loss", keys(Loss.CodingKeys.self)), ("Compiled", keys(Adaptation.CodingKeys.self)),
        ("Usage", keys(Usage.CodingKeys.self)), ("ToolCallRecord", keys(ToolCallRecord.CodingKeys.self)),
        ("RunResult", keys(RunResult.CodingKeys.self)), ("Counters", keys(Counters.CodingKeys.self)),
        ("BeforeLlm", keys(BeforeLLM.CodingKeys.self)), ("AfterLlm", keys(AfterLLM.CodingKeys.self)),
        ("BeforeTool", keys(BeforeTool.CodingKeys.self)), ("AfterTool", keys(AfterTool.CodingKeys.self)),
        ("RequestFailure", keys(RequestFailure.CodingKeys.self)), ("LogRecord", keys(LogRecord.CodingKeys.self)),
    ]
    for (name, ours) in records { #expect(difference(ours, manifest["records"]?[name]) == [], "\(name)") }
}

@Test func everyEventAndCodeIsThere() {
    func keys(_ name: String) -> JSONValue? { manifest["choices"]?[name]?.objectValue.map { .array($0.keys.map(JSONValue.string)) } }
    #expect(difference(Event.Tag.allCases.map(\.rawValue), keys("Event")) == [])
    #expect(difference(MetricEvent.Tag.allCases.map(\.rawValue), keys("MetricEvent")) == [])
    #expect(difference(ContentPart.Tag.allCases.map(\.rawValue), keys("ContentPart")) == [])
    #expect(difference(ErrorCode.allCases.map(\.rawValue), manifest["errorCodes"]) == [])
    let kinds = HostCallKind.allCases.map(\.rawValue) + NoticeKind.allCases.map(\.rawValue)
    #expect(difference(kinds, manifest["hostCalls"]) == [])
}

/// Writes down which operations it is asked for.
private final class Recorder: NativeEngine, @unchecked Sendable {
    let operations = Shared<Set<String>>([])

    override func call(request: String) throws -> String {
        note(request)
        return try super.call(request: request)
    }

    override func submit(opId: UInt64, request: String) throws {
        note(request)
        try super.submit(opId: opId, request: request)
    }

    private func note(_ request: String) {
        guard let op = (try? JSONValue(parsing: request))?["op"]?.stringValue else { return }
        operations.with { _ = $0.insert(op) }
    }
}

@Test func everyOperationIsCalled() async throws {
    let native = try Recorder(options: Engine.options().text)
    let engine = Engine(Pump(native, log: nil))
    let scenario = try await Scenario(["llm": ["main": ["style": "openai", "replies": [["text": "ok"]], "then": "repeat"]]])
    let toolkit = try await Toolkit(tools: [Tool("t") { "x" }], engine: engine)
    #expect(try toolkit.tools().map(\.name) == ["t"])
    #expect(try toolkit.get("t")?.name == "t")
    #expect(try toolkit.status().isEmpty)
    #expect(try toolkit.adapt(.openAI).tools.count == 1)
    #expect(try toolkit.register(Tool("u") { "y" }))
    #expect(try await toolkit.execute("u").output == "y")
    #expect(try await engine.listMCPTools([:]).tools.isEmpty)
    let client = try scenario.client(engine)
    #expect(try await client.run("go").text == "ok")
    #expect(try await client.ask("go", id: "a").text == "ok")
    for try await _ in client.stream("go") {}
    let conversation = try client.conversation()
    #expect(try await conversation.send("go").text == "ok")
    #expect(try await conversation.messages().count == 2)
    try await conversation.reset()
    try await conversation.close()
    let transcript = try await client.conversationStore().get(id: "a") ?? .null
    try await client.conversationStore().save(id: "b", transcript: transcript)
    #expect(try client.metrics().contains("toolspan_"))
    #expect(try engine.counters().openClients == 1)
    #expect(try engine.version().isEmpty == false)
    try await client.close()
    try await toolkit.close()
    #expect(difference(native.operations.with { $0.sorted() }, manifest["operations"]?.objectValue.map { .array($0.keys.map(JSONValue.string)) }) == [])
    #expect(await engine.close())
}

@Test func theLibraryIsTheOneThisWasWrittenFor() {
    #expect(manifest["abiVersion"]?.intValue == Int(ABI.version))
    #expect(manifest["schemaHash"]?.stringValue.flatMap { UInt64($0, radix: 16) } == ABI.schemaHash)
}
