// What whoever reclaims contents asks of the engine: which files there are, what may still be seen
// and by whom, and to move bytes and let go of files. What is dead is decided above, by rows.

internal import Synchronization

/// A file of contents.
package struct ContentFile: Sendable, Hashable {
  /// What it holds.
  package enum Kind: Sendable, Hashable {
    /// Many contents.
    case pack
    /// One, and nothing else.
    case content
  }

  package var kind: Kind
  package var number: FileNumber
  package var sizeBytes: UInt64

  package init(kind: Kind, number: FileNumber, sizeBytes: UInt64) {
    self.kind = kind
    self.number = number
    self.sizeBytes = sizeBytes
  }

  package var name: String {
    switch kind {
    case .pack: number.packName
    case .content: number.contentFileName
    }
  }

  /// Bytes of a pack that belong to no content.
  package static var packOverhead: UInt64 { UInt64(DataFileHeader.length) }

  /// The kind and number of a file of this name; nil when it is no file of contents.
  static func parse(_ name: String) -> (Kind, FileNumber)? {
    if let pack = FileNumber.parse(name, suffix: ".pack") { return (.pack, pack) }
    if let content = FileNumber.parse(name, suffix: ".content") { return (.content, content) }
    return nil
  }
}

extension Contents {
  /// The files of contents that are there. Blocks.
  ///
  /// - Complexity: O(names in the directory), and a system call for each such file.
  package func listFiles() throws(EngineError) -> [ContentFile] {
    var found: [ContentFile] = []
    for name in try storage.directory.list() {
      guard let (kind, number) = ContentFile.parse(name) else { continue }
      do throws(EngineError) {
        let size = try storage.directory.open(name, access: .readOnly).size()
        found.append(ContentFile(kind: kind, number: number, sizeBytes: size))
      } catch {
        // It may have gone meanwhile.
        guard error.isMissingFile else { throw error }
      }
    }
    return found
  }

  /// Has nothing more go into a pack. False when it must stay as it is for now: someone writes
  /// there, or commits are under way that may name what was written last.
  package func seal(_ pack: FileNumber) -> Bool { writer.seal(pack) }

  /// Bytes in each pack that were written for nothing, since this was last asked.
  package func takeAbandoned() -> [FileNumber: UInt64] { writer.takeAbandoned() }

  /// Files that nothing names and that should have gone, since this was last asked.
  package func takeUnremoved() -> [ContentFile] {
    unremoved.withLock { files in
      defer { files = [] }
      return files
    }
  }

  /// Stores contents, each with its digest, anew: in packs, all or none. They survive a power cut
  /// when this returns, and are kept until `decide`.
  package func append(
    _ contents: [(bytes: [UInt8], digest: [UInt8])]
  ) async throws(EngineError) -> [ContentLocation] {
    try await makeReady()
    let drafts = contents.map { draft($0.bytes, $0.digest) }
    return try await writer.append(drafts).map { .pack($0) }
  }

  /// Removes files that no location names in any state a power cut can bring back. Readers who have
  /// them open go on. Gives back those that must stay for now: a copy of the database is being
  /// made, or the system refused.
  package func remove(_ doomed: [ContentFile]) async throws(EngineError) -> [ContentFile] {
    // What took the names away must not be lost after the files are.
    try await storage.waitForRecovery()
    try await storage.sequencer.synchronize()
    return try await storage.maintenance.perform { [self] () throws(EngineError) in
      try storage.attempt { _ in }
      guard copies.load(ordering: .sequentiallyConsistent) == 0 else { return doomed }
      return doomed.filter { file in
        files.forget(file.number)
        do throws(EngineError) {
          try storage.directory.remove(file.name)
          return false
        } catch {
          return !error.isMissingFile
        }
      }
    }
  }
}
