// Programs of their own, for what only shows from outside; the test says which.
import Foundation
import Toolspan

/// Ends when the process does.
let never = Tool("never") { () -> String in
    while true { try await Task.sleep(nanoseconds: 1_000_000_000_000) }
}

func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
}

switch CommandLine.arguments.dropFirst().first {
case "version":
    say(try version())
case "exit":
    // Everything is open: an engine with a log, a server, calls that run, a stream, and more calls coming.
    let engine = try Engine(log: { _ in })
    let config = try JSONValue(parsing: CommandLine.arguments[2]).objectValue ?? [:]
    let toolkit = try await Toolkit(mcpConfig: .document(config), tools: [never], engine: engine)
    for _ in 0..<10 { Task { try await toolkit.execute("never") } }
    Task.detached { while true { _ = try await toolkit.execute("srv_a") } }
    for _ in 0..<100 { _ = try await toolkit.execute("srv_a") }
    say("exits")
    exit(3)
case "end":
    // The last line of the program is reached with a toolkit and a call open.
    let toolkit = try await Toolkit(tools: [never])
    Task { try await toolkit.execute("never") }
    say("ends")
case let other:
    say("no such program: \(other ?? "")")
    exit(2)
}
