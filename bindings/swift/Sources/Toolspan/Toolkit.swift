/// An ordered set of tools and the connections behind them (SPEC 4). Close it when it is no longer needed; one that is
/// dropped closes itself behind the program's back.
public final class Toolkit: Sendable {
    let handle: Handle
    // Keeps the tools of the program known.
    private let functions: Functions

    /// Connects the servers and collects the tools. A server that fails is left out, see ``status()``.
    public convenience init(mcpConfig: MCPConfig? = nil, tools: [Tool] = [], engine: Engine? = nil) async throws {
        var options = ToolkitOptions()
        options.mcpConfig = mcpConfig
        options.tools = tools
        try await self.init(options, engine: engine)
    }

    /// The same with all options.
    public init(_ options: ToolkitOptions, engine: Engine? = nil) async throws {
        let pump = try (engine ?? Engine.shared).pump
        functions = Functions(pump)
        for (index, tool) in options.tools.enumerated() { try tool.check(path: "tools[\(index)]") }
        let result = try await pump.run("toolkit.create", ["options": .object(options.json(functions))])
        handle = Handle(pump, "toolkit", result)
    }

    /// The tools, in order.
    public func tools() throws -> [ToolInfo] {
        try [ToolInfo](json: handle.call("toolkit.tools")["tools"] ?? [])
    }

    /// The tool of that name.
    public func get(_ name: String) throws -> ToolInfo? {
        try ToolInfo?(json: handle.call("toolkit.get", ["name": .string(name)])["tool"] ?? .null)
    }

    /// What became of each server of the configuration, by id (SPEC 3.3).
    public func status() throws -> [String: ServerStatus] {
        try [String: ServerStatus](json: handle.call("toolkit.status")["servers"] ?? [:])
    }

    /// The tools as a provider declares them, and what was changed for that (SPEC 5).
    public func adapt(_ provider: Provider) throws -> Adaptation {
        try Adaptation(json: handle.call("toolkit.adapt", ["provider": .string(provider.rawValue)]))
    }

    /// Adds a tool of the program; false when the name was taken.
    @discardableResult
    public func register(_ tool: Tool) throws -> Bool {
        try tool.check(path: "tool")
        let json = tool.json(functions)
        var registered = false
        defer { if !registered { functions.forget(json["handler"]) } }
        registered = try handle.call("toolkit.register", ["tool": .object(json)])["registered"]?.boolValue ?? false
        return registered
    }

    /// Executes one call outside a run. The arguments may have any shape of SPEC 4.4; an unknown name and a failing tool are
    /// error results, whose `cause` is what a tool of the program threw.
    public func execute(_ name: String, _ args: JSONValue? = nil, timeoutMs: Int? = nil) async throws -> ToolResult {
        var all: JSONObject = ["name": .string(name)]
        all["args"] = args
        all["timeoutMs"] = timeoutMs.map { .number(JSONNumber($0)) }
        let (json, thrown) = try await handle.pump.finish { try handle.pump.start("toolkit.execute", handle.with(all)) }
        var result = try ToolResult(json: json)
        if result.isError { result.cause = thrown.first }
        return result
    }

    /// Ends sessions, sockets and processes, and with `closed` what still uses them; again and again if you like.
    public func close() async throws {
        try await handle.close()
    }
}
