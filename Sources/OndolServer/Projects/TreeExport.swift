// The part of an export with the Realtime Database: a file of JSON for each of its databases, with
// priorities. A database of Ondol's has one tree, so only one of the files may have data.

#if Server
  import Foundation
  import Ondol

  /// Reads the tree of an export.
  struct TreeExportReader: Sendable {
    static let folder = "database_export"
    /// A larger node is written child by child. A commit has a limit of 64 MiB.
    private static let mostBytes = 8 << 20

    private let file: String
    private let value: Value

    /// Nil when no file has data.
    ///
    /// - Parameter part: the name of the folder.
    init?(_ folder: ProjectFolder, _ part: String) throws(ProjectFault) {
      var found: (file: String, value: Value)?
      for name in try folder.names(in: part) where name.hasSuffix(".json") {
        let value = try folder.json("\(part)/\(name)")
        let file = folder.place("\(part)/\(name)")
        guard !value.isNull else { continue }
        if let found {
          throw ProjectFault(file, nil, "\(found.file) has a tree too, and a database has one")
        }
        do throws(TreeRefusal) {
          _ = try TreeWrite(put: value, at: TreeTarget(.root), now: 0)
        } catch {
          throw ProjectFault(file, nil, error.message)
        }
        found = (file, value)
      }
      guard let found else { return nil }
      (file, value) = found
    }

    /// Writes the tree.
    func load(into database: Database) async throws {
      do {
        try await write(value, at: .root, in: database)
      } catch let refusal as TreeRefusal {
        throw ProjectFault(file, nil, refusal.message)
      } catch let error as DatabaseError where error.code == .invalidArgument {
        throw ProjectFault(file, nil, error.message)
      }
    }

    private func write(_ value: Value, at place: TreePlace, in database: Database) async throws {
      let now = database.wallClock / 1_000
      let children: [(String, Value)]
      switch value {
      case .map(let fields) where fields[".value"] == nil:
        children = fields.filter { $0.key != ".priority" }.sorted { $0.key < $1.key }
      case .array(let elements): children = elements.enumerated().map { ("\($0)", $1) }
      default: children = []
      }
      guard !children.isEmpty, Self.size(of: value) > Self.mostBytes else {
        return try await TreeWrite(put: value, at: TreeTarget(place), now: now).commit(to: database)
      }
      for (key, child) in children where !child.isNull {
        try await write(child, at: place.appending(TreePlace(keys: [key])), in: database)
      }
      guard let priority = value[".priority"] else { return }
      var target = TreeTarget(place)
      target.isPriority = true
      try await TreeWrite(put: priority, at: target, now: now).commit(to: database)
    }

    /// About the bytes that a value takes.
    private static func size(of value: Value) -> Int {
      switch value {
      case .string(let text): text.utf8.count
      case .map(let fields): fields.reduce(0) { $0 + $1.key.utf8.count + 8 + size(of: $1.value) }
      case .array(let elements): elements.reduce(0) { $0 + 8 + size(of: $1) }
      default: 8
      }
    }
  }
#endif
