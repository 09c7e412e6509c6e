/// Threads, toolkits, clients and logs of its own. Most programs never make one: toolkits and clients that are given none
/// share an engine, which is made with the first of them. Nothing starts before that.
public final class Engine: Sendable {
    let pump: Pump

    /// `log` receives log records, from `logLevel` on, else all; the library prints nothing. `workers` is the number of
    /// worker threads of the library, 1 to 64; the default is 1, and more pay off where runs at a time compute more than one core does.
    public init(log: LogSink? = nil, logLevel: LogLevel? = nil, workers: Int? = nil) throws {
        let level = logLevel ?? (log == nil ? nil : .debug)
        pump = try Pump(Self.options(level: level, workers: workers), log: log)
    }

    init(_ pump: Pump) {
        self.pump = pump
    }

    static func options(level: LogLevel? = nil, workers: Int? = nil) -> JSONObject {
        var options: JSONObject = ["hostCalls": .array(HostCallKind.allCases.map { .string($0.rawValue) })]
        options["log"] = level.map { .string($0.rawValue) }
        options["workers"] = workers.map { .number(JSONNumber($0)) }
        return options
    }

    private static let one = Result { try Engine() }

    /// The engine of programs that make none.
    public static var shared: Engine {
        get throws { try one.get() }
    }

    /// Connects the servers of a configuration, lists their tools and disconnects (SPEC 3.6).
    public func listMCPTools(_ config: MCPConfig, timeoutMs: Int? = nil) async throws -> Inventory {
        try await list("mcpConfig", config.json, timeoutMs)
    }

    /// The same, of the text of a document.
    public func listMCPTools(configText: String, timeoutMs: Int? = nil) async throws -> Inventory {
        try await list("mcpConfigText", .string(configText), timeoutMs)
    }

    private func list(_ key: String, _ config: JSONValue, _ timeoutMs: Int?) async throws -> Inventory {
        var args: JSONObject = [key: config]
        args["timeoutMs"] = timeoutMs.map { .number(JSONNumber($0)) }
        return try Inventory(json: await pump.run("mcp.list", args))
    }

    /// What is open and running.
    public func counters() throws -> Counters {
        try Counters(json: pump.call("counters"))
    }

    /// Version of the library.
    public func version() throws -> String {
        try pump.call("version")["version"]?.stringValue ?? ""
    }

    /// Ends everything that is open, also what runs, which fails with `closed`, and waits for the sinks. False when `timeoutMs`
    /// was not enough (a negative one is 0) and the end goes on behind; what the sinks were not told by then they never are. No
    /// function of the program is entered any more afterwards. An engine that is dropped ends by itself, without anybody waiting.
    @discardableResult
    public func close(timeoutMs: Int = 5000) async -> Bool {
        await pump.close(timeoutMs: timeoutMs)
    }
}

/// Connects the servers of a configuration, lists their tools and disconnects (SPEC 3.6).
public func listMCPTools(_ config: MCPConfig, timeoutMs: Int? = nil) async throws -> Inventory {
    try await Engine.shared.listMCPTools(config, timeoutMs: timeoutMs)
}

/// Version of the library.
public func version() throws -> String {
    try Engine.shared.version()
}

/// The counterpart of a toolkit, client or conversation in the engine. Dropping it closes it: a net for programs that forget.
final class Handle: Sendable {
    let pump: Pump
    /// `toolkit`, `client` or `conversation`.
    let kind: String
    let number: JSONValue
    private let closing = Locked<Task<Void, any Error>?>(nil)

    init(_ pump: Pump, _ kind: String, _ result: JSONValue) {
        self.pump = pump
        self.kind = kind
        number = result[kind] ?? .null
    }

    deinit {
        if closing.with({ $0 == nil }) { pump.submitAndForget("\(kind).close", [kind: number]) }
    }

    /// Closes it, once; every caller waits for the same end, which the cancelled task of one does not stop.
    func close() async throws {
        let task = closing.with { closing in
            let task = closing ?? Task { [pump, kind, number] in
                do {
                    _ = try await pump.run("\(kind).close", [kind: number])
                } catch let error as ToolspanError where error.code == .closed {
                    // With the engine everything of it was closed.
                }
            }
            closing = task
            return task
        }
        try await task.value
    }

    func call(_ op: String, _ args: JSONObject = [:]) throws -> JSONValue {
        try pump.call(op, with(args))
    }

    func run(_ op: String, _ args: JSONObject = [:]) async throws -> JSONValue {
        try await pump.run(op, with(args))
    }

    /// The arguments, and whose they are.
    func with(_ args: JSONObject) -> JSONObject {
        var all = args
        all[kind] = number
        return all
    }

    /// The arguments, and the toolkit, which has to be of the same engine.
    func with(_ args: JSONObject, _ toolkit: Toolkit?) throws -> JSONObject {
        var all = with(args)
        guard let toolkit else { return all }
        guard toolkit.handle.pump === pump else {
            throw ToolspanError(code: .invalidArgument, message: "the toolkit is of another engine", retryable: false, path: "toolkit")
        }
        all["toolkit"] = toolkit.handle.number
        return all
    }
}
