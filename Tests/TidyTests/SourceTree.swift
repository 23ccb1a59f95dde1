// The project's own text files, read once for all rules. The root is found from this file's place,
// so the tests work from any directory and in any checkout.

import Foundation

/// A text file of the project.
struct SourceFile: Sendable {
  /// Relative to the package's root.
  let path: String
  /// The original lines.
  let lines: [String]
  /// The same lines with comments and the insides of string literals blanked: columns stay in
  /// place, and a word found here is code. Empty for files that are not Swift.
  let code: [String]

  init(path: String, text: String) {
    self.path = path
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    code =
      path.hasSuffix(".swift")
      ? CodeText.withoutCommentsAndStrings(text)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init) : []
  }

  var isSwift: Bool { path.hasSuffix(".swift") }
  var name: String { String(path.split(separator: "/").last ?? "") }

  /// True if the file is in one of `folders`, each written with its last slash.
  func isIn(_ folders: String...) -> Bool {
    folders.contains { path.hasPrefix($0) }
  }

  func finding(line index: Int, _ reason: String) -> Finding {
    Finding(path: path, line: index + 1, reason: reason)
  }
}

/// One place that breaks a rule.
struct Finding: Sendable, CustomStringConvertible {
  let path: String
  let line: Int
  let reason: String

  var description: String { "\(path):\(line): \(reason)" }
}

/// The existing files, for rules about links between them.
struct SourceTree: Sendable {
  var files: [SourceFile]
  /// All paths, directories too, relative to the root.
  var paths: Set<String>

  /// The generators are responsible for the output of Scripts/protos.
  private static let generated = "Sources/OndolWire/Generated"

  static let shared = SourceTree(root: URL(filePath: #filePath).packageRoot)

  init(files: [SourceFile]) {
    self.files = files
    paths = Set(files.map(\.path))
  }

  init(root: URL) {
    files = []
    paths = []
    let top = root.path(percentEncoded: false)
    let walk = FileManager.default.enumerator(atPath: top)
    while let path = walk?.nextObject() as? String {
      let name = path.split(separator: "/").last ?? ""
      // Build folders and the version control's own folder contain no sources.
      if name.hasPrefix(".build") || name == ".git" || name.hasSuffix(".ondol")
        || path == Self.generated
      {
        walk?.skipDescendants()
        continue
      }
      paths.insert(path)
      guard Self.isText(name),
        let text = try? String(contentsOf: root.appending(path: path), encoding: .utf8)
      else { continue }
      files.append(SourceFile(path: path, text: text))
    }
    files.sort { $0.path < $1.path }
  }

  private static func isText(_ name: Substring) -> Bool {
    let endings = [".swift", ".md", ".c", ".h", ".sh", ".yml", ".yaml", ".modulemap"]
    return endings.contains { name.hasSuffix($0) } || !name.contains(".")
  }
}

extension URL {
  /// `Tests/TidyTests/SourceTree.swift` is three below the root.
  fileprivate var packageRoot: URL {
    deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  }
}
