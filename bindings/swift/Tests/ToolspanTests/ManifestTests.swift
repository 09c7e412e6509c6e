import Foundation
import Testing

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

@Test func everyOperationIsCalled() throws {
    let folder = package.appendingPathComponent("Sources/Toolspan")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    let text = try files.filter { $0.pathExtension == "swift" }.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
    // The three closes are one line, see `Handle`.
    let closes = ["toolkit.close", "client.close", "conversation.close"]
    let operations = manifest["operations"]?.objectValue?.keys ?? []
    #expect(operations.count > 20)
    #expect(operations.filter { !closes.contains($0) && !text.contains("\"\($0)\"") } == [])
}

@Test func theLibraryIsTheOneThisWasWrittenFor() {
    #expect(manifest["abiVersion"]?.intValue == Int(ABI.version))
    #expect(manifest["schemaHash"]?.stringValue.flatMap { UInt64($0, radix: 16) } == ABI.schemaHash)
}
