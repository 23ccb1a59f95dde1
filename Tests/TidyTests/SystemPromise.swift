// The known uses that need newer systems than the manifest names, and why they may. Any other use
// is a breach, because it would prevent every app for those systems from being built.

/// The symbols that the sources may use although a system in the manifest lacks them, or although
/// their availability is unknown.
struct SystemPromise: Sendable {
  /// A use inside `if #available`, where older systems take another way.
  struct Guarded: Sendable {
    let path: String
    let symbol: String
    /// The way of older systems.
    let instead: String

    func allows(_ use: NewerSymbols.Use) -> Bool { use.path == path && use.symbol == symbol }
  }

  var guarded: [Guarded] = []
  /// Types of Foundation and Dispatch whose symbols have no availability on Linux, and symbols that
  /// these add to other modules' types. They were judged by hand: all are older than macOS 13 and
  /// iOS 16.
  var lookedUp: Set<String> = []

  static let path = "Tests/TidyTests/SystemPromise.swift"

  static let kept = SystemPromise(
    guarded: [
      Guarded(
        path: "Sources/OndolEngine/Bytes/Text.swift", symbol: "UTF8Span",
        instead: "init(repairing:)"),
      Guarded(
        path: "Sources/OndolEngine/Bytes/Text.swift", symbol: "UTF8Span.init(validating:)",
        instead: "init(repairing:)"),
      Guarded(
        path: "Sources/OndolEngine/Bytes/Text.swift", symbol: "String.init(copying:)",
        instead: "init(repairing:)"),
    ],
    lookedUp: [
      "Bundle", "CharacterSet", "DispatchQueue", "DispatchSemaphore", "DispatchSource",
      "DispatchSourceProtocol", "DispatchSourceSignal", "DispatchTime", "DispatchTimeInterval",
      "FileAttributeKey", "FileAttributeType", "FileHandle", "FileManager",
      "JSONSerialization", "NSEnumerator", "NSError", "NSNumber", "NSPOSIXErrorDomain",
      "NSUnderlyingErrorKey", "Pipe", "Process", "ProcessInfo", "Thread", "URLResourceKey",
      "URLResourceValues",
      "+(_:_:)", "CocoaError.Code.coderInvalidValue", "Error.localizedDescription",
      "FileManager.DirectoryEnumerator.fileAttributes",
      "FileManager.DirectoryEnumerator.skipDescendants()",
      "FileManager.contentsOfDirectory(at:includingPropertiesForKeys:options:)",
      "FileManager.enumerator(at:includingPropertiesForKeys:options:errorHandler:)",
      "FileManager.enumerator(atPath:)", "String.init(format:_:)", "StringProtocol.contains(_:)",
      "StringProtocol.compare(_:options:range:locale:)",
      "StringProtocol.localizedCaseInsensitiveContains(_:)",
      "StringProtocol.padding(toLength:withPad:startingAt:)",
      "StringProtocol.range(of:options:range:locale:)", "StringProtocol.removingPercentEncoding",
      "StringProtocol.decomposedStringWithCanonicalMapping",
      "StringProtocol.precomposedStringWithCanonicalMapping",
      "StringProtocol.precomposedStringWithCompatibilityMapping",
      "StringProtocol.trimmingCharacters(in:)", "URL.resourceValues(forKeys:)",
    ])

  /// Returns every use that nothing here allows.
  func breaches(in symbols: NewerSymbols) -> [Finding] {
    let newer = symbols.newer.filter { use in !guarded.contains { $0.allows(use) } }.map { use in
      Finding(path: use.path, line: use.line, reason: "\(use.symbol) asks for \(use.detail)")
    }
    let unknown = symbols.unstated.filter { !lookedUp.contains($0.detail) }.map { use in
      Finding(
        path: use.path, line: use.line,
        reason: "nothing here says which systems have \(use.symbol): look it up")
    }
    return newer + unknown
  }

  /// Returns the entries here that are no longer needed, if `symbols` are those of all sources.
  func leftovers(in symbols: NewerSymbols) -> [Finding] {
    let gone =
      guarded.filter { !symbols.newer.contains(where: $0.allows) }.map { ($0.path, $0.symbol) }
      + lookedUp.subtracting(symbols.unstated.map(\.detail)).sorted().map { (Self.path, $0) }
    return gone.map { path, name in
      Finding(path: path, line: 1, reason: "\(name) is used no more: take it off the list")
    }
  }
}
