// The groups of writes that a device sends in a stream, one after the other, each of which is
// committed once. A device that got no answer cannot know whether the group was committed, and
// sends it again, perhaps much later and to another process. So the commit of a group also records
// its number (WriteStreamRows), and a group that is recorded is answered and not committed.

internal import OndolEngine

/// A group of writes by its place in a stream.
package struct WriteGroup: Sendable {
  let stream: String
  let number: Int64

  private static let day: Int64 = 86_400_000_000

  /// Nil when a stream cannot have this name or the number is below 1.
  ///
  /// - Parameters:
  ///   - stream: the stream's name: what a document's id can be.
  ///   - number: the first group of a stream has 1.
  package init?(stream: String, number: Int64) {
    guard ResourceName.problem(withID: stream) == nil, number > 0 else { return nil }
    self.stream = stream
    self.number = number
  }

  /// The write that records the group as committed. The record lives for 30 days and what is left
  /// of the present one, so that most commits leave the index of ends as it is.
  func write(at now: Int64) -> DocumentWrite {
    var fields: [String: Value] = [WriteStreamRows.Field.group: .integer(number)]
    let days = now / Self.day + 31
    let (end, isTooLate) = days.multipliedReportingOverflow(by: Self.day)
    if !isTooLate, let ends = try? Timestamp(microsecondsSince1970: end) {
      fields[WriteStreamRows.Field.ends] = .timestamp(ends)
    }
    return DocumentWrite(
      path: WriteStreamRows.document(stream), intent: WriteIntent(change: .replace(fields: fields)))
  }
}

extension Rows {
  /// When the group, or one after it in the same stream, was committed; nil when it was not.
  func time(ofCommitted group: WriteGroup) throws(DatabaseError) -> Timestamp? {
    let path = WriteStreamRows.document(group.stream)
    guard let record = try DocumentReader(rows: self).contents(of: path),
      let last = record.value(at: [WriteStreamRows.Field.group])?.integer, last >= group.number
    else { return nil }
    return record.stamps.updateTime
  }
}

extension Database {
  /// Has records of streams removed after their end. To be called before the first group is
  /// committed; all calls but the first find nothing to do.
  ///
  /// - Throws: as `CollectionReference.setTimeToLive(field:)`.
  /// - Complexity: O(1) lookups; the first time one commit.
  package func prepareForWriteGroups() async throws(DatabaseError) {
    try await expire([WriteStreamRows.Field.ends], of: WriteStreamRows.pattern)
  }
}
