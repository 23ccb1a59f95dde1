// Names and paths in the forms that apps write: of documents, collections, fields, objects in
// storage and nodes of the tree. The library reads each once, and the target reads it again in the
// simplest way, byte by byte. The text of an accepted path reads back as the same bytes.

import OndolEngine

@testable import Ondol

enum PathsTarget: FuzzTarget {
  static let name = "paths"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    switch input.below(4) {
    case 0: readDocumentPath(text(&input))
    case 1: input.flag() ? readField(text(&input)) : repeatField(&input)
    case 2: readStoragePath(text(&input), text(&input))
    default: readTreePath(text(&input))
    }
  }

  /// Returns a text with many special characters.
  private static func text(_ input: inout FuzzInput) -> String {
    let pieces = [
      "/", ".", "`", "\\", "__", "a", "~", "[", "..", "//", "\u{301}", "é", "\u{ff5e}", "😀", "\0",
      "name", "__name__", ".value", "*", "\u{200d}", "\r\n", "-1", "007",
    ]
    if input.flag() { return String(decoding: input.take(input.below(200)), as: UTF8.self) }
    var text = ""
    for _ in 0..<input.below(24) {
      text += input.oneIn(24) ? String(repeating: "x", count: 700) : input.pick(pieces)
    }
    return text
  }

  private static func isSame(_ left: [String], _ right: [String]) -> Bool {
    left.elementsEqual(right) { $0.utf8.elementsEqual($1.utf8) }
  }

  // MARK: - Documents

  private static func readDocumentPath(_ text: String) {
    let expected = segments(text)
    let document = try? DocumentPath(text)
    let collection = try? CollectionPath(text)
    demand(document == nil || collection == nil, "\(text) is both a document and a collection")
    let found = document?.segments ?? collection?.segments
    demand(
      (found == nil) == (expected == nil),
      "\(text.debugDescription): \(found as Any), not \(expected as Any)")
    guard let found, let expected else { return }
    demand(isSame(found, expected), "\(text.debugDescription): \(found), not \(expected)")
    if let document {
      let again = try? DocumentPath(document.description)
      demand(again == document, "\(document) comes back as \(again as Any)")
      let inner = try? document.collection.document(document.documentID)
      demand(inner == document, "\(document) is not where it is")
    }
  }

  /// Returns the segments; nil if the text is not a path.
  private static func segments(_ text: String) -> [String]? {
    var octets = Array(text.utf8)
    if octets.first == UInt8(ascii: "/") { octets.removeFirst() }
    if octets.last == UInt8(ascii: "/") { octets.removeLast() }
    var parts: [[UInt8]] = [[]]
    for octet in octets {
      if octet == UInt8(ascii: "/") {
        parts.append([])
      } else {
        parts[parts.count - 1].append(octet)
      }
    }
    let isWrong = parts.contains { part in
      let isReserved =
        part.count >= 4 && part.starts(with: [95, 95]) && part.suffix(2) == [95, 95]
      return part.isEmpty || part.count > 1_500 || part == [46] || part == [46, 46] || isReserved
    }
    return isWrong || parts.count > 200 ? nil : parts.map { String(decoding: $0, as: UTF8.self) }
  }

  // MARK: - Fields

  private static func readField(_ text: String) {
    let path = FieldPath(text)
    _ = path.hashValue
    guard let names = try? path.names() else { return }
    demand(!names.isEmpty && names.allSatisfy { !$0.isEmpty }, "\(text) leads nowhere")
    demand(FieldPath(names) == path, "\(names) is not \(text)")
    if !text.utf8.contains(UInt8(ascii: "`")) {
      demand(
        names.joined(separator: ".").utf8.elementsEqual(text.utf8), "\(text) is read as \(names)")
    }
    comeBack(names)
  }

  private static func repeatField(_ input: inout FuzzInput) {
    let names = (0..<(1 + input.below(4))).map { _ in text(&input) }
    guard let accepted = try? FieldPath(names).names() else { return }
    demand(isSame(accepted, names), "\(names) became \(accepted)")
    comeBack(names)
  }

  /// Checks that the text form of a path reads back as the same path.
  private static func comeBack(_ names: [String]) {
    let text = FieldPath(names).description
    let again = try? FieldPath(text).names()
    demand(
      again.map { isSame($0, names) } == true, "\(names) as \(text) comes back as \(again as Any)")
  }

  // MARK: - Objects and nodes

  private static func readStoragePath(_ text: String, _ other: String) {
    let path = StoragePath.normal(text)
    let parts = text.utf8.split(separator: UInt8(ascii: "/"))
    demand(
      Array(path.utf8) == Array(parts.joined(separator: [UInt8(ascii: "/")])),
      "\(text.debugDescription) becomes \(path.debugDescription)")
    demand(StoragePath.normal(path).utf8.elementsEqual(path.utf8), "\(path) is not normal")
    if StoragePath.problem(with: text) == nil {
      demand(path.utf8.elementsEqual(text.utf8), "\(text) is accepted and not normal")
    }
    guard let parent = StoragePath.parent(of: path) else {
      return demand(path.isEmpty, "\(path) has no parent")
    }
    let again = StoragePath.child(StoragePath.name(of: path), of: parent)
    demand(again.utf8.elementsEqual(path.utf8), "\(path) is not in \(parent)")
    let child = StoragePath.child(other, of: path)
    demand(child.utf8.starts(with: path.utf8), "\(child) is not below \(path)")
  }

  private static func readTreePath(_ text: String) {
    let expected = text.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
    guard let path = try? TreePath(text) else { return }
    demand(path.keys.map { Array($0.utf8) } == expected, "\(text) is read as \(path.keys)")
    let row = path.rowKey
    let keys = try? TreeKey.path(of: row.bytes)
    demand(
      keys.flatMap { $0 }.map { isSame($0, path.keys) } == true,
      "\(path) has the row of \(keys as Any)")
    demand(path.ancestorKeys.count == path.depth, "\(path) has other ancestors")
    guard let parent = path.parent, let last = path.keys.last else { return }
    let again = try? parent.appending(key: last)
    demand(again == path && parent.contains(path), "\(path) is not in \(parent)")
    demand(parent.rowKey + path.lastComponent == path.rowKey, "\(path) has another last key")
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let texts = ["users/alice", "/a/b/c/", "m.`a.b`.c", "images//é.png", "-1/x.y@z/007"]
    var chance = Chance(10)
    return texts.enumerated().map { index, text in
      [UInt8(index % 4), 1, UInt8(text.utf8.count)] + text.utf8
    } + (0..<4).map { [UInt8($0), 0] + chance.bytes(30) }
  }
}
