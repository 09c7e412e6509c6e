/// Writes an `Encodable` value as a ``JSONValue``, keys in the order they are encoded in.
struct JSONWriter: Encoder {
    let codingPath: [any CodingKey]
    fileprivate let node: Node
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    static func write(_ value: some Encodable, _ path: [any CodingKey] = []) throws -> JSONValue {
        if let scalar = value as? any JSONScalar { return try scalar.json(path: path) }
        let writer = JSONWriter(codingPath: path)
        try value.encode(to: writer)
        return writer.node.json
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        node.kind = .object
        return KeyedEncodingContainer(Keyed(node: node, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.kind = .array
        return Unkeyed(node: node, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        Single(node: node, codingPath: codingPath)
    }

    /// A value that is being written; containers of it may be filled later.
    fileprivate final class Node {
        enum Kind { case value, array, object }
        var kind = Kind.value
        var value = JSONValue.null
        private var names: [String] = []
        private var children: [Node] = []

        func child(_ name: String = "") -> Node {
            let child = Node()
            names.append(name)
            children.append(child)
            return child
        }

        var json: JSONValue {
            switch kind {
            case .value: return value
            case .array: return .array(children.map(\.json))
            case .object:
                var object = JSONObject()
                for (name, child) in zip(names, children) { object[name] = child.json }
                return .object(object)
            }
        }
    }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let node: Node
        let codingPath: [any CodingKey]

        mutating func encodeNil(forKey key: Key) {
            node.child(key.stringValue).value = .null
        }

        mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
            node.child(key.stringValue).value = try JSONWriter.write(value, codingPath + [key])
        }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            writer(key).container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            writer(key).unkeyedContainer()
        }

        mutating func superEncoder() -> any Encoder {
            JSONWriter(codingPath: codingPath, node: node.child("super"))
        }

        mutating func superEncoder(forKey key: Key) -> any Encoder {
            writer(key)
        }

        private func writer(_ key: Key) -> JSONWriter {
            JSONWriter(codingPath: codingPath + [key], node: node.child(key.stringValue))
        }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let node: Node
        let codingPath: [any CodingKey]
        private(set) var count = 0

        init(node: Node, codingPath: [any CodingKey]) {
            self.node = node
            self.codingPath = codingPath
        }

        mutating func encodeNil() {
            next().node.value = .null
        }

        mutating func encode<T: Encodable>(_ value: T) throws {
            let writer = next()
            writer.node.value = try JSONWriter.write(value, writer.codingPath)
        }

        mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            next().container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            next().unkeyedContainer()
        }

        mutating func superEncoder() -> any Encoder {
            next()
        }

        private mutating func next() -> JSONWriter {
            defer { count += 1 }
            return JSONWriter(codingPath: codingPath + [IndexKey(count)], node: node.child())
        }
    }

    private struct Single: SingleValueEncodingContainer {
        let node: Node
        let codingPath: [any CodingKey]

        mutating func encodeNil() {
            node.value = .null
        }

        mutating func encode<T: Encodable>(_ value: T) throws {
            node.value = try JSONWriter.write(value, codingPath)
        }
    }

    init(codingPath: [any CodingKey]) {
        self.init(codingPath: codingPath, node: Node())
    }

    private init(codingPath: [any CodingKey], node: Node) {
        self.codingPath = codingPath
        self.node = node
    }
}

extension JSONValue: Encodable {
    public func encode(to encoder: any Encoder) throws {
        var single = encoder.singleValueContainer()
        switch self {
        case .null: try single.encodeNil()
        case .bool(let value): try single.encode(value)
        case .string(let value): try single.encode(value)
        case .array(let items): try single.encode(items)
        case .object(let object): try object.encode(to: encoder)
        case .number(let number):
            if let value = number.integer(Int.self) {
                try single.encode(value)
            } else if let value = number.integer(UInt64.self) {
                try single.encode(value)
            } else {
                try single.encode(number.doubleValue ?? 0)
            }
        }
    }
}

extension JSONObject: Encodable {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: NameKey.self)
        for (key, value) in self { try container.encode(value, forKey: NameKey(key)) }
    }
}

extension Encodable {
    /// The value as JSON.
    public func encodedJSON() throws -> JSONValue {
        try JSONWriter.write(self)
    }
}
