import Foundation
import Testing

@testable import Toolspan

private enum Unit: String, Decodable, CaseIterable { case metric, imperial }
private enum Unlisted: String, Decodable { case one }
private enum Level: Int, Decodable, CaseIterable { case low = 1, high = 9 }

private struct Place: ToolArguments {
    static let descriptions = ["city": "Name of a city"]
    var city: String
    var zip: Int?
}

private struct Weather: Decodable {
    enum CodingKeys: String, CodingKey { case place, unit, levels, days = "number_of_days", extra, at, any }
    var place: Place
    var unit: Unit?
    var levels: [Level]
    var days: UInt8
    var extra: [String: Double]?
    var at: Date
    var any: JSONValue?
}

@Test func aTypeDescribesItself() throws {
    let expected = #"""
        {"type":"object","properties":{"place":{"type":"object","properties":{"city":{"type":"string","description":"Name of a city"},"zip":{"type":"integer"}},"required":["city"]},"unit":{"type":"string","enum":["metric","imperial"]},"levels":{"type":"array","items":{"type":"integer","enum":[1,9]}},"number_of_days":{"type":"integer","minimum":0},"extra":{"type":"object","additionalProperties":{"type":"number"}},"at":{"type":"string","format":"date-time"},"any":{}},"required":["place","levels","number_of_days","at"]}
        """#
    #expect(try deriveSchema(of: Weather.self).text == expected)
}

private struct Recursive: Decodable { var children: [Recursive] }
private struct Outer: Decodable { var inner: [Unlisted] }
private struct ByHand: Decodable {
    init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        _ = try list.decode(Int.self)
    }
}
private struct Strict: Decodable {
    var percent: Int
    init(from decoder: any Decoder) throws {
        percent = try decoder.container(keyedBy: NameKey.self).decode(Int.self, forKey: NameKey("percent"))
        guard percent > 0 else { throw StrictError() }
    }
    struct StrictError: Error, CustomStringConvertible { let description = "not positive" }
}
private struct Misdescribed: ToolArguments {
    static let descriptions = ["cty": "?"]
    var city: String
}

@Test func whatCannotBeDescribedSaysWhy() {
    func reason(_ type: any Decodable.Type) -> String? {
        failure(SchemaError.self) { try deriveSchema(of: type) }?.description
    }
    let advice = "; give the tool an inputSchema"
    #expect(reason(Recursive.self) == "no schema of Recursive at children[0]: Recursive contains itself" + advice)
    #expect(reason(Outer.self) == "no schema of Outer at inner[0]: Unlisted does not say which values it has (conform it to CaseIterable)" + advice)
    #expect(reason(ByHand.self) == "no schema of ByHand: it reads a list item by item" + advice)
    #expect(reason(Strict.self) == "no schema of Strict: it refuses a sample (not positive)" + advice)
    #expect(reason(Misdescribed.self) == "no schema of Misdescribed: Misdescribed describes cty, which it does not have" + advice)
}

@Test func aGivenSchemaIsTakenAsItIs() throws {
    let tool = Tool("t", inputSchema: ["type": "object", "x": 1]) { (args: Recursive) in args.children.count }
    #expect(try tool.inputSchema == ["type": "object", "x": 1])
}

@Test func aToolWithoutASchemaIsRefusedByTheToolkit() async {
    let tool = Tool("walk") { (args: Recursive) in args.children.count }
    let error = await failure { try await Toolkit(tools: [tool]) }
    #expect(error?.code == .invalidArgument)
    #expect(error?.path == "tools[0].inputSchema")
    #expect(error?.cause is SchemaError)
}
