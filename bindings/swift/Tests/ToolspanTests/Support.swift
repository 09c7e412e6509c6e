import Foundation
import Testing

@testable import Toolspan

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The servers every test in every language talks to (`fixtures/README.md`). They end with this process.
final class Fixtures: Sendable {
    static let shared = Result { try Fixtures() }
    let control: String
    // Held open: the fixtures end when it closes.
    private let stdin = Pipe()

    private init() throws {
        let environment = ProcessInfo.processInfo.environment
        guard let program = environment["TOOLSPAN_FIXTURES"] else {
            throw Missing(description: "TOOLSPAN_FIXTURES does not name the program; build it with `cargo build -p toolspan-fixtures`")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["serve"]
        process.standardInput = stdin
        let stdout = Pipe()
        process.standardOutput = stdout
        try process.run()
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let piece = stdout.fileHandleForReading.availableData
            if piece.isEmpty { throw Missing(description: "the fixtures ended") }
            line += piece
        }
        control = try JSONValue(parsing: String(decoding: line, as: UTF8.self))["control"]?.stringValue ?? ""
    }

    func ask(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
        var request = URLRequest(url: URL(string: control + path)!)
        request.httpMethod = method
        request.httpBody = body.map { Data($0.text.utf8) }
        let (data, response) = try await URLSession.shared.data(for: request)
        let text = String(decoding: data, as: UTF8.self)
        guard (response as? HTTPURLResponse)?.statusCode ?? 0 < 300 else { throw Missing(description: "\(method) \(path): \(text)") }
        return text.isEmpty ? .null : try JSONValue(parsing: text)
    }
}

struct Missing: Error, CustomStringConvertible {
    let description: String
}

/// What the peers of one test do.
struct Scenario {
    let fixtures: Fixtures
    let servers: JSONValue

    init(_ script: JSONValue) async throws {
        fixtures = try Fixtures.shared.get()
        servers = try await fixtures.ask("POST", "/scenarios", script)
    }

    private var path: String { "/scenarios/\(servers["id"]?.stringValue ?? servers["id"]?.text ?? "")" }

    func wait(_ until: JSONValue) async throws {
        _ = try await fixtures.ask("POST", path + "/wait", ["until": until])
    }

    func open(_ gate: String) async throws {
        _ = try await fixtures.ask("POST", path + "/gates/\(gate)")
    }

    func seen() async throws -> JSONValue {
        try await fixtures.ask("GET", path + "/seen")
    }

    /// A client of the model `main`.
    func client(_ engine: Engine, _ name: String = "main", _ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Client {
        let url = servers["llm"]?[name]?["baseUrl"]?.stringValue ?? ""
        return try Client(baseURL: url, style: .openAI, model: "m", engine: engine) {
            $0.apiKey = "k"
            configure(&$0)
        }
    }

    /// A configuration of the server `srv`.
    var mcp: MCPConfig {
        let server = servers["mcp"]?["srv"]
        let entry: JSONValue = server?["url"].map { ["url": $0] } ?? ["command": server?["command"] ?? .null]
        return .document(["mcpServers": ["srv": entry]])
    }
}

/// A configuration whose one server cannot be started, which is a log record.
let gone: MCPConfig = ["mcpServers": ["gone": ["command": ["/nonexistent/program"]]]]

/// An upstream that answers with this text.
func says(_ text: String) -> JSONValue {
    ["llm": ["main": ["style": "openai", "replies": [["text": .string(text)]]]]]
}

/// An upstream that asks for one call and then says `text`.
func oneCall(_ name: String, _ args: JSONValue = [:], _ text: String = "done") -> JSONValue {
    let call: JSONValue = ["id": "c1", "name": .string(name), "args": args]
    return ["llm": ["main": ["style": "openai", "replies": [["calls": [call]], ["text": .string(text)]]]]]
}

/// What a body throws, where it is of that type.
func failure<E: Error>(_: E.Type, _ body: () throws -> Any) -> E? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? E
    }
}

/// The same of what takes time, by the error of this package.
func failure(_ body: () async throws -> Any) async -> ToolspanError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? ToolspanError
    }
}

/// A value that several tasks touch.
typealias Shared = Locked

/// Whether something comes to pass in time.
func eventually(_ condition: () throws -> Bool) async rethrows -> Bool {
    let limit = ContinuousClock.now + .seconds(20)
    while try !condition() {
        if ContinuousClock.now > limit { return false }
        await Task.yield()
    }
    return true
}

/// Holds whoever enters until it is opened.
final class Gate: Sendable {
    private let state = Shared(false)
    private let held = DispatchSemaphore(value: 0)

    var entered: Bool { state.with { $0 } }

    func enter() {
        state.with { $0 = true }
        held.wait()
        held.signal()
    }

    func open() {
        held.signal()
    }
}
