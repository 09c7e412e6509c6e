import Foundation
import Testing

@testable import Toolspan

@Test(arguments: [
    #"{"b":1.0,"a":12345678901234567890,"c":[1e3,-0,true,null],"é":"\u0001\"\\"}"#,
    "[]", "{}", "\"\"", "0.10000000000000000555", "[[[[1]]]]", #"{"a":{"b":{}}}"#,
])
func keysKeepTheirOrderAndNumbersTheirText(text: String) throws {
    #expect(try JSONValue(parsing: text).text == text)
}

@Test func escapesBecomeCharacters() throws {
    #expect(try JSONValue(parsing: #""\ud83d\ude00 \n\/\u00e9""#) == "😀 \n/é")
    // Half a pair is no character, and takes nothing of what follows.
    #expect(try JSONValue(parsing: #""\ud83dx\ud83d\u0041""#) == "\u{FFFD}x\u{FFFD}A")
}

@Test(arguments: ["", "{", "[1,]", "{\"a\"}", "01", "1.", "+1", "\"\n\"", "nul", "1 2", "\"\\x\"", "\"\\u12\""])
func textThatIsNoJSONIsRefused(text: String) {
    #expect(throws: DecodingError.self) { try JSONValue(parsing: text) }
}

@Test func nestingIsLimited() throws {
    let deep = { (levels: Int) in String(repeating: "[", count: levels) + String(repeating: "]", count: levels) }
    #expect(try JSONValue(parsing: deep(500)).arrayValue?.count == 1)
    #expect(throws: DecodingError.self) { try JSONValue(parsing: deep(100_000)) }
}

@Test func aDuplicateKeyHasItsLastValue() throws {
    #expect(try JSONValue(parsing: #"{"a":1,"b":2,"a":3}"#).text == #"{"a":3,"b":2}"#)
}

@Test func anObjectIsEditedInPlace() {
    var object: JSONObject = ["a": 1, "b": 2, "c": 3]
    object["b"] = nil
    object["a"] = "x"
    object["d"] = nil
    #expect(object.text == #"{"a":"x","c":3}"#)
    #expect(object == ["c": 3, "a": "x"])
}

private struct Everything: Codable, Equatable {
    enum Unit: String, Codable, CaseIterable { case metric, imperial }
    struct Inner: Codable, Equatable { var values: [Double] }
    var text: String
    var big: UInt64
    var flag: Bool
    var unit: Unit
    var inner: Inner
    var byName: [String: Inner]
    var missing: Int?
    var when: Date
    var id: UUID
    var link: URL
    var bytes: Data
}

@Test func codableTypesGoThroughJSON() throws {
    let value = Everything(
        text: "é", big: .max, flag: true, unit: .imperial, inner: .init(values: [1.5, 2]), byName: ["x": .init(values: [])],
        missing: nil, when: Date(timeIntervalSince1970: 1.5), id: UUID(), link: URL(string: "https://a.example/b?c")!,
        bytes: Data([0, 255]))
    let json = try value.encodedJSON()
    #expect(json["big"]?.text == "18446744073709551615")
    #expect(json["when"] == "1970-01-01T00:00:01.500Z")
    #expect(json["missing"] == nil)
    #expect(json.objectValue?.keys.prefix(3) == ["text", "big", "flag"])
    #expect(try Everything(json: JSONValue(parsing: json.text)) == value)
}

@Test func whatDoesNotFitSaysWhere() throws {
    struct Inner: Decodable { var n: Int8 }
    struct Outer: Decodable { var list: [Inner] }
    let error = failure(DecodingError.self) { try Outer(json: ["list": [["n": 1], ["n": 300]]]) }
    #expect(error.map(describe) == "list[1].n: expected Int8, found the number 300")
}

@Test func foundationReadsAndWritesIt() throws {
    let json: JSONValue = ["a": [1, 2.5, nil, true, "x"]]
    let data = try JSONEncoder().encode(json)
    #expect(try JSONDecoder().decode(JSONValue.self, from: data) == json)
}

@Test func whatJSONHasNotIsRefused() {
    #expect(throws: EncodingError.self) { try [Double.infinity].encodedJSON() }
}
