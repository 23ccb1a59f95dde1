// Carries out a plan: divides its keys if a large merge can use two cores, merges in steps on the
// merging threads, and puts the result into effect with one manifest edit. The order for every
// output is: write, sync, sync the directory, sync the edit, swap the view, unlink the inputs. A
// crash in between leaves files that the manifest does not list.
//
// Merges yield to other work. Their threads have a low priority, and while commits arrive, a merge
// pauses after each step for as long as the step took, unless writers are waiting for it.

/// One compaction of one shard. Its caller holds the shard's turn.
struct CompactionJob: Sendable {
  private static let stepBytes: UInt64 = 1 << 20

  let storage: Storage
  let shard: Int
  let plan: CompactionPlan
  /// Whether a caller waits for it and must receive its errors.
  let isAskedFor: Bool
  private let start: MergeControl.Start

  /// The result of a run.
  enum Outcome: Sendable {
    case installed
    /// Stopped, or invalidated by a drop of keyspaces. Nothing has changed.
    case abandoned
    /// An input file cannot be read. Merges avoid it from now on, so the next plan differs.
    case obstructed
  }

  /// - Parameter start: taken before the view that `plan` is based on.
  init(
    _ plan: CompactionPlan, shard: Int, _ start: MergeControl.Start, _ storage: Storage,
    isAskedFor: Bool
  ) {
    self.plan = plan
    self.shard = shard
    self.start = start
    self.storage = storage
    self.isAskedFor = isAskedFor
  }

  /// Runs the compaction, and reports to `progress` how many raw bytes each step has merged.
  func run(
    _ progress: (UInt64) async -> Void = { _ in }
  ) async throws(EngineError) -> Outcome {
    if plan.isMove {
      return try await install(RunOutput(segments: plan.segments))
    }
    let isOptional = plan.purpose == .major && !isAskedFor
    let mayTakeReserve =
      isAskedFor || plan.freesSpace || (!isOptional && storage.sequencer.lackOfSpace != nil)
    if !mayTakeReserve { try refuseWithoutRoom() }
    do throws(EngineError) {
      return try await mergeAll(progress)
    } catch {
      guard mayTakeReserve, error.isLackOfSpace, await storage.handOverReserve(error) else {
        throw error
      }
      return try await mergeAll(progress)
    }
  }

  /// Throws if an unrequested merge that frees little space would fill the disk. Such a merge never
  /// uses the reserve. A major one also leaves commits room for two logs.
  private func refuseWithoutRoom() throws(EngineError) {
    guard let free = storage.directory.freeBytes() else { return }
    let forCommits = plan.purpose == .major ? 2 * UInt64(storage.options.logSize) : 0
    if free < plan.sizeBytes + forCommits {
      throw .noSpace(file: "a merge of \(plan.sizeBytes) bytes", errno: SystemFailure.fullDisk)
    }
  }

  /// Merges from the beginning. A temporary failure leaves nothing behind, and neither does an
  /// unreadable file. Any other failure stops all writing.
  private func mergeAll(_ progress: (UInt64) async -> Void) async throws(EngineError) -> Outcome {
    var parts: [MergePart] = []
    do throws(EngineError) {
      parts = try await makeParts()
      if let failure = await merge(parts, progress) { throw failure }
    } catch {
      storage.discard(parts.flatMap(\.made))
      if isObstruction(error) { return .obstructed }
      guard error.isPassing else { throw storage.sequencer.fail(error) }
      throw error
    }
    do throws(EngineError) {
      if !mustStop, try await finish(parts) == .installed { return .installed }
    } catch {
      // After any other failure it is unknown whether the manifest lists the files.
      guard error.isPassing else { throw storage.sequencer.fail(error) }
      storage.discard(parts.flatMap(\.made))
      throw error
    }
    storage.discard(parts.flatMap(\.made))
    return .abandoned
  }

  /// Whether `error` reports an unreadable input. If a caller waits for the merge, temporary device
  /// errors are reported to it instead, and it may try again.
  private func isObstruction(_ error: EngineError) -> Bool {
    if isAskedFor, error.isPassing { return false }
    let files = storage.views.current.shards[shard].state.valueFiles.keys
    return storage.damaged.note(error, plan.segments, files)
  }

  private var mustStop: Bool {
    storage.merging.isStopped || Task.isCancelled
      || storage.merging.start.generation != start.generation
  }

