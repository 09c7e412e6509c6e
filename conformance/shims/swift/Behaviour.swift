// The program's functions: what the case says they do, and a record of every call.
import Foundation
import Toolspan

/// A value behind a lock.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value
    init(_ value: Value) { self.value = value }
    func with<Result>(_ body: (inout Value) -> Result) -> Result { lock.withLock { body(&value) } }
}

let calls = Guarded<[JSONValue]>([])
let logs = Guarded<[JSONValue]>([])
let metrics = Guarded<[JSONValue]>([])

struct Thrown: Error, CustomStringConvertible {
    let description: String
}

/// The function that stands behind a number of the case.
final class HostFunction: Sendable {
    let number: JSONValue
    let kind: String
    let behaviour: JSONValue
    private let count = Guarded(0)

    init(_ number: String, _ entry: JSONValue) {
        self.number = (try? JSONValue(parsing: number)) ?? .null
        kind = entry["kind"]?.stringValue ?? ""
        behaviour = entry["behaviour"] ?? .null
    }

    func record(_ payload: JSONValue, as kind: String? = nil) {
        calls.with { $0.append(["handler": number, "kind": .string(kind ?? self.kind), "payload": payload]) }
    }

    /// Records the call and does what the case says.
    @discardableResult
    func callAsFunction(_ payload: JSONValue, as kind: String? = nil) async throws -> JSONValue {
        record(payload, as: kind)
        var behaviour = behaviour
        if let sequence = behaviour["sequence"]?.arrayValue {
            let nth = count.with { count in
                count += 1
                return count
            }
            behaviour = sequence[min(nth, sequence.count) - 1]
        }
        if let value = behaviour["return"] { return value }
        if let text = behaviour["throw"]?.stringValue { throw Thrown(description: text) }
        if let edit = behaviour["edit"] { return edited(payload.objectValue ?? [:], edit) }
        while behaviour["hang"] != nil { try await Task.sleep(nanoseconds: 1_000_000_000_000) }
        return payload
    }

    private func edited(_ body: JSONObject, _ edit: JSONValue) -> JSONValue {
        var body = body
        for (key, value) in edit["set"]?.objectValue ?? [:] { body[key] = value }
        for key in edit["drop"]?.arrayValue ?? [] { body[key.stringValue ?? ""] = nil }
        var messages = body["messages"]?.arrayValue ?? []
        if let text = edit["appendToLastUser"]?.stringValue,
            let index = messages.lastIndex(where: { $0["role"] == "user" }), var last = messages[index].objectValue
        {
            if let content = last["content"]?.stringValue {
                last["content"] = .string(content + text)
            } else {
                last["content"] = .array((last["content"]?.arrayValue ?? []) + [["type": "text", "text": .string(text)]])
            }
            messages[index] = .object(last)
            body["messages"] = .array(messages)
        }
        return .object(body)
    }
}

/// A store in the program.
struct HostStore: ConversationStore {
    let function: HostFunction
    let kept = Guarded<[String: JSONValue]>([:])

    func get(id: String) async throws -> JSONValue? {
        let answer = try await function(["id": .string(id)], as: "store.get")
        return function.behaviour["store"] != nil ? kept.with { $0[id] } : answer
    }

    func save(id: String, transcript: JSONValue) async throws {
        try await function(["id": .string(id), "messages": transcript], as: "store.save")
        kept.with { $0[id] = transcript }
    }
}

/// The system's HTTP client, with a header of ours.
struct HostHTTP: HTTPClient {
    static let system = URLSessionHTTPClient()
    let function: HostFunction

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await function(["method": .string(request.method), "url": .string(request.url)])
        var request = request
        request.headers.append(HTTPHeader(name: "x-injected", value: "1"))
        return try await Self.system.send(request)
    }
}
