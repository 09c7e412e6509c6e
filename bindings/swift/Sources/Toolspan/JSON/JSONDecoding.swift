/// Reads a `Decodable` type from a ``JSONValue``, whose numbers and key order arrive as they are.
struct JSONReader: Decoder {
    let json: JSONValue
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    static func read<T: Decodable>(_ type: T.Type, _ json: JSONValue, _ path: [any CodingKey] = []) throws -> T {
        // `type` is T, so the scalar it makes is a T.
        if let scalar = type as? any JSONScalar.Type, let value = try scalar.init(json: json, path: path) as? T { return value }
        return try T(from: JSONReader(json: json, codingPath: path))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let object) = json else { throw mismatch(JSONObject.self, json, codingPath) }
        return KeyedDecodingContainer(Keyed(object: object, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let items) = json else { throw mismatch([JSONValue].self, json, codingPath) }
        return Unkeyed(items: items, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        Single(json: json, codingPath: codingPath)
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let object: JSONObject
        let codingPath: [any CodingKey]
        var allKeys: [Key] { object.keys.compactMap { Key(stringValue: $0) } }

        func contains(_ key: Key) -> Bool {
            object[key.stringValue] != nil
        }

        func decodeNil(forKey key: Key) throws -> Bool {
            try value(key).isNull
        }

        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            try JSONReader.read(type, value(key), codingPath + [key])
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            try reader(key).container(keyedBy: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try reader(key).unkeyedContainer()
        }

        func superDecoder() throws -> any Decoder {
            JSONReader(json: object["super"] ?? .null, codingPath: codingPath)
        }

        func superDecoder(forKey key: Key) throws -> any Decoder {
            try reader(key)
        }

        private func reader(_ key: Key) throws -> JSONReader {
            JSONReader(json: try value(key), codingPath: codingPath + [key])
        }

        private func value(_ key: Key) throws -> JSONValue {
            guard let value = object[key.stringValue] else {
                throw DecodingError.keyNotFound(key, .init(codingPath: codingPath + [key], debugDescription: "is missing"))
            }
            return value
        }
    }

    private struct Unkeyed: UnkeyedDecodingContainer {
        let items: [JSONValue]
        let codingPath: [any CodingKey]
        var currentIndex = 0
        var count: Int? { items.count }
        var isAtEnd: Bool { currentIndex >= items.count }

        mutating func decodeNil() throws -> Bool {
            guard try peek().isNull else { return false }
            currentIndex += 1
            return true
        }

        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
            let value = try JSONReader.read(type, peek(), codingPath + [IndexKey(currentIndex)])
            currentIndex += 1
            return value
        }

        mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
            try reader().container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try reader().unkeyedContainer()
        }

        mutating func superDecoder() throws -> any Decoder {
            try reader()
        }

        private mutating func reader() throws -> JSONReader {
            let reader = JSONReader(json: try peek(), codingPath: codingPath + [IndexKey(currentIndex)])
            currentIndex += 1
            return reader
        }

        private func peek() throws -> JSONValue {
            guard !isAtEnd else {
                let context = DecodingError.Context(
                    codingPath: codingPath + [IndexKey(currentIndex)], debugDescription: "the list has no more items")
                throw DecodingError.valueNotFound(JSONValue.self, context)
            }
            return items[currentIndex]
        }
    }

    private struct Single: SingleValueDecodingContainer {
        let json: JSONValue
        let codingPath: [any CodingKey]

        func decodeNil() -> Bool {
            json.isNull
        }

        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            try JSONReader.read(type, json, codingPath)
        }
    }
}

/// The place of an item in a list.
struct IndexKey: CodingKey {
    let intValue: Int?
    var stringValue: String { "[\(intValue ?? 0)]" }

    init(_ index: Int) { intValue = index }
    init?(intValue: Int) { self.init(intValue) }
    init?(stringValue: String) { nil }
}

/// A key by its name.
struct NameKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}

/// `a.b[2].c`, as the paths of the library are written.
func pathText(_ path: [any CodingKey]) -> String {
    path.reduce(into: "") { text, key in
        if !text.isEmpty, key.intValue == nil { text += "." }
        text += key.stringValue
    }
}

extension JSONValue: Decodable {
    /// Exact from this package's own reader. Another decoder, such as Foundation's, gives what it kept: neither the order of
    /// keys nor the text of numbers.
    public init(from decoder: any Decoder) throws {
        if let reader = decoder as? JSONReader {
            self = reader.json
        } else if let object = try? JSONObject(from: decoder) {
            self = .object(object)
        } else if var list = try? decoder.unkeyedContainer() {
            var items: [JSONValue] = []
            while !list.isAtEnd { items.append(try list.decode(JSONValue.self)) }
            self = .array(items)
        } else {
            let single = try decoder.singleValueContainer()
            if single.decodeNil() {
                self = .null
            } else if let value = try? single.decode(Bool.self) {
                self = .bool(value)
            } else if let value = try? single.decode(Int.self) {
                self = .number(JSONNumber(value))
            } else if let value = try? single.decode(UInt64.self) {
                self = .number(JSONNumber(value))
            } else if let value = (try? single.decode(Double.self)).flatMap(JSONNumber.init) {
                self = .number(value)
            } else {
                self = .string(try single.decode(String.self))
            }
        }
    }
}

extension JSONObject: Decodable {
    public init(from decoder: any Decoder) throws {
        if let reader = decoder as? JSONReader {
            self = try JSONObject(json: reader.json, path: reader.codingPath)
            return
        }
        self.init()
        let container = try decoder.container(keyedBy: NameKey.self)
        for key in container.allKeys { self[key.stringValue] = try container.decode(JSONValue.self, forKey: key) }
    }
}

extension Decodable {
    /// Reads the type from JSON.
    public init(json: JSONValue) throws {
        self = try JSONReader.read(Self.self, json)
    }
}
