// Options of a case, which are JSON, as the package has them.
import Toolspan

struct Handlers {
    let byNumber: [String: HostFunction]

    init(_ table: JSONValue?) {
        let entries = (table?.objectValue ?? [:]).map { ($0.key, HostFunction($0.key, $0.value)) }
        byNumber = Dictionary(uniqueKeysWithValues: entries)
    }

    func function(_ option: JSONValue) throws -> HostFunction {
        guard let function = byNumber[(option["handler"] ?? option).text] else { throw Thrown(description: "no function \(option)") }
        return function
    }

    func mcp(_ options: JSONValue) -> MCPConfig? {
        switch options["mcpConfig"] {
        case .string(let path): .path(path)
        case .object(let document): .document(document)
        default: nil
        }
    }

    func toolkit(_ json: JSONValue) throws -> ToolkitOptions {
        var options = ToolkitOptions()
        options.mcpConfig = mcp(json)
        options.mcpConfigText = json["mcpConfigText"]?.stringValue
        options.tools = try (json["tools"]?.arrayValue ?? []).map(tool)
        options.disableTools = (json["disableTools"]?.arrayValue ?? []).compactMap(\.stringValue)
        options.validateArguments = json["validateArguments"]?.boolValue
        options.timeoutMs = json["timeoutMs"]?.intValue
        return options
    }

    func tool(_ json: JSONValue) throws -> Tool {
        let function = try function(json["handler"] ?? .null)
        return Tool(
            name: json["name"]?.stringValue ?? "", description: json["description"]?.stringValue ?? "",
            inputSchema: json["inputSchema"]?.objectValue ?? [:], hints: try json["hints"].map(Hints.init(json:))
        ) { args in
            let value = try await function(.object(args))
            let isResult = value["output"]?.stringValue != nil && value["isError"]?.boolValue != nil
            return isResult ? .result(try ToolResult(json: value)) : .value(value)
        }
    }

    func client(_ json: JSONValue) throws -> ClientOptions {
        var options = ClientOptions(
            baseURL: json["baseUrl"]?.stringValue ?? "", style: Style(rawValue: json["style"]?.stringValue ?? ""),
            model: json["model"]?.stringValue ?? "")
        for (key, value) in json.objectValue ?? [:] {
            switch key {
            case "baseUrl", "style", "model": break
            case "apiKey": options.apiKey = value.stringValue
            case "apiKeyEnv": options.apiKeyEnv = value.stringValue
            case "headers": options.headers = try [String: String](json: value)
            case "systemPrompt": options.systemPrompt = value.stringValue
            case "maxTurns": options.maxTurns = value.intValue
            case "maxToolConcurrency": options.maxToolConcurrency = value.intValue
            case "maxToolOutputBytes": options.maxToolOutputBytes = value.intValue
            case "retries": options.retries = value.intValue
            case "retryBaseMs": options.retryBaseMs = value.intValue
            case "maxRetryDelayMs": options.maxRetryDelayMs = value.intValue
            case "retryableStatuses": options.retryableStatuses = try [Int](json: value)
            case "timeoutMs": options.timeoutMs = value.intValue
            case "firstByteTimeoutMs": options.firstByteTimeoutMs = value.intValue
            case "idleTimeoutMs": options.idleTimeoutMs = value.intValue
            case "requestParams": options.requestParams = value.objectValue ?? [:]
            case "bodyTransform":
                let function = try function(value)
                options.bodyTransform = { try await function(.object($0)).objectValue }
            case "hooks": options.hooks = try hooks(value)
            case "onError":
                let function = try function(value)
                options.onError = { try await function($0.encodedJSON()).stringValue.flatMap(ErrorDecision.init(rawValue:)) }
            case "httpClient": options.httpClient = HostHTTP(function: try function(value))
            case "store": options.store = try value.stringValue.map(StoreOption.named) ?? .custom(HostStore(function: function(value)))
            case "onMetric":
                let function = try function(value)
                options.onMetric = { event in
                    guard let json = try? event.encodedJSON() else { return }
                    function.record(json)
                    metrics.with { $0.append(json) }
                }
            default: throw Thrown(description: "no such option: \(key)")
            }
        }
        return options
    }

    private func hooks(_ json: JSONValue) throws -> Hooks {
        var hooks = Hooks()
        for (key, value) in json.objectValue ?? [:] {
            let function = try function(value)
            switch key {
            case "beforeLLM": hooks.beforeLLM = { try RequestChange?(json: await function($0.encodedJSON())) }
            case "afterLLM": hooks.afterLLM = { try await function($0.encodedJSON()) }
            case "beforeTool":
                hooks.beforeTool = {
                    let answer = try await function($0.encodedJSON())
                    if let args = answer["args"]?.objectValue { return .args(args) }
                    return try answer["result"].map { .result(try ToolResult(json: $0)) }
                }
            case "afterTool":
                hooks.afterTool = { try (await function($0.encodedJSON()))["result"].map(ToolResult.init(json:)) }
            default: throw Thrown(description: "no such hook: \(key)")
            }
        }
        return hooks
    }

    static func run(_ json: JSONValue) throws -> RunOptions {
        var options = RunOptions()
        options.history = try [JSONObject](json: json["history"] ?? [])
        options.systemPrompt = json["systemPrompt"]?.stringValue
        options.model = json["model"]?.stringValue
        options.maxTurns = json["maxTurns"]?.intValue
        options.timeoutMs = json["timeoutMs"]?.intValue
        return options
    }
}

/// What the user says in a case.
struct CasePrompt: Prompt {
    let promptJSON: JSONValue
}
