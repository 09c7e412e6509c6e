import Foundation

/// Sees the whole body of a request and may give the one to send; nil leaves it (SPEC 7.2).
public typealias BodyTransform = @Sendable (JSONObject) async throws -> JSONObject?
/// May turn a failed request into a retry or an end; nil leaves the decision (SPEC 7.6).
public typealias ErrorPolicy = @Sendable (RequestFailure) async throws -> ErrorDecision?
/// Receives metric events (SPEC 10). All sinks of an engine are called one after another; nothing waits for them, and what is
/// told while they lag behind by 8192 is dropped.
public typealias MetricSink = @Sendable (MetricEvent) -> Void
/// Receives log records (SPEC 10), as a ``MetricSink`` does its events; a record says how many were dropped.
public typealias LogSink = @Sendable (LogRecord) -> Void
/// Before a request; may replace parts of it, nil leaves it (SPEC 7.4). What a hook throws ends the run, and is the cause of its
/// error.
public typealias BeforeLLMHook = @Sendable (BeforeLLM) async throws -> RequestChange?
/// After an answer (SPEC 7.4).
public typealias AfterLLMHook = @Sendable (AfterLLM) async throws -> Void
/// Before a call; may decide about it, nil lets it be (SPEC 7.4).
public typealias BeforeToolHook = @Sendable (BeforeTool) async throws -> CallChange?
/// May replace the result of a call (SPEC 7.4).
public typealias AfterToolHook = @Sendable (AfterTool) async throws -> ToolResult?

/// What `beforeLLM` may replace: the messages for good, tools and model for one turn.
public struct RequestChange: Codable, Sendable {
    /// Messages in the place of all there are, in the dialect of the client.
    public var messages: [JSONObject]?
    /// Declarations of tools, in the dialect of the client.
    public var tools: [JSONObject]?
    /// Name of the model.
    public var model: String?

    /// What is nil stays as it is.
    public init(messages: [JSONObject]? = nil, tools: [JSONObject]? = nil, model: String? = nil) {
        self.messages = messages
        self.tools = tools
        self.model = model
    }
}

/// What `beforeTool` may decide: other arguments, or a result in the place of the call.
public enum CallChange: Sendable {
    /// Executes the call with these arguments.
    case args(JSONObject)
    /// Is told to the model; the tool is not executed.
    case result(ToolResult)
}

/// What `onError` may decide.
public enum ErrorDecision: String, Codable, Sendable {
    /// Sends the request again, as far as `retries` go.
    case retry
    /// Ends the run with the error.
    case fail
}

/// Conversations of the program's own (SPEC 7.7).
public protocol ConversationStore: Sendable {
    /// What was saved under the id, or a bare list of messages; nil when there is nothing.
    func get(id: String) async throws -> JSONValue?
    /// `transcript` is `{version, style, messages}`, to be given back as it is.
    func save(id: String, transcript: JSONValue) async throws
}

/// Where conversations are kept: `"memory"`, `"file:DIR"`, or in a store of the program.
public enum StoreOption: Sendable, ExpressibleByStringLiteral {
    /// `memory`, or `file:DIR`.
    case named(String)
    /// A store of the program.
    case custom(any ConversationStore)

    /// A store of the library, by name.
    public init(stringLiteral name: String) {
        self = .named(name)
    }
}

/// An MCP configuration: the path of a file, or the document (SPEC 3.1).
public enum MCPConfig: Sendable, ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral {
    /// The path of a file.
    case path(String)
    /// The document, `{"mcpServers": {...}}`.
    case document(JSONObject)

    /// The path of a file.
    public init(stringLiteral path: String) {
        self = .path(path)
    }

    /// The document.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var document = JSONObject()
        for (key, value) in elements { document[key] = value }
        self = .document(document)
    }
}

/// A function of the program, as an option names it.
enum Function: Sendable {
    case tool(Tool)
    case beforeLLM(BeforeLLMHook)
    case afterLLM(AfterLLMHook)
    case beforeTool(BeforeToolHook)
    case afterTool(AfterToolHook)
    case bodyTransform(BodyTransform)
    case onError(ErrorPolicy)
    case store(any ConversationStore)
    case http(any HTTPClient)
    case metric(MetricSink)
}

