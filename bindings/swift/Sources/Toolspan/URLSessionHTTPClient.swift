import Foundation
#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The system's HTTP stack as the client's transport: `options.httpClient = URLSessionHTTPClient()`.
///
/// An answer is kept in memory as far as it has come; a slow reader does not slow the sender.
public final class URLSessionHTTPClient: HTTPClient {
    private let session: URLSession
    private let requests: Requests

    /// A session of its own, which keeps no cookies and no cache by default. It follows no redirect, whatever the configuration says.
    public init(configuration: URLSessionConfiguration = .ephemeral) {
        let requests = Requests()
        self.requests = requests
        session = URLSession(configuration: configuration, delegate: requests, delegateQueue: nil)
    }

    deinit {
        // The session holds its delegate until then.
        session.finishTasksAndInvalidate()
    }

    /// Sends the request, without a time limit: the library has its own.
    public func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let url = URL(string: request.url) else { throw URLError(.badURL) }
        var native = URLRequest(url: url)
        native.httpMethod = request.method
        native.httpBody = request.body
        for header in request.headers { native.addValue(header.value, forHTTPHeaderField: header.name) }
        // The library has its own limits for silence. Foundation on Linux counts in 32-bit milliseconds.
        native.timeoutInterval = 7 * 24 * 3600
        let task = session.dataTask(with: native)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                requests.start(task, continuation)
                // A task that was cancelled before it was known here says nothing any more.
                if Task.isCancelled { requests.end(task, URLError(.cancelled)) }
            }
        } onCancel: {
            task.cancel()
        }
    }

    /// What is under way, by number of the task.
    private final class Requests: NSObject, URLSessionDataDelegate {
        private struct Request {
            var answer: CheckedContinuation<HTTPResponse, any Error>?
            var body: AsyncThrowingStream<Data, any Error>.Continuation?
        }
        private let open = Locked<[Int: Request]>([:])

        func start(_ task: URLSessionDataTask, _ answer: CheckedContinuation<HTTPResponse, any Error>) {
            open.with { $0[task.taskIdentifier] = Request(answer: answer) }
            task.resume()
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            let (body, pieces) = AsyncThrowingStream.makeStream(of: Data.self)
            pieces.onTermination = { reason in
                if case .cancelled = reason { dataTask.cancel() }
            }
            let answer = open.with { open in
                let answer = open[dataTask.taskIdentifier]?.answer
                open[dataTask.taskIdentifier] = Request(body: pieces)
                return answer
            }
            let http = response as? HTTPURLResponse
            let headers = (http?.allHeaderFields ?? [:]).map { HTTPHeader(name: "\($0.key)", value: "\($0.value)") }
            answer?.resume(returning: HTTPResponse(status: http?.statusCode ?? 0, headers: headers, body: body))
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            _ = open.with { $0[dataTask.taskIdentifier]?.body }?.yield(data)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            end(task, error)
        }

        func end(_ task: URLSessionTask, _ error: (any Error)?) {
            guard let request = open.with({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
            request.answer?.resume(throwing: error ?? URLError(.badServerResponse))
            request.body?.finish(throwing: error)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            completionHandler(nil)
        }
    }
}
