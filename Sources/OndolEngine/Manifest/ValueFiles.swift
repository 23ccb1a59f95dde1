// The value files in use, one object each. So all runs that refer to a file share its open
// descriptor and its cached blocks.

/// Value files by number.
final class ValueFiles: Sendable {
  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let cache: BlockCache
  /// Whether this process removes files that are no longer in use.
  private let isWriter: Bool
  private let files: Guarded<[FileNumber: ValueFile]>

  /// - Parameter access: a read-only process removes no file.
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

  /// Ensures an object for each file in the manifest. A file that the manifest no longer lists is
  /// removed from the disk together with the last view that reads it.
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

  /// The files in `references`. The manifest allows no segment to refer to a file that it lacks.
  func files(_ references: [ValueReference]) -> [ValueFile] {
    if references.isEmpty { return [] }
    return files.withLock { files in references.compactMap { files[$0.file] } }
  }

  /// Those of `numbers` that are still in use.
  func files(_ numbers: Set<FileNumber>) -> [FileNumber: ValueFile] {
    if numbers.isEmpty { return [:] }
    return files.withLock { files in files.filter { numbers.contains($0.key) } }
  }
}
