import Foundation

/// A type that is read from and written to JSON as a whole, and what a schema says about it. Everything else is taken apart
/// by its own `Codable` conformance.
protocol JSONScalar {
    init(json: JSONValue, path: [any CodingKey]) throws
    func json(path: [any CodingKey]) throws -> JSONValue
    static var schema: JSONObject { get }
    static var sample: Self { get }
}

func mismatch<T>(_ type: T.Type, _ json: JSONValue, _ path: [any CodingKey]) -> DecodingError {
    let found = switch json {
    case .null: "null"
    case .bool: "a boolean"
    case .number(let number): "the number \(number.text)"
    case .string: "a text"
    case .array: "a list"
    case .object: "an object"
    }
    return .typeMismatch(type, .init(codingPath: path, debugDescription: "expected \(type), found \(found)"))
}

extension Bool: JSONScalar {
    init(json: JSONValue, path: [any CodingKey]) throws {
        guard case .bool(let value) = json else { throw mismatch(Self.self, json, path) }
        self = value
    }
    func json(path: [any CodingKey]) -> JSONValue { .bool(self) }
    static var schema: JSONObject { ["type": "boolean"] }
    static var sample: Bool { false }
}

extension String: JSONScalar {
    init(json: JSONValue, path: [any CodingKey]) throws {
        guard case .string(let value) = json else { throw mismatch(Self.self, json, path) }
        self = value
    }
    func json(path: [any CodingKey]) -> JSONValue { .string(self) }
    static var schema: JSONObject { ["type": "string"] }
    static var sample: String { "" }
}

extension JSONScalar where Self: FixedWidthInteger {
    init(json: JSONValue, path: [any CodingKey]) throws {
        guard case .number(let number) = json, let value = number.integer(Self.self) else {
            throw mismatch(Self.self, json, path)
        }
        self = value
    }
    func json(path: [any CodingKey]) -> JSONValue { .number(JSONNumber(self)) }
    static var schema: JSONObject { isSigned ? ["type": "integer"] : ["type": "integer", "minimum": 0] }
    static var sample: Self { 0 }
}

extension Int: JSONScalar {}
extension Int8: JSONScalar {}
extension Int16: JSONScalar {}
extension Int32: JSONScalar {}
extension Int64: JSONScalar {}
extension UInt: JSONScalar {}
extension UInt8: JSONScalar {}
extension UInt16: JSONScalar {}
extension UInt32: JSONScalar {}
extension UInt64: JSONScalar {}

extension JSONScalar where Self: BinaryFloatingPoint {
    init(json: JSONValue, path: [any CodingKey]) throws {
        guard let value = json.doubleValue else { throw mismatch(Self.self, json, path) }
        self.init(value)
    }
    func json(path: [any CodingKey]) throws -> JSONValue {
        guard let number = JSONNumber(Double(self)) else {
            throw EncodingError.invalidValue(self, .init(codingPath: path, debugDescription: "JSON has no \(self)"))
        }
        return .number(number)
    }
    static var schema: JSONObject { ["type": "number"] }
    static var sample: Self { 0 }
}

extension Double: JSONScalar {}
extension Float: JSONScalar {}

extension JSONValue: JSONScalar {
    init(json: JSONValue, path: [any CodingKey]) { self = json }
    func json(path: [any CodingKey]) -> JSONValue { self }
    static var schema: JSONObject { [:] }
    static var sample: JSONValue { .null }
}

extension JSONObject: JSONScalar {
    init(json: JSONValue, path: [any CodingKey]) throws {
        guard case .object(let object) = json else { throw mismatch(Self.self, json, path) }
        self = object
    }
    func json(path: [any CodingKey]) -> JSONValue { .object(self) }
    static var schema: JSONObject { ["type": "object"] }
    static var sample: JSONObject { [:] }
}

/// What Foundation spells its own way and JSON Schema has a format for: a text.
private protocol JSONTextual: JSONScalar {
    init?(jsonText: String)
    var jsonText: String { get }
}

extension JSONTextual {
    init(json: JSONValue, path: [any CodingKey]) throws {
        guard let text = json.stringValue else { throw mismatch(Self.self, json, path) }
        guard let value = Self(jsonText: text) else {
            throw DecodingError.dataCorrupted(.init(codingPath: path, debugDescription: "not a \(Self.self): \(text)"))
        }
        self = value
    }
    func json(path: [any CodingKey]) -> JSONValue { .string(jsonText) }
}

extension Date: JSONTextual {
    init?(jsonText: String) {
        let formatter = ISO8601DateFormatter()
        guard let date = formatter.date(from: jsonText) ?? formatter.withFractions.date(from: jsonText) else { return nil }
        self = date
    }
    var jsonText: String { ISO8601DateFormatter().withFractions.string(from: self) }
    static var schema: JSONObject { ["type": "string", "format": "date-time"] }
    static var sample: Date { Date(timeIntervalSince1970: 0) }
}

extension ISO8601DateFormatter {
    fileprivate var withFractions: ISO8601DateFormatter {
        formatOptions.insert(.withFractionalSeconds)
        return self
    }
}

extension UUID: JSONTextual {
    init?(jsonText: String) { self.init(uuidString: jsonText) }
    var jsonText: String { uuidString }
    static var schema: JSONObject { ["type": "string", "format": "uuid"] }
    static var sample: UUID { UUID() }
}

extension URL: JSONTextual {
    init?(jsonText: String) { self.init(string: jsonText) }
    var jsonText: String { absoluteString }
    static var schema: JSONObject { ["type": "string", "format": "uri"] }
    static var sample: URL { URL(fileURLWithPath: "/") }
}

extension Data: JSONTextual {
    init?(jsonText: String) { self.init(base64Encoded: jsonText) }
    var jsonText: String { base64EncodedString() }
    static var schema: JSONObject { ["type": "string", "contentEncoding": "base64"] }
    static var sample: Data { Data() }
}
