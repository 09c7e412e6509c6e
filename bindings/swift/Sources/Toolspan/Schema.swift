/// Arguments of a tool that describe themselves further: `descriptions` stands in the schema beside the properties it names.
public protocol ToolArguments: Decodable {
    /// For the model, by name of the property.
    static var descriptions: [String: String] { get }
}

/// Why no JSON Schema could be derived from a type. Give the tool an `inputSchema` instead.
public struct SchemaError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The type that was to be described.
    public let type: String
    /// Where in it, as `filter.dates[0]`; empty for the type itself.
    public let path: String
    /// What is wrong there.
    public let reason: String

    public var description: String {
        "no schema of \(type)\(path.isEmpty ? "" : " at \(path)"): \(reason); give the tool an inputSchema"
    }
}

/// Derives the JSON Schema of a type by decoding it once from sample values and noting what it asks for: a key it decodes is
/// required; one it asks about first, as `decodeIfPresent` does, is not.
func deriveSchema<T: Decodable>(of type: T.Type) throws -> JSONObject {
    do {
        return try SchemaRecorder.describe(type, path: [], above: []).schema
    } catch let problem as Undescribed {
        throw SchemaError(type: "\(type)", path: pathText(problem.path), reason: problem.reason)
    } catch DecodingError.dataCorrupted(let context) {
        throw SchemaError(
            type: "\(type)", path: pathText(context.codingPath), reason: "it refuses a sample (\(context.debugDescription))")
    } catch {
        throw SchemaError(type: "\(type)", path: "", reason: "it refuses a sample (\(describe(error)))")
    }
}

private struct Undescribed: Error {
    let path: [any CodingKey]
    let reason: String
}

/// What a collection of the standard library holds.
private protocol SchemaContainer {
    static func describe(path: [any CodingKey], above: [any Decodable.Type]) throws -> (schema: JSONObject, sample: Self)
}

extension Array: SchemaContainer where Element: Decodable {
    static func describe(path: [any CodingKey], above: [any Decodable.Type]) throws -> (schema: JSONObject, sample: [Element]) {
        let item = try SchemaRecorder.describe(Element.self, path: path + [IndexKey(0)], above: above)
        return (["type": "array", "items": .object(item.schema)], [item.sample])
    }
}

extension Set: SchemaContainer where Element: Decodable {
    static func describe(path: [any CodingKey], above: [any Decodable.Type]) throws -> (schema: JSONObject, sample: Set<Element>) {
        let item = try SchemaRecorder.describe(Element.self, path: path + [IndexKey(0)], above: above)
        return (["type": "array", "items": .object(item.schema), "uniqueItems": true], [item.sample])
    }
}

extension Dictionary: SchemaContainer where Key == String, Value: Decodable {
    static func describe(path: [any CodingKey], above: [any Decodable.Type]) throws -> (schema: JSONObject, sample: [String: Value]) {
        let value = try SchemaRecorder.describe(Value.self, path: path + [NameKey("*")], above: above)
        return (["type": "object", "additionalProperties": .object(value.schema)], ["": value.sample])
    }
}

extension Optional: SchemaContainer where Wrapped: Decodable {
    static func describe(path: [any CodingKey], above: [any Decodable.Type]) throws -> (schema: JSONObject, sample: Wrapped?) {
        let value = try SchemaRecorder.describe(Wrapped.self, path: path, above: above)
        return (value.schema, value.sample)
    }
}

/// The decoder that notes instead of reading.
private final class SchemaRecorder: Decoder {
    let codingPath: [any CodingKey]
    let above: [any Decodable.Type]
    let descriptions: [String: String]
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    private var properties = JSONObject()
    private var required: [JSONValue] = []
    fileprivate var optional: Set<String> = []
    private var whole: JSONObject?

    private init(codingPath: [any CodingKey], above: [any Decodable.Type], descriptions: [String: String] = [:]) {
        self.codingPath = codingPath
        self.above = above
        self.descriptions = descriptions
    }

