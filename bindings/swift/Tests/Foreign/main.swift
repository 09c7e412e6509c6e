// A program that is linked with another library than its package was written for: one checksum of uniffi is not as expected.
import Foundation
import Toolspan

@_cdecl("uniffi_toolspan_uniffi_checksum_func_abi_version")
func checksum() -> UInt16 { 0 }

do {
    _ = try Engine()
} catch {
    FileHandle.standardOutput.write(Data("\(error)\n".utf8))
    exit(4)
}
