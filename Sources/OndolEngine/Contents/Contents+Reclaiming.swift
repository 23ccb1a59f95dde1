// The engine's part in reclaiming contents: listing files, finding out which snapshots are still in
// use, moving bytes and removing files. The layer above decides by its rows which contents are
// dead.

internal import Synchronization

/// A file of contents.
package struct ContentFile: Sendable, Hashable {
  /// The kind of a file.
  package enum Kind: Sendable, Hashable {
    /// Many contents.
    case pack
    /// Exactly one content.
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

  /// Bytes of a pack that do not belong to any content.
  package static var packOverhead: UInt64 { UInt64(DataFileHeader.length) }

  /// The kind and number of a file with this name; nil if it is not a file of contents.
  static func parse(_ name: String) -> (Kind, FileNumber)? {
    if let pack = FileNumber.parse(name, suffix: ".pack") { return (.pack, pack) }
    if let content = FileNumber.parse(name, suffix: ".content") { return (.content, content) }
    return nil
  }
}

extension Contents {
  /// The existing files of contents. Blocks.
  ///
  /// - Complexity: O(names in the directory), plus a system call for each such file.
  package func listFiles() throws(EngineError) -> [ContentFile] {
    var found: [ContentFile] = []
    for name in try storage.directory.list() {
      guard let (kind, number) = ContentFile.parse(name) else { continue }
      do throws(EngineError) {
        let size = try storage.directory.open(name, access: .readOnly).size()
        found.append(ContentFile(kind: kind, number: number, sizeBytes: size))
      } catch {
        // The file may have been removed meanwhile.
        guard error.isMissingFile else { throw error }
      }
    }
    return found
  }

  /// Stops further writes to a pack. Returns false if the pack must stay as it is for now: a thread
  /// is writing to it, or pending commits may name its latest entries.
  package func seal(_ pack: FileNumber) -> Bool { writer.seal(pack) }

  /// Bytes written to each pack without being used, since the last call.
  package func takeAbandoned() -> [FileNumber: UInt64] { writer.takeAbandoned() }

  /// Files that nothing names and that should have been removed, since the last call.
  package func takeUnremoved() -> [ContentFile] {
    unremoved.withLock { files in
      defer { files = [] }
      return files
    }
  }

  /// Stores contents again, each with its digest: in packs, all or none. They survive a power cut
  /// once this returns, and are kept until `decide`.
  package func append(
    _ contents: [(bytes: [UInt8], digest: [UInt8])]
  ) async throws(EngineError) -> [ContentLocation] {
    try await makeReady()
    let drafts = contents.map { draft($0.bytes, $0.digest) }
    return try await writer.append(drafts).map { .pack($0) }
  }

  /// Removes files that no location names in any state that a power cut can restore. Readers with
  /// an open file continue. Returns the files that must stay for now, because a copy of the
  /// database is being made or a system call failed.
  package func remove(_ doomed: [ContentFile]) async throws(EngineError) -> [ContentFile] {
    // The removal of the names must not be lost once the files are gone.
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
