// The entries that the server may have and has not answered. A moment of the server waits for the
// answers that may be in it already, so they are found by their documents: after months without a
// network there are many entries, and each moment asks.

#if Sync
  import Ondol

  /// Names of entries, each with its documents.
  struct SentEntries: Sendable {
    private var paths: [String: [DocumentPath]] = [:]
    private var names: [DocumentPath: Set<String>] = [:]

    func contains(_ name: String) -> Bool { paths[name] != nil }

    mutating func insert(_ entry: OutboxEntry) {
      remove(entry.name)
      paths[entry.name] = entry.paths
      for path in entry.paths { names[path, default: []].insert(entry.name) }
    }

    mutating func remove(_ name: String) {
      for path in paths.removeValue(forKey: name) ?? [] {
        names[path]?.remove(name)
        if names[path]?.isEmpty == true { names[path] = nil }
      }
    }

    /// The entries about any of some documents.
    func names(about documents: some Sequence<DocumentPath>) -> Set<String> {
      documents.reduce(into: []) { $0.formUnion(names[$1] ?? []) }
    }
  }
#endif
