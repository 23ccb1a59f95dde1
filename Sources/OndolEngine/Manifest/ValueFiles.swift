// The value files that count, one object each, so that all runs that point into a file share what
// is open and cached of it.

/// Value files by number.
final class ValueFiles: Sendable {
  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let cache: BlockCache
  /// Whether files that no longer count are ours to remove.
  private let isWriter: Bool
  private let files: Guarded<[FileNumber: ValueFile]>

  /// - Parameter access: one who only reads removes no file.
  init(
    identity: DatabaseIdentity, directory: any Directory, cache: BlockCache,
    access: FileAccess = .readWrite
  ) {
    isWriter = access == .readWrite
    self.directory = directory
    self.identity = identity
    self.cache = cache
    files = Guarded([:])
  }

  /// Has an object for each file that the manifest names. One that it names no more goes from the
  /// disk with the last view that reads it.
  func follow(_ state: ManifestState) {
    let forgotten = files.withLock { files in
      for (index, shard) in state.shards.enumerated() {
        for (number, metadata) in shard.valueFiles where files[number] == nil {
          files[number] = ValueFile(
            metadata, identity: identity, shard: UInt32(index), directory: directory,
            cache: cache)
        }
      }
      let gone = files.values.filter { !state.references(valueFile: $0.number) }
      for file in gone { files[file.number] = nil }
      return gone
    }
    if isWriter { for file in forgotten { file.data.removeWhenUnused() } }
  }

  /// All of them.
  var all: [ValueFile] { files.withLock { Array($0.values) } }

  /// Those that `references` name. The manifest lets no segment name one that it lacks.
  func files(_ references: [ValueReference]) -> [ValueFile] {
    if references.isEmpty { return [] }
    return files.withLock { files in references.compactMap { files[$0.file] } }
  }

  /// Those of `numbers` that still count.
  func files(_ numbers: Set<FileNumber>) -> [FileNumber: ValueFile] {
    if numbers.isEmpty { return [:] }
    return files.withLock { files in files.filter { numbers.contains($0.key) } }
  }
}
