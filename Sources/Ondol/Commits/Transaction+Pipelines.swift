// Pipelines in a transaction: on top of its writes, and with everything that their sources read in
// its footprint.

internal import OndolEngine

extension Transaction {
  /// The rows of a pipeline's answer, the transaction's own writes included. Everything that its
  /// sources and lookups read counts as read: another commit to one of the collections makes the
  /// transaction run again, as with `getDocuments(_:)`.
  ///
  /// - Throws: as `Pipeline.execute()`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: as `Pipeline.execute()`; after a write, also O(n log n) in the writes so far.
  public func execute(_ pipeline: Pipeline) throws(DatabaseError) -> [PipelineResult] {
    try check(pipeline.database, "")
    let plan = try PipelinePlan(pipeline.stages.get())
    do throws(DatabaseError) {
      // A scratch file is written in place: elsewhere there is no transaction.
      let context = PipelineContext(database, try currentRows(), mayWait: true) {
        (read) throws(DatabaseError) in
        try self.noteRead(of: read)
      }
      return try plan.results(context)
    } catch {
      throw noting(error) { [database] (rows) throws(DatabaseError) in
        _ = try plan.results(PipelineContext(database, rows))
      }
    }
  }
}