    static func describe<T: Decodable>(
        _ type: T.Type, path: [any CodingKey], above: [any Decodable.Type]
    ) throws -> (schema: JSONObject, sample: T) {
        if let scalar = type as? any JSONScalar.Type { return (scalar.schema, scalar.sample as! T) }
        if let container = type as? any SchemaContainer.Type {
            let (schema, sample) = try container.describe(path: path, above: above)
            return (schema, sample as! T)
        }
        if let choice = type as? any CaseIterable.Type, let (schema, sample) = try cases(choice, path) {
            return (schema, sample as! T)
        }
        guard !above.contains(where: { $0 == type }) else {
            throw Undescribed(path: path, reason: "\(type) contains itself")
        }
        let descriptions = (type as? any ToolArguments.Type)?.descriptions ?? [:]
        let recorder = SchemaRecorder(codingPath: path, above: above + [type], descriptions: descriptions)
        let sample: T
        do {
            sample = try T(from: recorder)
        } catch DecodingError.dataCorrupted where type is any RawRepresentable.Type {
            throw Undescribed(path: path, reason: "\(type) does not say which values it has (conform it to CaseIterable)")
        }
        return (try recorder.schema(of: type), sample)
    }

    /// An enum of raw values that lists its cases.
    private static func cases<C: CaseIterable>(_ type: C.Type, _ path: [any CodingKey]) throws -> (JSONObject, C)? {
        guard type is any RawRepresentable.Type, let first = type.allCases.first else { return nil }
        let values = try type.allCases.compactMap { value in
            try ((value as? any RawRepresentable)?.rawValue as? any Encodable).map { try JSONWriter.write($0) }
        }
        let texts = values.allSatisfy { $0.stringValue != nil }
        return (["type": texts ? "string" : "integer", "enum": .array(values)], first)
    }

    private func schema(of type: any Any.Type) throws -> JSONObject {
        if let whole { return whole }
        for name in descriptions.keys.sorted() where properties[name] == nil {
            throw Undescribed(path: codingPath, reason: "\(type) describes \(name), which it does not have")
        }
        var schema: JSONObject = ["type": "object", "properties": .object(properties)]
        if !required.isEmpty { schema["required"] = .array(required) }
        return schema
    }

    fileprivate func note<T: Decodable>(_ type: T.Type, _ key: any CodingKey) throws -> T {
        var (schema, sample) = try Self.describe(type, path: codingPath + [key], above: above)
        let name = key.stringValue
        if let text = descriptions[name] { schema["description"] = .string(text) }
        if properties[name] == nil, !optional.contains(name) { required.append(.string(name)) }
        properties[name] = .object(schema)
        return sample
    }

    fileprivate func note<T: Decodable>(whole type: T.Type) throws -> T {
        let (schema, sample) = try Self.describe(type, path: codingPath, above: above)
        whole = schema
        return sample
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed(recorder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw Undescribed(path: codingPath, reason: "it reads a list item by item")
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        Single(recorder: self)
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let recorder: SchemaRecorder
        var codingPath: [any CodingKey] { recorder.codingPath }
        var allKeys: [Key] { [] }

        // `decodeIfPresent` asks one of these before it decodes, and whoever does by hand can do without the key, too.

        func contains(_ key: Key) -> Bool {
            recorder.optional.insert(key.stringValue)
            return true
        }

        func decodeNil(forKey key: Key) -> Bool {
            !contains(key)
        }

        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            try recorder.note(type, key)
        }

        func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
            throw byHand(key)
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw byHand(key)
        }

        func superDecoder() throws -> any Decoder {
            throw byHand(NameKey("super"))
        }

        func superDecoder(forKey key: Key) throws -> any Decoder {
            throw byHand(key)
        }

        private func byHand(_ key: any CodingKey) -> Undescribed {
            Undescribed(path: codingPath + [key], reason: "it is taken apart by hand")
        }
    }

    private struct Single: SingleValueDecodingContainer {
        let recorder: SchemaRecorder
        var codingPath: [any CodingKey] { recorder.codingPath }

        func decodeNil() -> Bool { false }

        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            try recorder.note(whole: type)
        }
    }
}
