// Writes to the tree. Their arguments are compiled on the caller, without suspension; the commit
// goes through TreeCommits.

internal import OndolEngine

/// The result of a write to the tree.
public struct TreeWriteResult: Sendable, Hashable {
  /// The commit; `.missing` when there was nothing to change.
  public let version: Version
  /// The commit's time.
  public let commitTime: Timestamp
}

extension TreeReference {
  // MARK: - Values

  /// Replaces the node and everything below it: children that `value` lacks are removed. Null and
  /// empty values remove the node, and also nodes above it that have nothing left. The node's
  /// priority becomes `andPriority`, and none when that is nil.
  ///
  /// A map may have `.priority`, `.value` and `.sv` as in the Realtime Database's own form. An
  /// array is read back as an array. A value may be a `FieldValue` of `serverTimestamp` or
  /// `increment`.
  ///
  /// - Parameters:
  ///   - value: the node's new value.
  ///   - priority: a number or a text.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.invalidArgument`, naming the place, when the path or a key is wrong, or the tree
  ///   cannot hold a value; `.cancelled` before the commit; `.resourceExhausted` when the commit is
  ///   over its limit; otherwise what a commit throws.
  /// - Complexity: O(log n) and the rows written and removed. A leaf is one row.
  @_disfavoredOverload @discardableResult
  public func setValue(
    _ value: (any FieldContent)?, andPriority priority: (any FieldContent)? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.set(self, value, priority)
    return try await database.commit(tree: [change], durability: durability)
  }

  /// Like the form with one value, for a map whose values are of several types.
  ///
  /// - Parameters:
  ///   - value: the node's new value; nil means null.
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: as the form with one value.
  /// - Complexity: as the form with one value.
  @discardableResult
  public func setValue(
    _ value: [String: (any FieldContent)?], andPriority priority: (any FieldContent)? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.set(self, value, priority)
    return try await database.commit(tree: [change], durability: durability)
  }

  /// Like the form with one value, for an array whose elements are of several types.
  ///
  /// - Parameters:
  ///   - value: the node's new value; nil means null.
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: as the form with one value.
  /// - Complexity: as the form with one value.
  @discardableResult
  public func setValue(
    _ value: [(any FieldContent)?], andPriority priority: (any FieldContent)? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.set(self, value, priority)
    return try await database.commit(tree: [change], durability: durability)
  }

  /// Replaces the node by the encoded `content`; dates become milliseconds since 1970.
  ///
  /// - Parameters:
  ///   - content: the node's new value.
  ///   - priority: a number or a text; nil for none.
  ///   - encoder: how it is encoded.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: as the form with a value.
  /// - Complexity: as the form with a value.
  @discardableResult
  public func setValue<Content: Encodable>(
    from content: Content, andPriority priority: (any FieldContent)? = nil,
    durability: Durability? = nil, encoder: DocumentEncoder = .tree
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.set(self, from: content, priority, encoder)
    return try await database.commit(tree: [change], durability: durability)
  }

  /// Changes the node's priority: a number or a text, or nil for none. Does nothing when the node
  /// does not exist.
  ///
  /// - Parameters:
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.invalidArgument` when it is neither; otherwise as `setValue`.
  /// - Complexity: O(log n).
  @discardableResult
  public func setPriority(
    _ priority: (any FieldContent)?, durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.prioritize(self, priority)
    return try await database.commit(tree: [change], durability: durability)
  }

  /// Replaces several places below the node, all in one commit, and keeps all others.
  ///
  /// A key is a path: `["a": 1, "b/c": 2, "d": nil]` replaces `a`, replaces `b/c` and keeps the
  /// rest of `b`, and removes `d`. A value *replaces* everything at its path: `["a": ["x": 1]]`
  /// leaves nothing of `a` but `x`, as `child("a").setValue` would. To keep the rest of `a`, write
  /// `["a/x": 1]`. A path that ends with `.priority` changes a priority.
  ///
  /// - Parameters:
  ///   - values: the new values by path; nil removes.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.invalidArgument` when a path is wrong, is the node itself, or leads to the same
  ///   place as another or below it; otherwise as `setValue`.
  /// - Complexity: as `setValue`, for each path.
  @discardableResult
  public func updateChildValues(
    _ values: [String: (any FieldContent)?], durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let changes = try TreeCompiler.update(self, values)
    return try await database.commit(tree: changes, durability: durability)
  }

