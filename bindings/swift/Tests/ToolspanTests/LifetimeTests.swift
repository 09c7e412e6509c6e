import Foundation
import Testing

@testable import Toolspan

private let limit = TimeLimitTrait.timeLimit(.minutes(1))

private let never = Tool("never") { () -> String in
    while true { try await Task.sleep(nanoseconds: 1_000_000_000_000) }
}

@Test(limit) func cancellingATaskCancelsItsCallAndTheTool() async throws {
    let engine = try Engine()
    let (entered, enter) = AsyncStream.makeStream(of: Void.self)
    let (left, leave) = AsyncStream.makeStream(of: Bool.self)
    let waits = Tool("waits") { () -> String in
        enter.yield()
        defer { leave.yield(Task.isCancelled) }
        try await Task.sleep(nanoseconds: 1_000_000_000_000)
        return "late"
    }
    let toolkit = try await Toolkit(tools: [waits, Tool("now") { "on time" }], engine: engine)
    let call = Task { try await toolkit.execute("waits") }
    for await _ in entered { break }
    call.cancel()
    let error = await failure { try await call.value }
    #expect(error?.code == .cancelled)
    #expect(error?.cause is CancellationError)
    for await cancelled in left {
        #expect(cancelled)
        break
    }
    // The toolkit is as good as before.
    #expect(try await toolkit.execute("now").output == "on time")
    #expect(try engine.counters().operations == 0)
    #expect(await engine.close())
}

@Test(limit) func aCallOfACancelledTaskNeverStarts() async throws {
    let engine = try Engine()
    let count = Shared(0)
    let toolkit = try await Toolkit(tools: [Tool("count") { count.with { $0 += 1; return $0 } }], engine: engine)
    let call = Task {
        while !Task.isCancelled { await Task.yield() }
        return try await toolkit.execute("count")
    }
    call.cancel()
    #expect(await failure { try await call.value }?.code == .cancelled)
    #expect(count.with { $0 } == 0)
    #expect(await engine.close())
}

@Test(limit) func aToolThatIgnoresItsCancellationDelaysNobody() async throws {
    let engine = try Engine()
    let (entered, enter) = AsyncStream.makeStream(of: Void.self)
    let gate = Mailbox<Void>()
    let stubborn = Tool("stubborn") { () -> String in
        enter.yield()
        await gate.take()
        return "late"
    }
    let toolkit = try await Toolkit(tools: [stubborn], engine: engine)
    let call = Task { try await toolkit.execute("stubborn") }
    for await _ in entered { break }
    call.cancel()
    #expect(await failure { try await call.value }?.code == .cancelled)
    gate.put(())
    #expect(await engine.close())
}

@Test(limit) func closingAnEngineEndsWhatRuns() async throws {
    let engine = try Engine()
    let toolkit = try await Toolkit(tools: [never], engine: engine)
    let codes = await withTaskGroup(of: ErrorCode?.self) { group in
        for _ in 0..<500 { group.addTask { await failure { try await toolkit.execute("never") }?.code } }
        #expect(await eventually { (try? engine.counters().operations) == 500 })
        #expect(await engine.close(timeoutMs: 3000))
        return await group.reduce(into: Set<ErrorCode?>()) { $0.insert($1) }
    }
    #expect(codes == [.closed])
    #expect(await failure { try await toolkit.execute("never") }?.code == .closed)
    #expect(failure(ToolspanError.self) { try engine.counters() }?.code == .closed)
    // Closed with its engine, and again and again.
    try await toolkit.close()
    try await toolkit.close()
    #expect(await engine.close())
}

@Test(limit) func aToolkitIsClosedOnceByAll() async throws {
    let engine = try Engine()
    let toolkit = try await Toolkit(tools: [never], engine: engine)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<32 { group.addTask { try await toolkit.close() } }
        try await group.waitForAll()
    }
    #expect(try engine.counters().openToolkits == 0)
    #expect(await failure { try await toolkit.execute("never") }?.code == .closed)
    #expect(await engine.close())
}

@Test(limit) func whatIsDroppedIsClosed() async throws {
    let engine = try Engine()
    let scenario = try await Scenario(["mcp": ["srv": ["transport": "stdio", "tools": [["name": "a"]]]]])
    func use() async throws {
        let toolkit = try await Toolkit(mcpConfig: scenario.mcp, engine: engine)
        let client = try Client(baseURL: "http://127.0.0.1:9", style: .openAI, model: "m", engine: engine) { $0.apiKey = "k" }
        _ = try client.conversation(toolkit: toolkit)
        #expect(try toolkit.tools().map(\.name) == ["srv_a"])
        #expect(try engine.counters().openToolkits == 1)
    }
    try await use()
    try await scenario.wait(["mcp": "srv", "processes": 0])
    #expect(try await eventually { try engine.counters().openToolkits + engine.counters().openClients == 0 })
    #expect(await engine.close())
}

@Test(limit) func anEngineThatIsDroppedEnds() async throws {
    weak var pump: Pump?
    func use() async throws {
        let engine = try Engine()
        pump = engine.pump
        _ = try await Toolkit(engine: engine)
    }
    try await use()
    // The thread of the pump may be about to let it go.
    #expect(await eventually { pump == nil })
}

@Test(limit) func nothingStaysOfCallsThatWereCancelled() async throws {
    let engine = try Engine()
    let toolkit = try await Toolkit(tools: [never], engine: engine)
    for _ in 0..<1000 {
        let call = Task { try await toolkit.execute("never") }
        await Task.yield()
        call.cancel()
        #expect(await failure { try await call.value }?.code == .cancelled)
    }
    #expect(try engine.counters().operations == 0)
    #expect(await engine.close())
}

@Test(limit) func enginesDoNotKnowEachOther() async throws {
    let engines = try [Engine(), Engine()]
    let toolkit = try await Toolkit(engine: engines[0])
    #expect(try engines.map { try $0.counters().openToolkits } == [1, 0])
    #expect(await engines[1].close())
    #expect(try toolkit.tools().isEmpty)
    #expect(await engines[0].close())
}
