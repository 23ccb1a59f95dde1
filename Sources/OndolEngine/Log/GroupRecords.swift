// What a commit says of keyed groups, as a log has it: for each group one record with all of its
// operations and its annotation, sealed under the group's key. Made where a frame is built, and
// taken apart where a commit is read, so that everybody else sees operations. Within a group they
// keep their order; across groups it means nothing, since no row is in two.
//
//   05, group (varint), length (varint), nonce of 12, operations sealed, tag of 16
//
// The key is that of the group for this log. The nonce is random: a place that a power cut took
// without a trace is written again. The commit's number is sealed with it, so that a record is of
// no use in another commit.

/// Records of keyed groups in a commit's payload.
enum GroupRecords {
  private static func context(_ sequence: SequenceNumber, _ group: UInt32) -> [UInt8] {
    var context: [UInt8] = []
    context.appendLittleEndian(sequence.rawValue)
    context.appendLittleEndian(group)
    return context
  }

  /// A commit's bytes, which begin with room for a frame's header, with records in the place of
  /// operations on keyed groups. Their keys must be here.
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
        // A record that could not be opened is of a group that is no more, or that no key opens:
        // LogRewriter has seen to that.
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

  /// What opening the records of a commit has come to.
  struct Opened {
    /// With operations in the place of the records that were opened. The others stay.
    var payload: [UInt8]
    /// The groups of records whose keys are not here.
    var unopened: [UInt32] = []
    /// The groups of records that their keys do not open.
    var forged: [UInt32] = []
  }

  /// A payload with operations in the place of records, where their keys are here; nil where it has
  /// no record.
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

  /// Throws unless there is nothing in a record but what is of its group.
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
