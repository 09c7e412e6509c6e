/// Reads JSON text. Nesting is limited, so that no text can exhaust the stack.
struct JSONParser {
    static let maxDepth = 512

    private let bytes: [UInt8]
    private var at = 0

    static func parse(_ text: String) throws -> JSONValue {
        var parser = JSONParser(bytes: Array(text.utf8))
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.at == parser.bytes.count else { throw parser.wrong("something follows the value") }
        return value
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private func wrong(_ what: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: [], debugDescription: "not JSON: \(what), at byte \(at)"))
    }

    private var next: UInt8? {
        at < bytes.count ? bytes[at] : nil
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
    }

    private mutating func take(_ byte: Character) -> Bool {
        guard next == byte.asciiValue else { return false }
        at += 1
        return true
    }

    private mutating func value(depth: Int) throws -> JSONValue {
        guard depth < Self.maxDepth else { throw wrong("nested deeper than \(Self.maxDepth)") }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws -> JSONValue {
        guard bytes[at...].starts(with: word.utf8) else { throw wrong("no value") }
        at += word.utf8.count
        return value
    }

    private mutating func object(depth: Int) throws -> JSONObject {
        at += 1
        var object = JSONObject()
        skipSpace()
        if take("}") { return object }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw wrong("no key") }
            let key = try string()
            skipSpace()
            guard take(":") else { throw wrong("no colon") }
            object[key] = try value(depth: depth + 1)
            skipSpace()
            if take("}") { return object }
            guard take(",") else { throw wrong("an object that does not end") }
        }
    }

    private mutating func array(depth: Int) throws -> [JSONValue] {
        at += 1
        var items: [JSONValue] = []
        skipSpace()
        if take("]") { return items }
        while true {
            items.append(try value(depth: depth + 1))
            skipSpace()
            if take("]") { return items }
            guard take(",") else { throw wrong("a list that does not end") }
        }
    }

    private mutating func digits() throws {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        guard at > start else { throw wrong("no value") }
    }

    private mutating func number() throws -> JSONNumber {
        let start = at
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        return JSONNumber(text: String(decoding: bytes[start..<at], as: UTF8.self))
    }

    private mutating func string() throws -> String {
        at += 1
        let start = at
        while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { at += 1 }
        var text = bytes[start..<at]
        while true {
            switch next {
            case UInt8(ascii: "\""):
                at += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                at += 1
                text.append(contentsOf: String(try escaped()).utf8)
            case let byte? where byte >= 0x20:
                text.append(byte)
                at += 1
            case nil:
                throw wrong("a text that does not end")
            default:
                throw wrong("a control character in a text")
            }
        }
    }

    private mutating func escaped() throws -> Unicode.Scalar {
        guard let byte = next else { throw wrong("a text that does not end") }
        at += 1
        switch byte {
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "u"): break
        default: throw wrong("no such escape")
        }
        let unit = try hex()
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) ?? "\u{FFFD}" }
        // The second half of a pair, where there is one; a half alone is no character.
        let mark = at
        if take("\\"), take("u") {
            let low = try hex()
            if (0xDC00..<0xE000).contains(low) {
                return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)) ?? "\u{FFFD}"
            }
        }
        at = mark
        return "\u{FFFD}"
    }

    private mutating func hex() throws -> UInt32 {
        guard at + 4 <= bytes.count,
            let unit = UInt32(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16)
        else { throw wrong("no four hexadecimal digits") }
        at += 4
        return unit
    }
}

/// Writes compact JSON text.
struct JSONText {
    private var bytes: [UInt8] = []

    var result: String {
        String(decoding: bytes, as: UTF8.self)
    }

    mutating func append(_ value: JSONValue) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let bool): bytes.append(contentsOf: (bool ? "true" : "false").utf8)
        case .number(let number): bytes.append(contentsOf: number.text.utf8)
        case .string(let string): append(string)
        case .array(let items):
            bytes.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(item)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            for (index, entry) in object.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(entry.key)
                bytes.append(UInt8(ascii: ":"))
                append(entry.value)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private mutating func append(_ string: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: "\\\"".utf8)
            case UInt8(ascii: "\\"): bytes.append(contentsOf: "\\\\".utf8)
            case 0x0A: bytes.append(contentsOf: "\\n".utf8)
            case 0x0D: bytes.append(contentsOf: "\\r".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case 0..<0x20:
                let hex = String(byte, radix: 16)
                bytes.append(contentsOf: "\\u00\(hex.count < 2 ? "0" : "")\(hex)".utf8)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
