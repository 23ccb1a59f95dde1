// Finds the value of a pointer in a row: through the value files of the row's run. A run holds
// them, so that a view that reads an old run keeps what its rows point to.

/// Value files by number.
struct ValueFileTable: Sendable {
  private let files: [ValueFile]

  /// `files` may contain some more than once.
  init(_ files: [ValueFile]) {
    var sorted = files.sorted { $0.number < $1.number }
    // One object for each file, so equal numbers are adjacent.
    var last: FileNumber?
    sorted.removeAll { file in
      defer { last = file.number }
      return file.number == last
    }
    self.files = sorted
  }

  /// All of them, by number.
  var all: [ValueFile] { files }

  /// The file that `pointer` leads into.
  func file(of pointer: ValuePointer) throws(EngineError) -> ValueFile {
    var low = 0
    var high = files.count
    while low < high {
      let middle = (low + high) / 2
      if files[middle].number < pointer.file { low = middle + 1 } else { high = middle }
    }
    guard low < files.count, files[low].number == pointer.file else {
      throw .corrupt(
        file: pointer.file.valueFileName, offset: pointer.offset,
        reason: "a row points to a value file that its segment does not name")
    }
    return files[low]
  }
}

extension Run {
  /// The block of the value that a row's pointer leads to; nil when it must be read from the file
  /// and may not be.
  ///
  /// - Parameter keeps: whether it then enters the cache.
  func value(
    at pointer: ValuePointer, mayBlock: Bool, keeps: Bool = true
  ) throws(EngineError) -> PinnedBlock? {
    let file = try valueFiles.file(of: pointer)
    if let pin = file.pinned(pointer) { return pin }
    return mayBlock ? try file.load(pointer, keep: keeps) : nil
  }
}

extension ValuePointer {
  /// The pointer in a row of a block. Blocks are validated, so its length is right.
  init(row bytes: RawSpan) throws(EngineError) {
    do throws(MalformedBytes) {
      self = try ValuePointer(bytes)
    } catch {
      throw .invalid(reason: error.reason)
    }
  }
}

/// The last separated value that a cursor was asked for, pinned.
final class HeldValue {
  private let run: Run
  private let keeps: Bool
  private let pin = HeldBlocks()
  private var pointer: ValuePointer?

  init(_ run: Run, keeps: Bool) {
    self.run = run
    self.keeps = keeps
  }

  deinit {
    pin.free()
  }

  /// The value that the pointer in a row, `bytes`, leads to. Asking again for the same one returns
  /// the same bytes; another one replaces them. Throws `.wouldBlock` when it must be read from disk
  /// and may not be.
  @_lifetime(borrow self)
  func value(at bytes: RawSpan, mayBlock: Bool) throws(EngineError) -> RawSpan {
    let wanted = try ValuePointer(row: bytes)
    if wanted == pointer, let block = pin[.data] { return block.value(0, heldBy: self) }
    pointer = nil
    guard let value = try run.value(at: wanted, mayBlock: mayBlock, keeps: keeps) else {
      throw .wouldBlock
    }
    let block = pin.hold(value, at: .data)
    pointer = wanted
    return block.value(0, heldBy: self)
  }
}
