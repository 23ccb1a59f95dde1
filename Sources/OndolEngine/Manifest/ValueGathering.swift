// Which value files a flush or a merge empties. A flush leaves a file as small as a memtable, and
// every segment of a level below may lead into every file: with many small files the manifest
// would grow with the square of the shard, and so would the files that an opening must look for.
// So merges that meet the values of small files put them into larger ones, seldom enough that each
// value is copied once or twice in its life.

/// When values are put together. Pure arithmetic over the manifest's state.
struct ValueGathering: Sendable {
  /// So few value files of a shard trouble nobody.
  static let fewFiles = 128
  /// A shard of any size is to have about so many files.
  private static let wantedFiles: UInt64 = 1024
  /// Values move only to files so many times as large as those they were in, or to such as stay.
  private static let growth: UInt64 = 16

  /// Bytes after which a value file of the shard is finished.
  let fileSize: UInt64
  private let values: ValueFileStates

  /// - Parameter fileSize: what a small shard's files have at most.
  init(_ values: ValueFileStates, fileSize: Int) {
    self.values = values
    let bytes = values.files.count > Self.fewFiles ? values.sizeBytes : 0
    self.fileSize = max(UInt64(fileSize), bytes / Self.wantedFiles)
  }

  /// The files whose values a merge of `segments` takes along: those of which more than three
  /// tenths are dead, and small ones that make a large one together.
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
    // As many as may be, the smallest first.
    var (bytes, count): (UInt64, Int) = (0, 0)
    for (index, file) in small.enumerated() {
      bytes &+= min(file.sizeBytes, met[file.number] ?? 0)
      if bytes >= min(fileSize, Self.growth * file.sizeBytes) { count = index + 1 }
    }
    return Set(small.prefix(count).map(\.number))
  }
}
