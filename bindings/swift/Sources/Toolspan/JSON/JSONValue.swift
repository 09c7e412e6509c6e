/// A value as JSON has it. Unlike Foundation's, it keeps the order of keys and the text of numbers.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number, as it was written.
    case number(JSONNumber)
    /// A text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)

    /// Reads a text. Throws `DecodingError.dataCorrupted`, which says where.
    public init(parsing text: String) throws {
        self = try JSONParser.parse(text)
    }

    /// The compact text.
    public var text: String {
        var writer = JSONText()
        writer.append(self)
        return writer.result
    }

    /// The truth value; nil when this is none.
    public var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The text; nil when this is none.
    public var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The integer, also when it is written as `1.0` or `1e3`.
    public var intValue: Int? {
        if case .number(let value) = self { value.integer() } else { nil }
    }

    /// The number as far as 64 bits hold it; nil when this is none.
    public var doubleValue: Double? {
        if case .number(let value) = self { value.doubleValue } else { nil }
    }

    /// The list; nil when this is none.
    public var arrayValue: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The object; nil when this is none.
    public var objectValue: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }

    /// Whether this is `null`.
    public var isNull: Bool {
        self == .null
    }

    /// A key of an object; nil when there is none, or this is no object.
    public subscript(key: String) -> JSONValue? {
        objectValue?[key]
    }

    /// An item of a list; nil when there is none, or this is no list.
    public subscript(index: Int) -> JSONValue? {
        guard let items = arrayValue, items.indices.contains(index) else { return nil }
        return items[index]
    }
}

/// A number as it was written: 64-bit integers and long fractions keep their digits. Equal is what has the same text.
public struct JSONNumber: Hashable, Sendable {
    /// As it was written.
    public let text: String

    init(text: String) {
        self.text = text
    }

    /// A whole number.
    public init(_ value: some BinaryInteger) {
        text = String(value)
    }

    /// Nil for what JSON cannot write: infinite, not a number.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = "\(value)"
    }

    /// The value as far as 64 bits hold it.
    public var doubleValue: Double? {
        Double(text)
    }

    /// The value, when it is whole and fits.
    public func integer<Integer: FixedWidthInteger>(_: Integer.Type = Int.self) -> Integer? {
        Integer(text) ?? Double(text).flatMap { Integer(exactly: $0) }
    }
}

/// An object whose keys keep their order. Two are equal when they have the same values under the same keys.
public struct JSONObject: Sendable {
    /// In order.
    public private(set) var keys: [String] = []
    private var values: [String: JSONValue] = [:]

    /// An object without keys.
    public init() {}

    /// The number of keys.
    public var count: Int { keys.count }
    /// Whether it has no keys.
    public var isEmpty: Bool { keys.isEmpty }

    /// Nil when there is no such key. Setting nil removes it; a new key comes last.
    public subscript(key: String) -> JSONValue? {
        get { values[key] }
        set {
            if let newValue {
                if values.updateValue(newValue, forKey: key) == nil { keys.append(key) }
            } else if values.removeValue(forKey: key) != nil {
                keys.removeAll { $0 == key }
            }
        }
    }

    /// The compact text.
    public var text: String { JSONValue.object(self).text }
}

extension JSONObject: Hashable {
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.values == right.values
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(values)
    }
}

extension JSONObject: Sequence {
    public func makeIterator() -> AnyIterator<(key: String, value: JSONValue)> {
        var names = keys.makeIterator()
        let values = values
        return AnyIterator { names.next().map { ($0, values[$0] ?? .null) } }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (key, value) in elements { self[key] = value }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int) { self = .number(JSONNumber(value)) }
    public init(floatLiteral value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        for (key, value) in elements { object[key] = value }
        self = .object(object)
    }
}

extension JSONValue: CustomStringConvertible {
    public var description: String { text }
}

extension JSONObject: CustomStringConvertible {
    public var description: String { text }
}
