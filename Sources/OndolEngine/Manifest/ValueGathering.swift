// Decides which value files a flush or a merge empties. A flush creates a file no larger than a
// memtable, and every segment of a level below may refer to every file. With many small files, the
// manifest would grow quadratically with the shard, and so would the number of files that an open
// must look for. So merges that read the values of small files move them into larger ones, rarely
// enough that each value is copied once or twice in its life.

/// When values are moved together. This is pure arithmetic over the manifest's state.
struct ValueGathering: Sendable {
  /// Up to this many value files per shard cause no problem.
  static let fewFiles = 128
  /// The intended number of files in a shard of any size.
  private static let wantedFiles: UInt64 = 1024
  /// Values move only to files this many times as large as their previous ones, or to files that
  /// stay.
  private static let growth: UInt64 = 16

  /// The size at which a value file of the shard is finished.
  let fileSize: UInt64
  private let values: ValueFileStates

  /// - Parameter fileSize: the largest file size in a small shard.
  init(_ values: ValueFileStates, fileSize: Int) {
    self.values = values
    let bytes = values.files.count > Self.fewFiles ? values.sizeBytes : 0
    self.fileSize = max(UInt64(fileSize), bytes / Self.wantedFiles)
  }

  /// The files whose values a merge of `segments` moves: those that are more than three tenths
  /// dead, and small ones that together make up a large one.
  func filesToEmpty(merging segments: [SegmentMetadata]) -> Set<FileNumber> {
    values.files(deadTenths: 3).union(smallFiles(in: segments))
  }

  private func smallFiles(in segments: [SegmentMetadata]) -> Set<FileNumber> {
    guard values.files.count > Self.fewFiles else { return [] }
    var met: [FileNumber: UInt64] = [:]
    for reference in segments.lazy.flatMap(\.valueReferences) {
      met[reference.file, default: 0] &+= reference.bytes
    }
    let small = met.keys.compactMap { values.files[$0] }.filter { $0.sizeBytes < fileSize / 2 }
      .sorted { ($0.sizeBytes, $0.number) < ($1.sizeBytes, $1.number) }
    // As many as possible, smallest first.
    var (bytes, count): (UInt64, Int) = (0, 0)
    for (index, file) in small.enumerated() {
      bytes &+= min(file.sizeBytes, met[file.number] ?? 0)
      if bytes >= min(fileSize, Self.growth * file.sizeBytes) { count = index + 1 }
    }
    return Set(small.prefix(count).map(\.number))
  }
}
