// The Swift code of a page of the documentation, as scripts. A page's blocks are one script from
// top to bottom, as a reader would type them, unless a comment before a block begins a new script.
// Each block keeps its place in the page, so that the compiler's messages lead there.

import Foundation

/// Swift code of a page that the compiler reads as one file.
struct PageScript: Sendable, CustomStringConvertible {
  enum Kind: Sendable {
    /// Code at the top level that may use the package's products.
    case program
    /// A package's manifest.
    case manifest
  }

  /// Relative to the package's root.
  let page: String
  /// The line of the page at which its first block opens, counted from one.
  let line: Int
  let kind: Kind
  /// Its blocks, each after a directive that states its place in the page.
  private(set) var source = ""

  var description: String { "\(page):\(line)" }

  fileprivate mutating func add(block: [Substring], at line: Int) {
    source += "#sourceLocation(file: \"\(page)\", line: \(line))\n"
    source += block.joined(separator: "\n") + "\n#sourceLocation()\n"
  }
}

extension PageScript {
  /// The comment before a block that must not see the earlier ones.
  static let newScriptMark = "<!-- a new script -->"
  /// The comment before a block that is a `Package.swift`.
  static let manifestMark = "<!-- a manifest -->"

  /// All Swift code of a page, in its order.
  static func scripts(ofPage page: String, text: String) -> [PageScript] {
    var reader = PageReader(page: page)
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) { reader.read(line) }
    // The end of the page closes an open fence.
    reader.closeBlock()
    return reader.scripts
  }
}

/// Reads the lines of a page and collects its code.
private struct PageReader {
  private struct Block {
    var fence: Substring
    var indentation: Int
    /// The line of its fence.
    var line: Int
    var isSwift: Bool
    var lines: [Substring] = []
  }

  let page: String
  private(set) var scripts: [PageScript] = []
  /// The script that the blocks continue.
  private var program: Int?
  /// The comment before the next block.
  private var mark: String?
  private var block: Block?
  private var number = 0

  init(page: String) {
    self.page = page
  }

  mutating func read(_ line: Substring) {
    number += 1
    let content = line.drop { $0 == " " }
    let indentation = line.count - content.count
    if let open = block {
      if content.hasPrefix(open.fence), content.allSatisfy({ "`~ ".contains($0) }) {
        closeBlock()
      } else {
        block?.lines.append(line.dropFirst(min(open.indentation, indentation)))
      }
    } else if content.hasPrefix("```") || content.hasPrefix("~~~") {
      let fence = content.prefix { $0 == content.first }
      let language = content.dropFirst(fence.count).prefix { $0 != " " && $0 != "," }
      block = Block(
        fence: fence, indentation: indentation, line: number,
        isSwift: language.lowercased() == "swift")
    } else if content.hasPrefix("<!--") {
      mark = content.trimmingCharacters(in: .whitespaces)
    } else if !content.isEmpty {
      mark = nil
    }
  }

  mutating func closeBlock() {
    guard let block = block.take() else { return }
    defer { mark = nil }
    guard block.isSwift else { return }
    if mark == PageScript.manifestMark {
      var manifest = PageScript(page: page, line: block.line, kind: .manifest)
      manifest.add(block: block.lines, at: block.line + 1)
      scripts.append(manifest)
      return
    }
    if program == nil || mark == PageScript.newScriptMark {
      scripts.append(PageScript(page: page, line: block.line, kind: .program))
      program = scripts.count - 1
    }
    if let program { scripts[program].add(block: block.lines, at: block.line + 1) }
  }
}