/// A function under its number. Whoever holds the box keeps it known.
final class FunctionBox: Sendable {
    let function: Function

    init(_ function: Function) {
        self.function = function
    }
}

/// Numbers the functions in options while these are written as JSON.
final class Functions: Sendable {
    private let pump: Pump
    private let boxes = Locked<[UInt64: FunctionBox]>([:])

    init(_ pump: Pump) {
        self.pump = pump
    }

    deinit {
        pump.forget(functions: boxes.with { Array($0.keys) })
    }

    func number(_ function: Function?) -> JSONValue? {
        function.map { ["handler": handler($0)] }
    }

    func handler(_ function: Function) -> JSONValue {
        let box = FunctionBox(function)
        let number = pump.know(box)
        boxes.with { $0[number] = box }
        return .number(JSONNumber(number))
    }

    /// Lets go of a function that the library did not take.
    func forget(_ handler: JSONValue?) {
        guard let number = handler?.unsigned else { return }
        pump.forget(functions: [number])
        boxes.with { _ = $0.removeValue(forKey: number) }
    }
}

/// What a key of the options says; nil leaves the key out.
protocol OptionValue {
    func option(_ functions: Functions) -> JSONValue?
}

extension String: OptionValue {
    func option(_: Functions) -> JSONValue? { .string(self) }
}

extension Int: OptionValue {
    func option(_: Functions) -> JSONValue? { .number(JSONNumber(self)) }
}

extension Bool: OptionValue {
    func option(_: Functions) -> JSONValue? { .bool(self) }
}

extension JSONObject: OptionValue {
    func option(_: Functions) -> JSONValue? { .object(self) }
}

extension Style: OptionValue {
    func option(_: Functions) -> JSONValue? { .string(rawValue) }
}

extension Optional: OptionValue where Wrapped: OptionValue {
    func option(_ functions: Functions) -> JSONValue? { flatMap { $0.option(functions) } }
}

extension Array: OptionValue where Element: OptionValue {
    func option(_ functions: Functions) -> JSONValue? { .array(compactMap { $0.option(functions) }) }
}

extension Dictionary: OptionValue where Key == String, Value: OptionValue {
    /// In the order of the keys, so that the same options are the same text.
    func option(_ functions: Functions) -> JSONValue? {
        var object = JSONObject()
        for (key, value) in sorted(by: { $0.key < $1.key }) { object[key] = value.option(functions) }
        return .object(object)
    }
}

extension Hooks: OptionValue {
    func option(_ functions: Functions) -> JSONValue? { .object(json(functions)) }
}

extension MCPConfig: OptionValue {
    func option(_: Functions) -> JSONValue? { json }

    var json: JSONValue {
        switch self {
        case .path(let path): .string(path)
        case .document(let document): .object(document)
        }
    }
}

extension StoreOption: OptionValue {
    func option(_ functions: Functions) -> JSONValue? {
        switch self {
        case .named(let name): .string(name)
        case .custom(let store): functions.number(.store(store))
        }
    }
}

extension Tool: OptionValue {
    func option(_ functions: Functions) -> JSONValue? { .object(json(functions)) }

    /// The tool as the library takes it (SPEC 6). One whose schema is missing is refused before, see `check`.
    func json(_ functions: Functions) -> JSONObject {
        var json: JSONObject = ["name": .string(name), "description": .string(description)]
        json["inputSchema"] = (try? inputSchema).map(JSONValue.object)
        json["hints"] = try? hints?.encodedJSON()
        json["handler"] = functions.handler(.tool(self))
        return json
    }

    /// Refuses a tool whose arguments could not be described.
    func check(path: String) throws {
        guard case .failure(let error) = schema else { return }
        throw ToolspanError(
            code: .invalidArgument, message: "tool \(name): \(error)", retryable: false, path: "\(path).inputSchema", cause: error)
    }
}
