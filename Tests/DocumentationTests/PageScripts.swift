// The Swift code of a page of the documentation, as scripts. A page's blocks are one script from
// top to bottom, as a reader would type them, unless a comment in front of a block says that it
// begins anew. Each block keeps its place in the page, so that what the compiler says leads there.

import Foundation

/// Swift code of a page that the compiler sees as one file.
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
  /// Its blocks, each behind a directive that says where in the page it stands.
  private(set) var source = ""

  var description: String { "\(page):\(line)" }

  fileprivate mutating func add(block: [Substring], at line: Int) {
    source += "#sourceLocation(file: \"\(page)\", line: \(line))\n"
    source += block.joined(separator: "\n") + "\n#sourceLocation()\n"
  }
}

extension PageScript {
  /// In front of a block that is not to see those before it.
  static let newScriptMark = "<!-- a new script -->"
  /// In front of a block that is a `Package.swift`.
  static let manifestMark = "<!-- a manifest -->"

  /// All Swift code of a page, in its order.
  static func scripts(ofPage page: String, text: String) -> [PageScript] {
    var reader = PageReader(page: page)
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) { reader.read(line) }
    // A fence that nobody closes is closed by the end of the page.
    reader.closeBlock()
    return reader.scripts
  }
}

/// Goes through the lines of a page and gathers its code.
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
  /// The script that blocks go on with.
  private var program: Int?
  /// The comment that stands in front of what comes.
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
