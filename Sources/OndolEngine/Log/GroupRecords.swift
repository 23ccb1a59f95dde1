// A commit's operations on keyed groups in a log: for each group one record with all of its
// operations and its annotation, sealed under the group's key. Records are made when a frame is
// built and opened when a commit is read, so that all other code sees operations. Within a group,
// operations keep their order; across groups order is meaningless, because no row is in two.
//
//   05, group (varint), length (varint), nonce of 12, operations sealed, tag of 16
//
// The key is that of the group for this log. The nonce is random, because a position that a power
// cut erased without a trace is written again. The commit's number is authenticated with the
// record, so that it is useless in another commit.

/// Records of keyed groups in a commit's payload.
enum GroupRecords {
  private static func context(_ sequence: SequenceNumber, _ group: UInt32) -> [UInt8] {
    var context: [UInt8] = []
    context.appendLittleEndian(sequence.rawValue)
    context.appendLittleEndian(group)
    return context
  }

  /// A commit's bytes, which begin with room for a frame's header, with operations on keyed groups
  /// replaced by records. Their keys must be available.
  static func seal(
    _ bytes: [UInt8], _ sequence: SequenceNumber, by seals: GroupSeals
  ) -> [UInt8] {
    var output = Array(bytes.prefix(FrameHeader.length))
    output.reserveCapacity(bytes.count + 64)
    let payload = bytes.bytes.extracting(droppingFirst: FrameHeader.length)
    var parts: [(group: UInt32, bytes: [UInt8])] = []
    var reader = OperationReader(payload)
    do throws(MalformedBytes) {
      while let item = try reader.nextItem() {
        // A record that could not be opened belongs to a dropped group, or no key opens it:
        // LogRewriter has checked that.
        if item.isRecord { continue }
        guard let group = item.group else {
          output.append(payload.extracting(item.range))
          continue
        }
        let place = parts.firstIndex { $0.group == group } ?? parts.count
        if place == parts.count { parts.append((group, [])) }
        parts[place].bytes.append(payload.extracting(item.range))
      }
    } catch {
      preconditionFailure("a batch of our own making cannot be malformed: \(error)")
    }
    for part in parts { append(part.bytes, of: part.group, sequence, by: seals, to: &output) }
    return output
  }

  private static func append(
    _ operations: [UInt8], of group: UInt32, _ sequence: SequenceNumber, by seals: GroupSeals,
    to output: inout [UInt8]
  ) {
    guard let seal = seals.seal(of: group) else {
      preconditionFailure("a commit to group \(group) without its key")
    }
    output.append(GroupRecord.kind)
    output.appendVarint(UInt64(group))
    output.appendVarint(GroupRecord.sealedLength(of: operations.count))
    let nonce = SealNonce(
      place: seal.random(), extra: UInt32(truncatingIfNeeded: seal.random()))
    output += nonce.bytes
    let start = output.count
    output += operations
    seal.seal(&output, from: start, nonce, context: context(sequence, group))
  }

  /// The result of opening the records of a commit.
  struct Opened {
    /// With operations in place of the opened records. The others stay.
    var payload: [UInt8]
    /// The groups of records whose keys are missing.
    var unopened: [UInt32] = []
    /// The groups of records that their keys do not open.
    var forged: [UInt32] = []
  }

  /// A payload with records replaced by operations if their keys are available; nil when it has no
  /// record.
  static func open(
    _ payload: RawSpan, _ sequence: SequenceNumber, by seals: GroupSeals
  ) throws(MalformedBytes) -> Opened? {
    var records: [OperationReader.Item] = []
    var reader = OperationReader(payload)
    while let item = try reader.nextItem() {
      if item.isRecord {
        records.append(item)
      } else if !records.isEmpty {
        throw MalformedBytes(at: item.range.lowerBound, "an operation behind those of groups")
      }
    }
    guard let first = records.first else { return nil }
    var opened = Opened(payload: payload.extracting(first: first.range.lowerBound).array)
    for record in records {
      guard let group = record.group, let seal = seals.opening(of: group) else {
        if let group = record.group { opened.unopened.append(group) }
        opened.payload.append(payload.extracting(record.range))
        continue
      }
      var sealed = ByteReader(payload.extracting(record.body))
      let nonce = SealNonce(place: try sealed.littleEndian(), extra: try sealed.littleEndian())
      let start = opened.payload.count
      guard
        seal.open(
          try sealed.take(sealed.remaining), nonce, context: context(sequence, group),
          appendingTo: &opened.payload)
      else {
        opened.forged.append(group)
        opened.payload.append(payload.extracting(record.range))
        continue
      }
      try refuseOthers(Array(opened.payload[start...]), group)
    }
    return opened
  }

  /// Throws unless a record contains only data of its group.
  private static func refuseOthers(
    _ operations: [UInt8], _ group: UInt32
  ) throws(MalformedBytes) {
    var reader = OperationReader(operations.bytes)
    while let item = try reader.nextItem() {
      guard item.group == group, !item.isRecord else {
        throw MalformedBytes(at: item.range.lowerBound, "what is not of group \(group) in its part")
      }
    }
  }
}
