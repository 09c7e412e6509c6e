import Foundation
import Testing

@testable import Toolspan

/// How a program of its own ended.
private struct End: Equatable {
    var stdout = ""
    var stderr = ""
    var code: Int32 = 0
}

/// Runs a program of `Tests` to its end.
private func run(_ arguments: String..., program: String = "toolspan-program") async throws -> End {
    // Beside the bundle of the tests.
    let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let process = Process()
    process.executableURL = folder.appendingPathComponent(program)
    process.arguments = arguments
    let (stdout, stderr) = (Pipe(), Pipe())
    process.standardOutput = stdout
    process.standardError = stderr
    return try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            do {
                try process.run()
                let out = stdout.fileHandleForReading.readDataToEndOfFile()
                let err = stderr.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                let end = End(
                    stdout: String(decoding: out, as: UTF8.self), stderr: String(decoding: err, as: UTF8.self),
                    code: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
                continuation.resume(returning: end)
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}

@Test func aProgramMayExitWithEverythingOpen() async throws {
    let scenario = try await Scenario(["mcp": ["srv": ["transport": "stdio", "tools": [["name": "a", "does": ["text": "x"]]]]]])
    guard case .document(let config) = scenario.mcp else { throw Missing(description: "the configuration is a document") }
    for _ in 0..<5 {
        #expect(try await run("exit", config.text) == End(stdout: "exits\n", code: 3))
    }
    try await scenario.wait(["mcp": "srv", "processes": 0])
}

@Test func aProgramEndsWithItsLastLine() async throws {
    #expect(try await run("end") == End(stdout: "ends\n"))
}

@Test func anotherLibraryIsAnError() async throws {
    let error = "abi_mismatch: the library is another one: its functions are others\n"
    #expect(try await run(program: "toolspan-foreign") == End(stdout: error, code: 4))
}
