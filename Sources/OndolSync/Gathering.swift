// What a listen stream says, gathered until it is one state of the server. The protocol sends
// documents one by one, and then a message that all of them are as of one moment. This code works
// on messages alone, without waiting. What it makes of them is all that the rest of this module
// knows of the stream.

#if Sync
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// What a message of the server completes.
  enum GatheredEvent {
    case nothing
    /// All that was gathered is as of this moment.
    case moment(Timestamp, token: [UInt8])
    /// The server no longer listens for a follow.
    case failed(Int64, DatabaseError)
  }

  /// The state of one listen stream.
  struct Gathering {
    /// A target of the stream.
    struct Target {
      /// Nil for one that only makes the server name a moment.
      let follow: FollowedQuery?
      /// Whether the server sends all documents, and not what changed since a token.
      var isFresh: Bool
      var isCurrent = false
      /// The documents that a fresh one has had.
      var seen: Set<PathDigest> = []
      /// How many documents there are, when the server thinks that the device is wrong about it.
      var filterCount: Int?

      /// Whether the device has never had all documents of it.
      var isLoading: Bool { isFresh && follow?.isComplete == false }
    }

    private let values: ValueMapping
    private(set) var targets: [Int32: Target] = [:]
    private var changes: [DocumentPath: ServerChange] = [:]
    /// Changes of a first load that belong to a moment.
    private var held: Set<DocumentPath> = []
    private var nextID: Int32 = 1
    private var lastMoment: Timestamp?

    init(_ values: ValueMapping) {
      self.values = values
    }

    // MARK: - Requests

    /// Asks for a follow.
    ///
    /// - Parameter isFresh: whether to begin with nothing, whatever the follow has.
    mutating func add(_ follow: FollowedQuery, isFresh: Bool = false) -> WireListenRequest {
      let token = isFresh ? nil : follow.token
      targets[nextID] = Target(follow: follow, isFresh: token == nil)
      let id = nextID
      nextID += 1
      return .with {
        $0.database = "\(values.database)"
        $0.addTarget.targetID = id
        $0.addTarget.query = follow.target(in: values.database)
        if let token {
          $0.addTarget.resumeToken = Data(token)
          $0.addTarget.expectedCount.value = Int32(clamping: follow.count)
        }
      }
    }

    /// Asks for any moment from now on.
    mutating func probe(_ path: DocumentPath) -> WireListenRequest {
      targets[nextID] = Target(follow: nil, isFresh: true)
      let id = nextID
      nextID += 1
      return .with {
        $0.database = "\(values.database)"
        $0.addTarget.targetID = id
        $0.addTarget.documents.documents = [values.database.name(of: path)]
        $0.addTarget.once = true
      }
    }

    /// Ends a follow; nil when the stream does not have it.
    mutating func remove(_ number: Int64) -> WireListenRequest? {
      guard let id = targets.first(where: { $0.value.follow?.number == number })?.key else {
        return nil
      }
      forget(id)
      return .with {
        $0.database = "\(values.database)"
        $0.removeTarget = id
      }
    }

    var isProbing: Bool { targets.values.contains { $0.follow == nil } }

    /// Whether nothing but the changes of documents belongs to the next moment.
    var isOnlyOfChanges: Bool {
      targets.values.allSatisfy { $0.follow != nil && !$0.isFresh && $0.filterCount == nil }
    }

    private mutating func forget(_ id: Int32) {
      guard let target = targets.removeValue(forKey: id), let follow = target.follow else { return }
      forget(changesOf: follow.number)
    }

    private mutating func forget(changesOf number: Int64) {
      for path in changes.keys {
        changes[path]?.joined.remove(number)
        changes[path]?.left.remove(number)
      }
      changes = changes.filter { !$0.value.joined.isEmpty || !$0.value.left.isEmpty }
    }

    // MARK: - Messages

    /// Throws `.dataLoss` for what no honest server sends, and the errors of invalid values.
    mutating func take(_ message: WireListenResponse) throws(DatabaseError) -> GatheredEvent {
      switch message.responseType {
      case .targetChange(let change)?: return try take(change)
      case .documentChange(let change)?: try take(change)
      case .documentDelete(let change)?:
        try leave(change.document, change.removedTargetIds, .deleted)
      case .documentRemove(let change)?: try leave(change.document, change.removedTargetIds, .left)
      case .filter(let filter)?:
        targets[filter.targetID]?.filterCount = Int(filter.count)
      case nil: throw Self.dishonest("an empty message")
      }
      return .nothing
    }

    private mutating func take(
      _ change: WireTargetChange
    ) throws(DatabaseError) -> GatheredEvent {
      switch change.targetChangeType {
      case .add: break
      case .remove:
        for id in change.targetIds {
          guard let follow = targets[id]?.follow else {
            forget(id)
            continue
          }
          forget(id)
          let code = DatabaseError.Code(rawValue: Int(change.cause.code)) ?? .unknown
          return .failed(
            follow.number,
            DatabaseError(
              change.hasCause ? code : .unavailable,
              change.hasCause ? change.cause.message : "the server has ended the listener"))
        }
      case .reset:
        for id in change.targetIds {
          guard let follow = targets[id]?.follow else { continue }
          forget(changesOf: follow.number)
          targets[id]?.isFresh = true
          targets[id]?.isCurrent = false
          targets[id]?.seen = []
        }
      case .current:
        for id in change.targetIds { targets[id]?.isCurrent = true }
      case .noChange:
        guard change.targetIds.isEmpty, change.hasReadTime, !targets.isEmpty,
          targets.values.allSatisfy(\.isCurrent)
        else { break }
        let time = try values.timestamp(change.readTime)
        if let lastMoment, time < lastMoment {
          throw Self.dishonest("a moment of \(time) after one of \(lastMoment)")
        }
        lastMoment = time
        return .moment(time, token: [UInt8](change.resumeToken))
      default: break
      }
      return .nothing
    }

    private func follows(_ ids: [Int32]) -> [FollowedQuery] {
      ids.compactMap { targets[$0]?.follow }
    }

    private mutating func take(_ change: WireDocumentChange) throws(DatabaseError) {
      let (shown, left) = (follows(change.targetIds), follows(change.removedTargetIds))
      guard !shown.isEmpty || !left.isEmpty else { return }
      let path = try values.database.path(of: change.document.name)
      for follow in shown where !follow.contains(path) {
        throw Self.dishonest("\(path) in a follow of other documents")
      }
      let document = ServerDocument(
        fields: try values.fields(change.document.fields),
        updated: try values.timestamp(change.document.updateTime))
      var known = changes[path] ?? ServerChange(state: .left)
      known.state = .shown(document)
      known.joined.formUnion(shown.map(\.number))
      known.left.subtract(shown.map(\.number))
      known.left.formUnion(left.map(\.number))
      known.joined.subtract(left.map(\.number))
      changes[path] = known
      let digest = PathDigest(path)
      for id in change.targetIds where targets[id]?.isFresh == true {
        targets[id]?.seen.insert(digest)
      }
    }

    private mutating func leave(
      _ name: String, _ ids: [Int32], _ state: ServerChange.State
    ) throws(DatabaseError) {
      let numbers = follows(ids).map(\.number)
      guard !numbers.isEmpty else { return }
      let path = try values.database.path(of: name)
      var known = changes[path] ?? ServerChange(state: state)
      if case .deleted = state { known.state = .deleted }
      known.left.formUnion(numbers)
      known.joined.subtract(numbers)
      if known.joined.isEmpty, case .shown = known.state { known.state = state }
      changes[path] = known
      let digest = PathDigest(path)
      for id in ids { targets[id]?.seen.remove(digest) }
    }

    private static func dishonest(_ what: String) -> DatabaseError {
      DatabaseError(.dataLoss, "the server has sent \(what)")
    }

    // MARK: - Taking

    /// The changes of first loads, once there are this many, so that they need not stay in memory.
    mutating func takeLoaded(atLeast count: Int) -> ServerMoment? {
      guard changes.count - held.count >= count else { return nil }
      let loading = Set(
        targets.values.filter(\.isLoading).compactMap { $0.follow?.number })
      let taken = changes.filter { path, change in
        !held.contains(path) && change.left.isEmpty && change.joined.isSubset(of: loading)
      }
      // Looked at once: whatever remains belongs to the moment.
      held.formUnion(changes.keys.filter { taken[$0] == nil })
      guard !taken.isEmpty else { return nil }
      for path in taken.keys { changes[path] = nil }
      return ServerMoment(changes: taken, loading: loading)
    }

    /// Puts changes back that belong to the moment.
    mutating func hold(_ kept: [DocumentPath: ServerChange]) {
      for (path, change) in kept {
        held.insert(path)
        guard var newer = changes[path] else {
          changes[path] = change
          continue
        }
        newer.joined.formUnion(change.joined.subtracting(newer.left))
        changes[path] = newer
      }
    }

    /// All that was gathered, which is as of a moment.
    mutating func takeMoment(_ time: Timestamp, _ token: [UInt8]) -> ServerMoment {
      var moment = ServerMoment(changes: changes, time: time)
      for target in targets.values {
        if let follow = target.follow { moment.tokens[follow.number] = token }
      }
      changes = [:]
      held = []
      return moment
    }

    /// The follows that had all their documents again, with these documents.
    var refreshed: [(follow: FollowedQuery, seen: Set<PathDigest>)] {
      targets.values.filter(\.isFresh).compactMap { target in
        target.follow.map { ($0, target.seen) }
      }
    }

    /// Goes on after a moment was shown, with the follows as they are now. Returns the follows that
    /// device and server disagree about.
    mutating func goOn(with follows: [Int64: FollowedQuery]) -> [FollowedQuery] {
      var wrong: [FollowedQuery] = []
      for (id, target) in targets {
        guard let number = target.follow?.number, let follow = follows[number] else {
          // A probe has done its work.
          if target.follow == nil { targets[id] = nil }
          continue
        }
        if let count = target.filterCount, Int64(count) != follow.count { wrong.append(follow) }
        targets[id] = Target(follow: follow, isFresh: false, isCurrent: true)
      }
      return wrong
    }
  }

  extension FollowedQuery {
    /// Whether the document can be in the follow.
    func contains(_ path: DocumentPath) -> Bool {
      switch source {
      case .collection(let collection): path.collection == collection
      case .group(let id): path.collection.collectionID.utf8.elementsEqual(id.utf8)
      }
    }
  }
#endif
