// The damage that merges have found. An unreadable block is no reason to stop writing, because no
// new data depends on it. Its file stays unchanged, reads of the block continue to report the
// damage, and merges avoid the file; see Barriers. This list exists only in memory. After the next
// open, the first merge that reads the block finds it again before it writes anything.

/// Segments and value files that merges avoid.
final class DamagedFiles: Sendable {
  private struct Finding: Sendable {
    var error: EngineError
    /// Whether a later read of the device may succeed.
    var isPassing: Bool
  }

  private let findings = Guarded<[FileNumber: Finding]>([:])
  private let report: (@Sendable (EngineError) -> Void)?

  /// - Parameter report: called once for each file.
  init(report: (@Sendable (EngineError) -> Void)?) {
    self.report = report
  }

  /// The segments and value files that merges avoid.
  var barriers: Barriers { Barriers(findings.withLock { Set($0.keys) }) }

  /// Records an error from reading one of `segments` or a value file of `valueFiles`. Returns false
  /// if the error has another cause.
  func note(
    _ error: EngineError, _ segments: [SegmentMetadata],
    _ valueFiles: Dictionary<
      FileNumber, ValueFileMetadata
    >.Keys
  ) -> Bool {
    guard let (name, isPassing) = Self.place(of: error) else { return false }
    let segment = FileNumber.parse(name, suffix: ".seg").flatMap { number in
      segments.contains { $0.number == number } ? number : nil
    }
    let valueFile = FileNumber.parse(name, suffix: ".val").flatMap { number in
      valueFiles.contains(number) ? number : nil
    }
    guard let number = segment ?? valueFile else { return false }
    let isNew = findings.withLock { findings in
      findings.updateValue(Finding(error: error, isPassing: isPassing), forKey: number) == nil
    }
    if isNew { report?(error) }
    return true
  }

  /// The file that an error reports as unreadable.
  private static func place(of error: EngineError) -> (name: String, isPassing: Bool)? {
    switch error {
    case .corrupt(let file, _, _): (file, false)
    case .io(_, let file, _, _) where error.isMissingFile: (file, false)
    case .io(let call, let file, _, let errno)
    where call.isRead && SystemFailure(errno: errno) == .other:
      (file, true)
    default: nil
    }
  }

  /// Allows another attempt at files that the device failed to read.
  func forgetUnreadable() {
    findings.withLock { findings in findings = findings.filter { !$0.value.isPassing } }
  }

  /// The errors of the files that `shards` still contain. With a `border`, only of files with a
  /// number before it.
  func current(in shards: [ShardState], before border: FileNumber? = nil) -> [EngineError] {
    let findings = findings.withLock { $0 }
    if findings.isEmpty { return [] }
    var files = Set(shards.flatMap(\.segments).map(\.number))
    for shard in shards { files.formUnion(shard.valueFiles.keys) }
    if let border { files = files.filter { $0 < border } }
    return findings.filter { files.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value.error)
  }
}
