// The folders of a module are its floors: a folder may depend on those before it and on none after
// it. Docs/Architecture.md has the order, a table for each module, and its readers must be able to
// rely on it. The compiler does not know folders, so the rule looks for names of types: a type that
// the module declares once leads to its file and so to its floor.

/// A module whose floors the rule enforces.
struct FloorPlan: Sendable {
  /// A name that is used against the order, and the reason.
  struct Exception: Sendable {
    let file: String
    let type: String
    let reason: String
  }

  let module: String
  /// Types that every floor may name.
  var anywhere: Set<String> = []
  /// The current exceptions to the order. They may only shrink: an exception that nothing needs is
  /// a breach as well.
  var exceptions: [Exception] = []

  static let all = [
    FloorPlan(module: "OndolEngine"),
    FloorPlan(
      module: "Ondol",
      anywhere: [
        "Database", "DocumentReference", "CollectionReference", "DocumentSnapshot", "DatabaseError",
      ]),
    // The trait has the name of the class, and accounts have options also.
    FloorPlan(module: "OndolServer", anywhere: ["Server", "Options"]),
  ]

  static let page = "Docs/Architecture.md"

  private var root: String { "Sources/\(module)/" }

  /// Returns every deviation from the table.
  func findings(in tree: SourceTree) -> [Finding] {
    guard let page = tree.files.first(where: { $0.path == Self.page }),
      let (heading, order) = order(on: page)
    else { return [Finding(path: Self.page, line: 1, reason: "no table of \(module)'s floors")] }
    let files = tree.files.filter { $0.isSwift && $0.isIn(root) }
    let heights = Dictionary(order.enumerated().map { ($1, $0) }) { first, _ in first }
    let present = Set(files.map(folder))
    let empty = order.filter { !present.contains($0) }.map { folder in
      page.finding(line: heading, "\(module) has no folder \(folder)")
    }
    let unlisted = files.filter { heights[folder(of: $0)] == nil }.map { file in
      file.finding(line: 0, "its folder is none of \(module)'s floors in \(Self.page)")
    }
    return empty + unlisted + breaches(files, heights)
  }

  private func breaches(_ files: [SourceFile], _ heights: [String: Int]) -> [Finding] {
    let names = files.map(TypeNames.init)
    let homes = homes(of: names, files)
    var unneeded = exceptions
    var findings: [Finding] = []
    for (file, names) in zip(files, names) {
      guard let height = heights[folder(of: file)] else { continue }
      for (name, line) in names.used.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
        guard let home = homes[name], let other = heights[home], other > height else { continue }
        let path = String(file.path.dropFirst(root.count))
        if let known = unneeded.firstIndex(where: { $0.file == path && $0.type == name }) {
          unneeded.remove(at: known)
        } else {
          findings.append(file.finding(line: line, "names \(name), which is above it in \(home)/"))
        }
      }
    }
    return findings
      + unneeded.map { exception in
        Finding(
          path: root + exception.file, line: 1,
          reason: "no exception is needed any more for \(exception.type)")
      }
  }

  /// The folder of each type that is declared once.
  private func homes(of names: [TypeNames], _ files: [SourceFile]) -> [String: String] {
    var homes: [String: String] = [:]
    var ambiguous = anywhere
    for (file, names) in zip(files, names) {
      for name in names.declared where homes.updateValue(folder(of: file), forKey: name) != nil {
        ambiguous.insert(name)
      }
    }
    return homes.filter { !ambiguous.contains($0.key) && $0.key.count > 2 }
  }

  /// The first folder below the module's; empty for a file directly in it.
  private func folder(of file: SourceFile) -> String {
    let path = file.path.dropFirst(root.count)
    return path.contains("/") ? String(path.prefix { $0 != "/" }) : ""
  }

  /// The first column of the module's table, and the line of its heading.
  private func order(on page: SourceFile) -> (heading: Int, folders: [String])? {
    guard let heading = page.lines.firstIndex(of: "### \(module)") else { return nil }
    let section = page.lines[(heading + 1)...].prefix { !$0.hasPrefix("#") }
    let rows = section.filter { $0.hasPrefix("|") }.dropFirst(2)
    return (heading, rows.map { row in row.split(separator: "|")[0].filter { $0 != " " } })
  }
}

/// The types that a file names.
struct TypeNames {
  private static let declaring: Set<Substring> = [
    "struct", "class", "enum", "actor", "protocol", "typealias",
  ]

  private(set) var declared: Set<String> = []
  /// Each name that begins with a capital, and its first line.
  private(set) var used: [String: Int] = [:]

  init(_ file: SourceFile) {
    for (index, line) in file.code.enumerated() {
      var previous: Substring = ""
      for word in line.split(whereSeparator: { !($0.isLetter || $0.isNumber || $0 == "_") }) {
        if word.first?.isUppercase == true {
          if used[String(word)] == nil { used[String(word)] = index }
          if Self.declaring.contains(previous) { declared.insert(String(word)) }
        }
        previous = word
      }
    }
  }
}
