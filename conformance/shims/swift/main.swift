// The Swift column of the conformance suite: does what stdin says with the package's public API, answers on stdout.
import Foundation
import Toolspan

let engine = try Engine(log: { record in
    if let json = try? record.encodedJSON() { logs.with { $0.append(json) } }
})
/// Numbered toolkits, clients and conversations.
let objects = Guarded<[any AnyObject & Sendable]>([])
/// Steps under way, with what cancels them.
let running = Guarded<[JSONValue: Task<Void, Never>]>([:])
let output = Guarded(FileHandle.standardOutput)

func keep(_ object: any AnyObject & Sendable, as kind: String) -> JSONValue {
    let number = objects.with { objects in
        objects.append(object)
        return objects.count
    }
    return .object([kind: .number(JSONNumber(number))])
}

func known<Object>(_ args: JSONValue, _ key: String, _: Object.Type = Object.self) throws -> Object {
    let number = args[key]?.intValue ?? 0
    guard let object = objects.with({ $0.indices.contains(number - 1) ? $0[number - 1] : nil }) as? Object else {
        throw Thrown(description: "the case names \(key) \(number), which is nothing")
    }
    return object
}

/// An error, and what was there before it.
struct Partial: Error {
    let error: any Error
    let partial: JSONValue
}

func perform(_ op: String, _ args: JSONValue, _ handlers: Handlers) async throws -> JSONValue {
    let options = args["options"] ?? [:]
    let prompt = CasePrompt(promptJSON: args["prompt"] ?? "")
    let timeoutMs = args["timeoutMs"]?.intValue
    var toolkit: Toolkit? {
        get throws { args["toolkit"] == nil ? nil : try known(args, "toolkit") }
    }
    func ofToolkit() throws -> Toolkit { try known(args, "toolkit") }
    func client() throws -> Client { try known(args, "client") }
    func conversation() throws -> Conversation { try known(args, "conversation") }
    let text = { (key: String) in args[key]?.stringValue ?? "" }

    switch op {
    case "toolkit.create":
        return keep(try await Toolkit(handlers.toolkit(options), engine: engine), as: "toolkit")
    case "toolkit.tools": return ["tools": try ofToolkit().tools().encodedJSON()]
    case "toolkit.status": return ["servers": try ofToolkit().status().encodedJSON()]
    case "toolkit.get": return ["tool": try ofToolkit().get(text("name")).encodedJSON()]
    case "toolkit.execute":
        return try await ofToolkit().execute(text("name"), args["args"], timeoutMs: timeoutMs).encodedJSON()
    case "toolkit.register": return ["registered": .bool(try ofToolkit().register(handlers.tool(args["tool"] ?? .null)))]
    case "toolkit.adapt": return try ofToolkit().adapt(Provider(rawValue: text("provider"))).encodedJSON()
    case "toolkit.close": try await ofToolkit().close()
    case "mcp.list":
        if let config = args["mcpConfigText"]?.stringValue {
            return try await engine.listMCPTools(configText: config, timeoutMs: timeoutMs).encodedJSON()
        }
        return try await engine.listMCPTools(handlers.mcp(args) ?? [:], timeoutMs: timeoutMs).encodedJSON()
    case "client.create": return keep(try Client(handlers.client(options), engine: engine), as: "client")
    case "client.close": try await client().close()
    case "client.run": return try await client().run(prompt, toolkit: toolkit, options: Handlers.run(args)).encodedJSON()
    case "client.ask":
        return try await client().ask(prompt, id: text("id"), toolkit: toolkit, options: Handlers.run(args)).encodedJSON()
    case "client.stream":
        let stopAfter = args["stopAfter"]?.intValue ?? .max
        var events: [JSONValue] = []
        do {
            let stream = try client().stream(prompt, id: args["id"]?.stringValue, toolkit: toolkit, options: Handlers.run(args))
            for try await event in stream {
                events.append(try event.encodedJSON())
                if events.count >= stopAfter { break }
            }
        } catch {
            throw Partial(error: error, partial: ["events": .array(events)])
        }
        return ["events": .array(events)]
    case "conversation.create":
        return keep(try client().conversation(id: args["id"]?.stringValue, toolkit: toolkit), as: "conversation")
    case "conversation.send": return try await conversation().send(prompt).encodedJSON()
    case "conversation.messages": return ["messages": try await conversation().messages().encodedJSON()]
    case "conversation.reset": try await conversation().reset()
    case "store.get": return ["transcript": try await client().conversationStore().get(id: text("id")) ?? .null]
    case "store.save": try await client().conversationStore().save(id: text("id"), transcript: args["messages"] ?? .null)
    case "client.metrics": return ["text": .string(try client().metrics())]
    case "counters": return try engine.counters().encodedJSON()
    case "version": return ["version": .string(try engine.version())]
    case "cancel": running.with { $0[args["step"] ?? .null] }?.cancel()
    case "host.calls": return .array(calls.with { $0 })
    case "host.logs": return .array(logs.with { $0 })
    case "host.metrics": return .array(metrics.with { $0 })
    case "host.reset": for list in [calls, logs, metrics] { list.with { $0.removeAll() } }
    default: throw Thrown(description: "no such operation: \(op)")
    }
    return [:]
}

func say(_ line: JSONObject) {
    output.with { $0.write(Data((line.text + "\n").utf8)) }
}

func record(_ error: any Error) -> JSONValue {
    (error as? ToolspanError).flatMap { try? $0.encodedJSON() } ?? ["code": "shim", "message": .string("\(error)")]
}

func start(_ line: JSONValue) {
    let step = line["step"] ?? .null
    running.with { steps in
        steps[step] = Task {
            var answer: JSONObject = ["step": step]
            do {
                answer["ok"] = try await perform(line["op"]?.stringValue ?? "", line["args"] ?? [:], Handlers(line["handlers"]))
            } catch let failure as Partial {
                answer["error"] = record(failure.error)
                answer["partial"] = failure.partial
            } catch {
                answer["error"] = record(error)
            }
            running.with { _ = $0.removeValue(forKey: step) }
            say(answer)
        }
    }
}

say(["ready": ["language": "swift", "version": .string(try engine.version())]])
while let line = readLine() {
    if !line.isEmpty { start(try JSONValue(parsing: line)) }
}
await engine.close()
