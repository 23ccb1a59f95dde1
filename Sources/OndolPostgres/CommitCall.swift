// A group of commits in the form that the server's function takes: keys, values and commits as
// parallel arrays, and separately the positions in keys that only the server can fill in.

internal import OndolEngine

/// The parameters of a commit, except the last one.
struct CommitCall: Sendable {
  private(set) var parameters = ParameterList()

  /// The size limit of one group. The server accepts a gigabyte per message, and copies it several
  /// times.
  static let mostBytes = 512 << 20

  /// - Throws: `.invalid` for a group that no store can commit, and `.tooLarge`.
  init(_ group: RemoteGroup, in database: Int32) throws(EngineError) {
    guard let known = Int64(exactly: group.known.sequence.rawValue),
      let count = Int32(exactly: group.commits.count), count > 0
    else { throw .invalid(reason: "a group of \(group.commits.count) commits") }
    var (keys, values): ([[UInt8]?], [[UInt8]?]) = ([], [])
    var (offsets, stamped, places, forms): ([Int32], [Int32], [Int32], [Int32]) = ([], [], [], [])
    var size = 0
    var isWide = group.guardedKeys.contains { $0.count > Schema.longestHead }
    for (number, writes) in group.commits.enumerated() {
      for write in writes {
        keys.append(write.key)
        values.append(write.value)
        offsets.append(Int32(truncatingIfNeeded: number))
        size += write.key.count + (write.value?.count ?? 0) + 16
        isWide = isWide || write.key.count > Schema.longestHead
        for stamp in write.keyStamps {
          guard stamp.offset >= 0, stamp.offset <= write.key.count - 8 else {
            throw .invalid(reason: "a stamp outside its key")
          }
          stamped.append(Int32(truncatingIfNeeded: keys.count))
          places.append(Int32(truncatingIfNeeded: stamp.offset))
          forms.append(Int32(stamp.form.code))
        }
      }
    }
    guard group.annotations.isEmpty || group.annotations.count == group.commits.count else {
      throw .invalid(reason: "\(group.annotations.count) annotations of \(count) commits")
    }
    let whole = group.annotations.reduce(size) { $0 + $1.count }
    guard whole <= Self.mostBytes else { throw .tooLarge(bytes: whole, limit: Self.mostBytes) }
    parameters.add(database)
    parameters.add(known)
    parameters.add(group.known.time)
    parameters.add(group.origin)
    parameters.add(group.part)
    parameters.add(group.guardedKeys.map { $0 })
    parameters.add(group.guardedRanges.map(\.lower))
    parameters.add(group.guardedRanges.map(\.upper))
    parameters.add(keys)
    parameters.add(values)
    parameters.add(offsets)
    parameters.add(count)
    parameters.add(Int64(size))
    parameters.add(stamped)
    parameters.add(places)
    parameters.add(forms)
    parameters.add(isWide)
    parameters.add(group.annotations.map { $0 })
  }

  /// All parameters.
  /// - Parameter flush: whether the lock on the commit order is held until the group is durable.
  func parameters(flush: Bool) -> ParameterList {
    var parameters = parameters
    parameters.add(flush)
    return parameters
  }
}
