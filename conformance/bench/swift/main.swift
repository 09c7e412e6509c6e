// The scenario from Swift, through the public API. See ../src/lib.rs for what it prints.
import Foundation
import Toolspan

struct Failure: Error, CustomStringConvertible {
    let description: String
}

let plan = try JSONValue(parsing: ProcessInfo.processInfo.environment["BENCH"] ?? "")
let toolkit = try await Toolkit(mcpConfig: ["mcpServers": ["calc": ["command": plan["command"] ?? .null]]])
let client = try Client(baseURL: plan["baseUrl"]?.stringValue ?? "", style: .openAI, model: "bench")
let (warmUp, runs) = (plan["warmUp"]?.intValue ?? 0, plan["runs"]?.intValue ?? 0)
var times: [Double] = []
for run in 0..<warmUp + runs {
    let start = DispatchTime.now().uptimeNanoseconds
    let result = try await client.run("What is 2 + 2, twice?", toolkit: toolkit)
    if run >= warmUp { times.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1000) }
    if result.toolCalls.count != 2 { throw Failure(description: "\(result.toolCalls.count) tool calls instead of 2") }
}
try await toolkit.close()
times.sort()
let at = [0.5, 0.95].map { times[Int((Double(times.count - 1) * $0).rounded())] }
print("{\"median_us\": \(at[0]), \"p95_us\": \(at[1]), \"runs\": \(times.count)}")
