/// A function of the program that the model may call (SPEC 6).
///
/// The arguments are a `Decodable` type, whose JSON Schema is derived from it, or described by `inputSchema`. What is
/// returned is the output: text as it is, nothing as an empty output, a ``ToolResult``, or the compact JSON of anything else.
/// What is thrown becomes an error result with its message; the original is the `cause` of that result. When nobody waits for
/// the result any more, the task that runs the function is cancelled.
public struct Tool: Sendable {
    /// What the model calls it, unless the toolkit has to change that.
    public let name: String
    /// What the model is told about it.
    public let description: String
    /// What it does to the world.
    public let hints: Hints?
    let schema: Result<JSONObject, SchemaError>
    let run: @Sendable (JSONObject) async throws -> ToolOutput

    /// A tool whose arguments are read into `Args`. A type that cannot be described is an error of the toolkit it is given to;
    /// arguments that do not fit are told to the model.
    public init<Args: Decodable, Output: Encodable>(
        _ name: String, _ description: String = "", inputSchema: JSONObject? = nil, hints: Hints? = nil,
        _ run: @escaping @Sendable (Args) async throws -> Output
    ) {
        self.init(name, description, hints: hints, schema: Self.schema(of: Args.self, inputSchema)) { args in
            try ToolOutput(await run(try Self.read(args)))
        }
    }

    /// A tool that gives no output.
    public init<Args: Decodable>(
        _ name: String, _ description: String = "", inputSchema: JSONObject? = nil, hints: Hints? = nil,
        _ run: @escaping @Sendable (Args) async throws -> Void
    ) {
        self.init(name, description, hints: hints, schema: Self.schema(of: Args.self, inputSchema)) { args in
            try await run(try Self.read(args))
            return .value(.null)
        }
    }

    /// A tool without arguments.
    public init<Output: Encodable>(
        _ name: String, _ description: String = "", hints: Hints? = nil,
        _ run: @escaping @Sendable () async throws -> Output
    ) {
        self.init(name, description, hints: hints, schema: .success([:])) { _ in try ToolOutput(await run()) }
    }

    /// A tool that takes and gives JSON.
    public init(
        name: String, description: String = "", inputSchema: JSONObject = [:], hints: Hints? = nil,
        run: @escaping @Sendable (JSONObject) async throws -> ToolOutput
    ) {
        self.init(name, description, hints: hints, schema: .success(inputSchema), run: run)
    }

    private init(
        _ name: String, _ description: String, hints: Hints?, schema: Result<JSONObject, SchemaError>,
        run: @escaping @Sendable (JSONObject) async throws -> ToolOutput
    ) {
        self.name = name
        self.description = description
        self.hints = hints
        self.schema = schema
        self.run = run
    }

    /// The JSON Schema of the arguments. Throws ``SchemaError`` when none could be derived.
    public var inputSchema: JSONObject {
        get throws { try schema.get() }
    }

    private static func schema<Args: Decodable>(of type: Args.Type, _ given: JSONObject?) -> Result<JSONObject, SchemaError> {
        if let given { return .success(given) }
        do {
            return .success(try deriveSchema(of: type))
        } catch {
            return .failure(error as? SchemaError ?? SchemaError(type: "\(type)", path: "", reason: describe(error)))
        }
    }

    private static func read<Args: Decodable>(_ args: JSONObject) throws -> Args {
        do {
            return try Args(json: .object(args))
        } catch let error as DecodingError {
            throw InvalidArguments(description: "Invalid arguments. \(describe(error))")
        }
    }
}

/// What the model is told about arguments that do not fit.
struct InvalidArguments: Error, CustomStringConvertible {
    let description: String
}

/// What a tool gives back.
public enum ToolOutput: Sendable {
    /// A whole result.
    case result(ToolResult)
    /// Text is the output, null an empty one, anything else its compact JSON.
    case value(JSONValue)

    /// A ``ToolResult`` as it is, anything else as JSON.
    public init(_ value: some Encodable) throws {
        self = if let result = value as? ToolResult { .result(result) } else { .value(try JSONWriter.write(value)) }
    }

    var answer: JSONValue {
        get throws {
            switch self {
            case .result(let result): ["result": try JSONWriter.write(result)]
            case .value(let value): ["value": value]
            }
        }
    }
}

/// The call that a tool serves.
public struct ToolCall: Sendable {
    /// Name of the tool.
    public let name: String
    /// The id the model gave the call; absent outside a run.
    public let id: String?
    /// The budget of the call, where it has one.
    public let timeoutMs: Int?

    /// Inside a tool: the call it serves.
    @TaskLocal public static var current: ToolCall?
}
