import Foundation

extension ToolspanError: CustomStringConvertible, LocalizedError {
    /// `code: path: message`.
    public var description: String {
        "\(code.rawValue): \(path.map { "\($0): " } ?? "")\(message)"
    }

    /// The same.
    public var errorDescription: String? { description }

    /// The caller's task was cancelled.
    static var cancelled: ToolspanError {
        ToolspanError(code: .cancelled, message: "the caller cancelled", retryable: false, cause: CancellationError())
    }

    /// The library is not the one this package was written for.
    static func mismatch(_ message: String) -> ToolspanError {
        ToolspanError(code: .abiMismatch, message: message, retryable: false)
    }

    /// The record in a text of the library.
    init(record text: String) {
        do {
            self = try ToolspanError(json: JSONValue(parsing: text))
        } catch {
            self.init(code: .internal, message: text, retryable: false)
        }
    }
}

/// What a person is told about an error, whoever made it.
func describe(_ error: any Error) -> String {
    switch error {
    case let error as DecodingError: explain(error)
    case let error as any LocalizedError: error.errorDescription ?? String(describing: error)
    default: String(describing: error)
    }
}

private func explain(_ error: DecodingError) -> String {
    let context: DecodingError.Context? =
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            context
        @unknown default: nil
        }
    guard let context else { return String(describing: error) }
    let path = pathText(context.codingPath)
    return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
}