  // MARK: - Parts

  /// The inputs as separate runs, which share their segments with the view.
  private func inputRuns() -> [Run] {
    let open = Dictionary(
      storage.views.current.shards[shard].runs.flatMap(\.segments).map { ($0.metadata.number, $0) },
      uniquingKeysWith: { $1 })
    return plan.inputs.map { input in Run(input.segments.compactMap { open[$0.number] }) }
  }

  private func makeParts() async throws(EngineError) -> [MergePart] {
    let runs = inputRuns()
    let wanted = UInt64(storage.mergers.count)
    var cuts: [[UInt8]] = []
    if plan.rawBytes >= wanted * storage.picker.policy.segmentSize / 4 {
      cuts = try await worker(0).perform { () throws(EngineError) in
        var cuts = IndexCuts()
        for segment in runs.flatMap(\.segments) { try cuts.add(segment) }
        return cuts.chosen(into: Int(wanted))
      }
    }
    let sequences = plan.segments.map(\.minSequence) + plan.segments.map(\.maxSequence)
    guard let first = sequences.min(), let last = sequences.max() else { return [] }
    let bounds: [[UInt8]?] = [nil] + cuts + [nil]
    let files = storage.files(
      for: storage.views.current.shards[shard].state, merging: plan.segments)
    return zip(bounds, bounds.dropFirst()).enumerated().map { index, range in
      let writer = RunWriter(
        files, shard: shard, sequences: first...last,
        keepsTombstones: plan.keepsTombstones, dropped: start.dropped, cuts: plan.cuts)
      return MergePart(
        runs, from: range.0, to: range.1, writer: writer, worker: worker(index))
    }
  }

  private func worker(_ part: Int) -> any Worker {
    storage.mergers[(shard + part) % storage.mergers.count]
  }

  // MARK: - Steps

  private enum Step: Sendable {
    case more(Int, bytes: UInt64)
    case ended(bytes: UInt64)
    case failed(EngineError)
  }

  /// Runs the steps of all parts in parallel until all are complete, one fails, or the merge must
  /// stop.
  private func merge(
    _ parts: [MergePart], _ progress: (UInt64) async -> Void
  ) async -> EngineError? {
    await withTaskGroup(of: Step.self) { group in
      for index in parts.indices {
        group.addTask { await step(parts[index], index) }
      }
      var failure: EngineError?
      for await step in group {
        switch step {
        case .more(let index, let bytes):
          await progress(bytes)
          if failure == nil, !mustStop {
            group.addTask { await self.step(parts[index], index) }
          }
        case .ended(let bytes): await progress(bytes)
        case .failed(let error): failure = failure ?? error
        }
      }
      return failure
    }
  }

  private func step(_ part: MergePart, _ index: Int) async -> Step {
    let environment = storage.environment
    let published = storage.views.published
    let began = environment.now()
    do throws(EngineError) {
      let (hasMore, bytes) = try await part.worker.perform { () throws(EngineError) in
        let before = part.rawBytes
        return (try part.advance(by: Self.stepBytes), part.rawBytes - before)
      }
      guard hasMore else { return .ended(bytes: bytes) }
      if storage.views.published != published, !storage.pressure.isFelt {
        await environment.rest(min(max(0, environment.now() - began), 100_000))
      }
      return .more(index, bytes: bytes)
    } catch {
      return .failed(error)
    }
  }

  // MARK: - The result

  private func finish(_ parts: [MergePart]) async throws(EngineError) -> Outcome {
    let outputs = RunOutput(
      segments: parts.flatMap(\.output.segments), valueFiles: parts.flatMap(\.output.valueFiles))
    if !outputs.segments.isEmpty {
      try await worker(0).perform { [storage] () throws(EngineError) in
        try storage.directory.sync()
      }
    }
    return try await install(outputs)
  }

  private func install(_ outputs: RunOutput) async throws(EngineError) -> Outcome {
    let changes = plan.changes(shard: shard, outputs: outputs)
    let isInstalled = try await storage.performUnlessClosed {
      [self] (storage) throws(EngineError) in
      try storage.install(changes, shard: shard, start)
    }
    guard isInstalled == true else { return .abandoned }
    storage.counters.note(plan, outputs.segments)
    return .installed
  }
}
