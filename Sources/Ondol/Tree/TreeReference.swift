// Places in the tree as an app holds them: values that read nothing until they are used. A chain of
// calls cannot throw, so a wrong path makes the calls throw that use the reference.

internal import OndolEngine

/// A place in the realtime tree, whether a node exists there or not.
///
/// The tree is one JSON value beside the collections: `database.tree` is its root. A node is a leaf
/// (a boolean, a number or a text) or has children. Null and empty values mean that there is no
/// node. The names are those of the Realtime Database. Keys differ from its keys: any UTF-8 of 1 to
/// 1,500 bytes without `/` is a key, except `.value`, `.priority` and `.sv`.
public struct TreeReference: Sendable, Hashable, TreeQuerySource {
  /// The database that the place is in.
  public let database: Database
  let place: Result<TreePath, DatabaseError>

  /// All children of the node, in the order of priorities and keys.
  public var treeQuery: TreeQuery { TreeQuery(self) }

  /// The node at `path` below this one: keys with `/` between. Empty keys are ignored.
  ///
  /// - Parameter path: with an invalid path, the calls that use the reference throw.
  public func child(_ path: String) -> TreeReference {
    moved { (place) throws(DatabaseError) in try place.appending(path: path) }
  }

  /// The child whose key is exactly `key`.
  ///
  /// - Parameter key: taken literally: `a.b@c.kr` needs no escaping. A key with a `/` is invalid,
  ///   and the calls that use the reference throw.
  public func child(key: String) -> TreeReference {
    moved { (place) throws(DatabaseError) in try place.appending(key: key) }
  }

  /// A child that was read here, whose key is known to be valid.
  func child(_ child: TreeChild) -> TreeReference {
    moved { $0.appending(key: child.key, component: child.component) }
  }

  /// A child with a new key of 20 characters: 48 bits of time and 72 random bits. Keys that this
  /// process makes later come after it, even within the same millisecond.
  public func childByAutoId() -> TreeReference {
    child(key: database.pushIDs.next(now: database.now()) { database.random(below: $0) })
  }

  /// The node that this is a child of; nil for the root.
  public var parent: TreeReference? {
    switch place {
    case .failure: self
    case .success(let path):
      path.parent.map { TreeReference(database: database, place: .success($0)) }
    }
  }

  /// The root of the tree.
  public var root: TreeReference { database.tree }

  /// The last key of the path; nil for the root, and when the path is wrong.
  public var key: String? { (try? place.get())?.keys.last }

  /// The keys from the root down with `/` between; for a wrong path, the text it was made from.
  public var path: String {
    switch place {
    case .success(let path): path.keys.joined(separator: "/")
    case .failure(let error): error.path ?? ""
    }
  }

  func moved(
    _ move: (TreePath) throws(DatabaseError) -> TreePath
  ) -> TreeReference {
    let place = place.flatMap { (place) -> Result<TreePath, DatabaseError> in
      do throws(DatabaseError) {
        return .success(try move(place))
      } catch {
        return .failure(error)
      }
    }
    return TreeReference(database: database, place: place)
  }
}

extension TreeReference: CustomStringConvertible {
  /// The path, preceded by a `/`.
  public var description: String { "/" + path }
}

extension Database {
  /// The root of the realtime tree: a JSON tree beside the collections, in the same commits and
  /// snapshots.
  public var tree: TreeReference { TreeReference(database: self, place: .success(.root)) }
}
