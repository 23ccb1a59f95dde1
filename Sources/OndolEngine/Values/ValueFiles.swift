// The value files that count, one object each, so that all runs that point into a file share what
// is open and cached of it.

/// Value files by number.
final class ValueFiles: Sendable {
  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let cache: BlockCache
  private let openFiles = OpenValueFiles()
  private let files: Guarded<[FileNumber: ValueFile]>

  init(
    _ metadata: some Sequence<ValueFileMetadata>, identity: DatabaseIdentity,
    directory: any Directory, cache: BlockCache
  ) {
    self.directory = directory
    self.identity = identity
    self.cache = cache
    var files: [FileNumber: ValueFile] = [:]
    for metadata in metadata {
      files[metadata.number] = ValueFile(
        metadata, identity: identity, directory: directory, cache: cache, openFiles: openFiles)
    }
    self.files = Guarded(files)
  }

  /// Those that `references` name. The manifest lets no segment name one that it lacks.
  func files(_ references: [ValueReference]) -> [ValueFile] {
    if references.isEmpty { return [] }
    return files.withLock { files in references.compactMap { files[$0.file] } }
  }

  func file(of pointer: ValuePointer) throws(EngineError) -> ValueFile {
    guard let file = files.withLock({ $0[pointer.file] }) else {
      throw .corrupt(
        file: pointer.file.valueFileName, offset: pointer.offset,
        reason: "a row points to a value file that is not there")
    }
    return file
  }

  /// Takes in files that were just finished.
  func add(_ metadata: [ValueFileMetadata]) {
    if metadata.isEmpty { return }
    let made = metadata.map {
      ValueFile(
        $0, identity: identity, directory: directory, cache: cache, openFiles: openFiles)
    }
    files.withLock { files in
      for file in made { files[file.number] = file }
    }
  }

  /// Lets go of files that the manifest no longer names; each goes from the disk with the last view
  /// that reads it.
  func forget(allBut isNamed: (FileNumber) -> Bool) {
    let forgotten = files.withLock { files in
      let gone = files.values.filter { !isNamed($0.number) }
      for file in gone { files[file.number] = nil }
      return gone
    }
    for file in forgotten { file.removeWhenUnused() }
  }
}
