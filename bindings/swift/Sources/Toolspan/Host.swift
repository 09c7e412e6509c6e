import Foundation

/// Kinds of host calls that want an answer (SPEC 12).
enum HostCallKind: String, CaseIterable, Sendable {
    case toolExecute = "tool.execute"
    case beforeLLM = "hook.beforeLLM"
    case afterLLM = "hook.afterLLM"
    case beforeTool = "hook.beforeTool"
    case afterTool = "hook.afterTool"
    case bodyTransform = "bodyTransform"
    case onError = "onError"
    case storeGet = "store.get"
    case storeSave = "store.save"
    case httpSend = "http.send"
    case httpRead = "http.read"
}

/// Kinds that want none.
enum NoticeKind: String, CaseIterable, Sendable {
    case httpClose = "http.close"
    case metric = "metric"
    case log = "log"
}

/// A question of the library.
struct HostCall: Sendable {
    let number: UInt64
    let kind: HostCallKind?
    let box: FunctionBox?
    let payload: JSONValue

    /// What the function of the program answers. It is entered only when somebody still waits for it, which is looked at last.
    func answer(of operation: Operation) async throws -> JSONValue {
        func enter<Arguments>(_ arguments: Arguments) throws -> Arguments {
            guard operation.wants(number) else { throw Unwanted() }
            return arguments
        }
        guard let kind, let function = box?.function else { throw NothingServes() }
        switch (kind, function) {
        case (.toolExecute, .tool(let tool)):
            let call = ToolCall(
                name: tool.name, id: payload["callId"]?.stringValue, timeoutMs: payload["timeoutMs"]?.intValue)
            let args = payload["args"]?.objectValue ?? [:]
            return try await ToolCall.$current.withValue(call) { try await tool.run(enter(args)).answer }
        case (.beforeLLM, .beforeLLM(let hook)):
            return try await hook(enter(BeforeLLM(json: payload)))?.encodedJSON() ?? .null
        case (.afterLLM, .afterLLM(let hook)):
            try await hook(enter(AfterLLM(json: payload)))
            return .null
        case (.beforeTool, .beforeTool(let hook)):
            switch try await hook(enter(BeforeTool(json: payload))) {
            case .args(let args): return ["args": .object(args)]
            case .result(let result): return ["result": try result.encodedJSON()]
            case nil: return .null
            }
        case (.afterTool, .afterTool(let hook)):
            guard let result = try await hook(enter(AfterTool(json: payload))) else { return .null }
            return ["result": try result.encodedJSON()]
        case (.bodyTransform, .bodyTransform(let transform)):
            return try await transform(enter(payload["body"]?.objectValue ?? [:])).map(JSONValue.object) ?? .null
        case (.onError, .onError(let decide)):
            return try await decide(enter(RequestFailure(json: payload))).map { .string($0.rawValue) } ?? .null
        case (.storeGet, .store(let store)):
            return try await store.get(id: enter(payload["id"]?.stringValue ?? "")) ?? .null
        case (.storeSave, .store(let store)):
            try await store.save(id: payload["id"]?.stringValue ?? "", transcript: enter(payload["transcript"] ?? .null))
            return .null
        case (.httpSend, .http(let client)):
            return try await operation.bodies.send(enter(payload), with: client, as: number)
        case (.httpRead, .http):
            return try await operation.bodies.read(enter(payload["stream"]?.unsigned ?? 0))
        default:
            throw NothingServes()
        }
    }

    /// The reply that says a function of the program failed, whatever it threw.
    static func failure(_ error: any Error) -> JSONValue {
        ["error": ["message": .string(describe(error)), "type": .string("\(type(of: error))")]]
    }
}

struct NothingServes: Error, CustomStringConvertible {
    let description = "nothing of the program serves this call any more"
}
