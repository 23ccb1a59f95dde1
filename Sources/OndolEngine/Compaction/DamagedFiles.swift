// What merges have found damaged. A block that cannot be read is no reason to stop writing: nothing
// new hangs on it. Its file stays as it is, reads of the block go on to say that it is damaged, and
// merges go around it; see Barriers. Kept in memory alone: after the next opening the first merge
// that meets the block finds it again, and writes nothing before.

/// Segments and value files that merges leave alone.
final class DamagedFiles: Sendable {
  private struct Finding: Sendable {
    var error: EngineError
    /// Whether the device may yet give the bytes.
    var isPassing: Bool
  }

  private let findings = Guarded<[FileNumber: Finding]>([:])
  private let report: (@Sendable (EngineError) -> Void)?

  /// - Parameter report: told of each file once.
  init(report: (@Sendable (EngineError) -> Void)?) {
    self.report = report
  }

  /// What merges go around.
  var barriers: Barriers { Barriers(findings.withLock { Set($0.keys) }) }

  /// Takes note of an error that reading one of `segments`, or a value file of `valueFiles`, came
  /// to; false when it is about something else.
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

  /// The file that an error calls unreadable.
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

  /// Has files tried again that the device would not read.
  func forgetUnreadable() {
    findings.withLock { findings in findings = findings.filter { !$0.value.isPassing } }
  }

  /// The names of those that `shards` still have, and what is wrong with them; of those with a
  /// number before `border`, if there is one.
  func current(in shards: [ShardState], before border: FileNumber? = nil) -> [EngineError] {
    let findings = findings.withLock { $0 }
    if findings.isEmpty { return [] }
    var files = Set(shards.flatMap(\.segments).map(\.number))
    for shard in shards { files.formUnion(shard.valueFiles.keys) }
    if let border { files = files.filter { $0 < border } }
    return findings.filter { files.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value.error)
  }
}
