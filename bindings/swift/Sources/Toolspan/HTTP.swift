import Foundation

/// Sends the requests to the model in the place of the library (`ClientOptions.httpClient`, SPEC 7.1).
///
/// Redirects must not be followed: the key would go wherever they point. The library takes a redirect for the answer, and fails
/// the request.
public protocol HTTPClient: Sendable {
    /// Sends the request and returns once the head of the answer is there. The task is cancelled when nobody waits for it any more.
    func send(_ request: HTTPRequest) async throws -> HTTPResponse
}

/// A request of the library.
public struct HTTPRequest: Sendable {
    /// `POST`, in capitals.
    public var method: String
    /// The whole address.
    public var url: String
    /// In order; a name may come twice. They hold the key.
    public var headers: [HTTPHeader]
    /// JSON text, whole.
    public var body: Data
}

/// A header of a request or an answer.
public struct HTTPHeader: Sendable, Hashable {
    /// Name, in any case.
    public var name: String
    /// Value.
    public var value: String

    /// A header of that name.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// An answer, whose body is read as it comes. Dropping the body unread has to end the request.
public struct HTTPResponse: Sendable {
    /// The HTTP status, that of a redirect too.
    public var status: Int
    /// In any order.
    public var headers: [HTTPHeader]
    /// Pieces of any size, without a content encoding. What it throws fails the request.
    public var body: AsyncThrowingStream<Data, any Error>

    /// An answer whose body is still to come.
    public init(status: Int, headers: [HTTPHeader], body: AsyncThrowingStream<Data, any Error>) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// The bodies that the library reads in one operation, by the number of the host call that opened each.
final class HTTPBodies: Sendable {
    private struct State {
        var open: [UInt64: AsyncThrowingStream<Data, any Error>] = [:]
        var ended = false
    }
    private let state = Locked(State())

    func send(_ payload: JSONValue, with client: any HTTPClient, as number: UInt64) async throws -> JSONValue {
        let headers = (payload["headers"]?.arrayValue ?? []).compactMap { pair -> HTTPHeader? in
            guard let name = pair[0]?.stringValue, let value = pair[1]?.stringValue else { return nil }
            return HTTPHeader(name: name, value: value)
        }
        let response = try await client.send(
            HTTPRequest(
                method: payload["method"]?.stringValue ?? "", url: payload["url"]?.stringValue ?? "", headers: headers,
                body: Data((payload["body"]?.stringValue ?? "").utf8)))
        let kept = state.with { state in
            if !state.ended { state.open[number] = response.body }
            return !state.ended
        }
        // Nobody will read what came after the end.
        guard kept else { throw Unwanted() }
        let pairs = response.headers.map { JSONValue.array([.string($0.name), .string($0.value)]) }
        return ["status": .number(JSONNumber(response.status)), "headers": .array(pairs), "stream": .number(JSONNumber(number))]
    }

    /// The next piece. A body that ends or fails is not closed again.
    func read(_ number: UInt64) async throws -> JSONValue {
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

    func close(_ number: UInt64) {
        drop(state.with { $0.open.removeValue(forKey: number).map { [$0] } ?? [] })
    }

    /// Closes what is open, and all that would come.
    func end() {
        drop(
            state.with { state in
                state.ended = true
                defer { state.open = [:] }
                return Array(state.open.values)
            })
    }

    /// Lets go of bodies, which may end requests of the program's own: nobody is to wait for that.
    private func drop(_ bodies: [AsyncThrowingStream<Data, any Error>]) {
        if !bodies.isEmpty { DispatchQueue.global().async { withExtendedLifetime(bodies) {} } }
    }
}
