import Foundation
import Testing

@testable import Toolspan

// The example of the README, word for word between the marks, with an endpoint and a configuration of the test's own.

private struct AddArgs: Decodable { var a: Int, b: Int }

@Test func theExampleOfTheReadmeRuns() async throws {
    let script: JSONValue = [
        "llm": ["main": ["style": "openai", "replies": [
            ["calls": [["id": "c1", "name": "add", "args": ["a": 2, "b": 2]]]], ["text": "4"], ["text": "6"],
        ]]]
    ]
    let scenario = try await Scenario(script)
    let config = FileManager.default.temporaryDirectory.appendingPathComponent("toolspan-\(UUID()).json")
    try Data("{}".utf8).write(to: config)
    defer { try? FileManager.default.removeItem(at: config) }
    let text = Shared("")
    func print(_ piece: String, terminator: String = "\n") { text.with { $0 += piece + terminator } }
    func Toolkit(mcpConfig: String, tools: [Tool]) async throws -> Toolspan.Toolkit {
        try await .init(mcpConfig: .path(config.path), tools: tools)
    }
    func Client(baseURL: String, style: Style, model: String) throws -> Toolspan.Client {
        try .init(baseURL: scenario.servers["llm"]?["main"]?["baseUrl"]?.stringValue ?? "", style: style, model: model) { $0.apiKey = "k" }
    }

    // begin
    let add = Tool("add", "Add two integers") { (args: AddArgs) in args.a + args.b }

    let toolkit = try await Toolkit(mcpConfig: "mcp.json", tools: [add])
    let client = try Client(baseURL: "https://api.example.com/v1", style: .openAI, model: "m")

    print(try await client.run("What is 2 + 2?", toolkit: toolkit).text)

    for try await event in client.stream("And 3 + 3?", toolkit: toolkit) {
        if case .text(let delta) = event { print(delta, terminator: "") }
    }
    try await toolkit.close()
    // end

    #expect(text.with { $0 } == "4\n6")
}

@Test func theReadmeHasThatExample() throws {
    let here = URL(fileURLWithPath: #filePath)
    let source = try String(contentsOf: here, encoding: .utf8)
    let body = source.components(separatedBy: "    // begin\n")[1].components(separatedBy: "    // end\n")[0]
    let lines = body.components(separatedBy: "\n").map { $0.hasPrefix("    ") ? String($0.dropFirst(4)) : $0 }
    let readme = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("README.md")
    let text = try String(contentsOf: readme, encoding: .utf8)
    #expect(text.contains(lines.joined(separator: "\n") + "```"))
    #expect(text.contains("struct AddArgs: Decodable { var a: Int, b: Int }"))
}