  /// Removes the node and everything below it; no error when it does not exist.
  ///
  /// - Parameter durability: what the commit survives; the database's own when nil.
  /// - Throws: as `setValue`.
  /// - Complexity: O(rows removed).
  @discardableResult
  public func removeValue(durability: Durability? = nil) async throws(DatabaseError)
    -> TreeWriteResult
  {
    let change = TreeChange(path: try place.get(), content: .replace(.nothing))
    return try await database.commit(tree: [change], durability: durability)
  }
}

/// Turns calls into changes: stage 1 of the write path.
enum TreeCompiler {
  static func set(
    _ reference: TreeReference, _ value: (any FieldContent)?, _ priority: (any FieldContent)?
  ) throws(DatabaseError) -> TreeChange {
    let path = try reference.place.get()
    do throws(DatabaseError) {
      guard let input = try value?.encodeField() else {
        return TreeChange(path: path, content: .replace(.nothing))
      }
      let content = try TreeContent(
        input, priority: TreeContent.priority(priority), depth: path.depth)
      return TreeChange(path: path, content: .replace(content))
    } catch {
      throw error.at(path: "\(path)")
    }
  }

  static func set<Content: Encodable>(
    _ reference: TreeReference, from content: Content, _ priority: (any FieldContent)?,
    _ encoder: DocumentEncoder
  ) throws(DatabaseError) -> TreeChange {
    let path = try reference.place.get()
    do throws(DatabaseError) {
      let content = try TreeContent(
        encoder.anyInput(of: content), priority: TreeContent.priority(priority), depth: path.depth)
      return TreeChange(path: path, content: .replace(content))
    } catch {
      throw error.at(path: "\(path)")
    }
  }

  static func prioritize(
    _ reference: TreeReference, _ priority: (any FieldContent)?
  ) throws(DatabaseError) -> TreeChange {
    let path = try reference.place.get()
    do throws(DatabaseError) {
      return TreeChange(path: path, content: .prioritize(try TreeContent.priority(priority)))
    } catch {
      throw error.at(path: "\(path)")
    }
  }

  static func update(
    _ reference: TreeReference, _ values: [String: (any FieldContent)?]
  ) throws(DatabaseError) -> [TreeChange] {
    let base = try reference.place.get()
    var changes: [TreeChange] = []
    changes.reserveCapacity(values.count)
    for (path, value) in values {
      do throws(DatabaseError) {
        changes.append(try change(of: base, path, value))
      } catch {
        throw error.at(path: "\(base)/\(path)")
      }
    }
    changes.sort { TreeKey.compare($0.path.rowKey, $1.path.rowKey) < 0 }
    for (first, second) in zip(changes, changes.dropFirst())
    where first.path.contains(second.path) {
      throw DatabaseError(
        .invalidArgument,
        "one update cannot write to \(first.path), and to \(second.path), which is the same place"
          + " or below it", path: "\(base)")
    }
    return changes
  }

  private static func change(
    of base: TreePath, _ path: String, _ value: (any FieldContent)?
  ) throws(DatabaseError) -> TreeChange {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"))
    if let last = parts.last, String(Substring(last)) == ".priority" {
      var place = base
      for part in parts.dropLast() { place = try place.appending(key: String(Substring(part))) }
      return TreeChange(path: place, content: .prioritize(try TreeContent.priority(value)))
    }
    let place = try base.appending(path: path)
    guard place.depth > base.depth else {
      throw DatabaseError(
        .invalidArgument, "a path of an update is empty; setValue replaces a node")
    }
    guard let input = try value?.encodeField() else {
      return TreeChange(path: place, content: .replace(.nothing))
    }
    return TreeChange(path: place, content: .replace(try TreeContent(input, depth: place.depth)))
  }
}
