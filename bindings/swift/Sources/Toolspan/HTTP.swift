import Foundation

/// Sends the requests to the model in the place of the library (`ClientOptions.httpClient`, SPEC 7.1).
///
/// Redirects are not to be followed: the library knows which headers may go where. The task is cancelled when nobody waits for
/// the answer any more.
public protocol HTTPClient: Sendable {
    func send(_ request: HTTPRequest) async throws -> HTTPResponse
}

/// A request of the library.
public struct HTTPRequest: Sendable {
    public var method: String
    public var url: String
    /// In order; a name may come twice.
    public var headers: [HTTPHeader]
    public var body: Data
}

/// A header of a request or an answer.
public struct HTTPHeader: Sendable, Hashable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// An answer, whose body is read as it comes. Dropping the body unread has to end the request.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var headers: [HTTPHeader]
    public var body: AsyncThrowingStream<Data, any Error>

    public init(status: Int, headers: [HTTPHeader], body: AsyncThrowingStream<Data, any Error>) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// The bodies that the library reads from one client, by a number of ours.
final class HTTPBodies: Sendable {
    private struct State {
        var last = 0
        var open: [Int: AsyncThrowingStream<Data, any Error>] = [:]
    }
    private let state = Locked(State())

    func send(_ payload: JSONValue, with client: any HTTPClient) async throws -> JSONValue {
        let headers = (payload["headers"]?.arrayValue ?? []).compactMap { pair -> HTTPHeader? in
            guard let name = pair[0]?.stringValue, let value = pair[1]?.stringValue else { return nil }
            return HTTPHeader(name: name, value: value)
        }
        let response = try await client.send(
            HTTPRequest(
                method: payload["method"]?.stringValue ?? "", url: payload["url"]?.stringValue ?? "", headers: headers,
                body: Data((payload["body"]?.stringValue ?? "").utf8)))
        // Nobody will read what is answered to a call that was taken back.
        try Task.checkCancellation()
        let number = state.with { state in
            state.last += 1
            state.open[state.last] = response.body
            return state.last
        }
        let pairs = response.headers.map { JSONValue.array([.string($0.name), .string($0.value)]) }
        return ["status": .number(JSONNumber(response.status)), "headers": .array(pairs), "stream": .number(JSONNumber(number))]
    }

    /// The next piece. A body that ends or fails is not closed again.
    func read(_ number: Int) async throws -> JSONValue {
        guard let body = state.with({ $0.open[number] }) else { throw NothingServes() }
        do {
            // Iterators of one stream share what comes.
            var pieces = body.makeAsyncIterator()
            if let data = try await pieces.next() { return ["data": .string(data.base64EncodedString())] }
        } catch {
            close(number)
            throw error
        }
        close(number)
        return ["end": true]
    }

    func close(_ number: Int) {
        state.with { _ = $0.open.removeValue(forKey: number) }
    }
}
