/// What the user says: text, or content parts. May be empty when there is a history.
public protocol Prompt: Sendable {
    /// Text, or a list of content parts, as JSON.
    var promptJSON: JSONValue { get throws }
}

extension String: Prompt {
    public var promptJSON: JSONValue { .string(self) }
}

extension Array: Prompt where Element == ContentPart {
    public var promptJSON: JSONValue {
        get throws { try encodedJSON() }
    }
}

/// One endpoint and one model (SPEC 7). Costs little: all clients of an engine share their connections.
public final class Client: Sendable {
    let handle: Handle
    // Keeps hooks, stores and transports of the program known.
    private let functions: Functions

    /// Checks the options. Nothing is sent before the first run.
    public init(_ options: ClientOptions, engine: Engine? = nil) throws {
        let pump = try (engine ?? Engine.shared).pump
        functions = Functions(pump)
        let result = try pump.call("client.create", ["options": .object(options.json(functions))])
        handle = Handle(pump, "client", result)
    }

    /// The same, with further options set in a closure: `{ $0.systemPrompt = "Be brief." }`.
    public convenience init(
        baseURL: String, style: Style, model: String, engine: Engine? = nil,
        _ configure: (inout ClientOptions) -> Void = { _ in }
    ) throws {
        var options = ClientOptions(baseURL: baseURL, style: style, model: model)
        configure(&options)
        try self.init(options, engine: engine)
    }

    /// Sends the prompt, executes the calls the model asks for, and repeats until it answers or a limit is reached. Cancelling
    /// the task cancels the run, which then throws the code `cancelled`.
    public func run(
        _ prompt: some Prompt, toolkit: Toolkit? = nil, options: RunOptions = RunOptions()
    ) async throws -> RunResult {
        try await run("client.run", prompt, toolkit, options, id: nil)
    }

    /// The same run with a memory: loads the conversation, runs, saves it (SPEC 7.7).
    public func ask(
        _ prompt: some Prompt, id: String, toolkit: Toolkit? = nil, options: RunOptions = RunOptions()
    ) async throws -> RunResult {
        try await run("client.ask", prompt, toolkit, options, id: id)
    }

    private func run(
        _ op: String, _ prompt: some Prompt, _ toolkit: Toolkit?, _ options: RunOptions, id: String?
    ) async throws -> RunResult {
        var args = options.json(functions)
        args["prompt"] = try prompt.promptJSON
        args["id"] = id.map(JSONValue.string)
        let all = try handle.with(args, toolkit)
        let (json, thrown) = try await handle.pump.finish { try handle.pump.start(op, all) }
        return try RunResult(json: json).because(thrown)
    }

    /// The same run, event by event; with an `id` that of ``ask(_:id:toolkit:options:)``. It starts with the first event that is
    /// asked for.
    public func stream(
        _ prompt: some Prompt, id: String? = nil, toolkit: Toolkit? = nil, options: RunOptions = RunOptions()
    ) -> EventStream {
        EventStream(client: self, toolkit: toolkit) { [handle, functions] in
            var args = options.json(functions)
            args["prompt"] = try prompt.promptJSON
            args["id"] = id.map(JSONValue.string)
            return try handle.with(args, toolkit)
        }
    }

    /// Prompts that follow each other, of that id where one is given.
    public func conversation(id: String? = nil, toolkit: Toolkit? = nil) throws -> Conversation {
        var args = JSONObject()
        args["id"] = id.map(JSONValue.string)
        let result = try handle.pump.call("conversation.create", handle.with(args, toolkit))
        return Conversation(Handle(handle.pump, "conversation", result), self, toolkit)
    }

    /// The store that `ask` uses.
    public func conversationStore() -> any ConversationStore {
        ClientStore(client: self)
    }

    /// Metrics in the text format of Prometheus (SPEC 10).
    public func metrics() throws -> String {
        try handle.call("client.metrics")["text"]?.stringValue ?? ""
    }

    /// Ends its runs with `closed`; again and again if you like.
    public func close() async throws {
        try await handle.close()
    }
}

/// Prompts that follow each other (SPEC 7.7).
public final class Conversation: Sendable {
    private let handle: Handle
    // Whose it is, which must not be closed before it.
    private let client: Client
    private let toolkit: Toolkit?

    init(_ handle: Handle, _ client: Client, _ toolkit: Toolkit?) {
        self.handle = handle
        self.client = client
        self.toolkit = toolkit
    }

    /// The next prompt.
    public func send(_ prompt: some Prompt) async throws -> RunResult {
        let args = handle.with(["prompt": try prompt.promptJSON])
        let (json, thrown) = try await handle.pump.finish { try handle.pump.start("conversation.send", args) }
        return try RunResult(json: json).because(thrown)
    }

    /// What was said so far, in the dialect of the client.
    public func messages() async throws -> [JSONObject] {
        try [JSONObject](json: await handle.run("conversation.messages")["messages"] ?? [])
    }

    /// Forgets what was said.
    public func reset() async throws {
        _ = try await handle.run("conversation.reset")
    }

    /// Lets the library forget it; what the store has stays. Again and again if you like.
    public func close() async throws {
        try await handle.close()
    }
}

private struct ClientStore: ConversationStore {
    let client: Client

    func get(id: String) async throws -> JSONValue? {
        let transcript = try await client.handle.run("store.get", ["id": .string(id)])["transcript"]
        return transcript == .null ? nil : transcript
    }

    func save(id: String, transcript: JSONValue) async throws {
        _ = try await client.handle.run("store.save", ["id": .string(id), "messages": transcript])
    }
}

extension RunResult {
    /// What tools of the program threw becomes the cause of their results.
    func because(_ thrown: Operation.Thrown) -> RunResult {
        var result = self
        for (index, call) in toolCalls.enumerated() where call.isError {
            result.toolCalls[index].cause = thrown.byToolCall[call.id]
        }
        return result
    }
}
