// Places in the tree as an app holds them: values that touch nothing until they are asked. A wrong
// path makes the calls throw that use it, because a way that is written as a chain of calls cannot.

internal import OndolEngine

/// A place in the realtime tree, whether there is something or not.
///
/// The tree is one JSON value beside the collections: `database.tree` is its root. A node is a leaf
/// (a boolean, a number or a text) or has children; null and what is empty is nothing. The names
/// are those of the Realtime Database. Keys differ from its: any UTF-8 without `/` is one, of 1 to
/// 1,500 bytes, but for `.value`, `.priority` and `.sv`.
public struct TreeReference: Sendable, Hashable, TreeQuerySource {
  /// The database this is a place of.
  public let database: Database
  let place: Result<TreePath, DatabaseError>

  /// All children of the node, in the order of priorities and keys.
  public var treeQuery: TreeQuery { TreeQuery(self) }

  /// The node at `path` below this one: keys with `/` between. Empty keys count for nothing.
  ///
  /// - Parameter path: a wrong one makes the calls throw that use the reference.
  public func child(_ path: String) -> TreeReference {
    moved { (place) throws(DatabaseError) in try place.appending(path: path) }
  }

  /// The child whose key is exactly `key`.
  ///
  /// - Parameter key: taken as it is: `a.b@c.kr` needs no replacing. With a `/` it is no key, and
  ///   the calls throw that use the reference.
  public func child(key: String) -> TreeReference {
    moved { (place) throws(DatabaseError) in try place.appending(key: key) }
  }

  /// A child that was read here: its key is known to be one.
  func child(_ child: TreeChild) -> TreeReference {
    moved { $0.appending(key: child.key, component: child.component) }
  }

  /// A child with a new key of 20 characters: 48 bits of time and 72 of chance, such that keys made
  /// later by this process come behind it, also within a millisecond.
  public func childByAutoId() -> TreeReference {
    child(key: database.pushIDs.next(now: database.now()) { database.random(below: $0) })
  }

  /// The node this is a child of; nil for the root.
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

  /// The keys from the root down with `/` between; what was wrong when the path is.
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
  /// The path, with a `/` in front.
  public var description: String { "/" + path }
}

extension Database {
  /// The root of the realtime tree: a JSON tree beside the collections, in the same commits and
  /// snapshots.
  public var tree: TreeReference { TreeReference(database: self, place: .success(.root)) }
}
