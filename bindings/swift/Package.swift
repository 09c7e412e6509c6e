// swift-tools-version: 6.0
import PackageDescription

// The native library: on Linux `libtoolspan_uniffi`, found by the linker or in the folder that TOOLSPAN_LIBRARY_DIR names;
// for Apple's platforms an XCFramework, whose path TOOLSPAN_XCFRAMEWORK gives.
let framework = Context.environment["TOOLSPAN_XCFRAMEWORK"]
let folder = Context.environment["TOOLSPAN_LIBRARY_DIR"]

let native: Target = framework.map { .binaryTarget(name: "ToolspanFFI", path: $0) } ?? .systemLibrary(name: "ToolspanFFI")

var linking: [LinkerSetting] = []
if framework == nil {
    linking.append(.linkedLibrary("toolspan_uniffi"))
    if let folder {
        linking.append(.unsafeFlags(["-L\(folder)", "-Xlinker", "-rpath", "-Xlinker", folder]))
    }
}

// A program whose own code stands for a function of the library, which only a library that is loaded allows.
let foreign: [Target] = framework == nil ? [.executableTarget(name: "toolspan-foreign", dependencies: ["Toolspan"], path: "Tests/Foreign")] : []

let package = Package(
    name: "toolspan",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [.library(name: "Toolspan", targets: ["Toolspan"])],
    targets: [
        native,
        // What uniffi writes: the engine, and nothing a program sees.
        .target(name: "ToolspanNative", dependencies: ["ToolspanFFI"], linkerSettings: linking),
        .target(name: "Toolspan", dependencies: ["ToolspanNative"]),
        // The shim of the conformance suite and the benchmark; their folders are links into `conformance`.
        .executableTarget(name: "toolspan-shim", dependencies: ["Toolspan"]),
        .executableTarget(name: "toolspan-bench", dependencies: ["Toolspan"]),
        .executableTarget(name: "toolspan-program", dependencies: ["Toolspan"], path: "Tests/Program"),
        .testTarget(name: "ToolspanTests", dependencies: ["Toolspan", "ToolspanNative"]),
    ] + foreign,
    swiftLanguageModes: [.v6]
)
