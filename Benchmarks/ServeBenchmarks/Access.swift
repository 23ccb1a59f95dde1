// What rules and accounts cost: lists as a person and as an administrator, a rule that reads
// another document, and a sign-in over HTTP beside one in this process. They have a server and a
// database of their own, because rules hold for every caller of a database.

#if Server
  import BenchmarkKit
  import Foundation
  import GRPCCore
  import Logging
  import Ondol
  import OndolAccounts
  import OndolServer
  import OndolWire
  import SwiftProtobuf

  #if canImport(FoundationNetworking)
    import FoundationNetworking
  #endif

  /// The measurements of access.
  struct AccessTrial: Sendable {
    private static let documents = 10_000
    private static let email = "ann@example.com"
    private static let password = "correct horse battery"
    private static let rules = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          match /own/{item} { allow read: if resource.data.owner == request.auth.uid; }
          match /rooms/{item} {
            allow read: if request.auth != null && resource.data.number >= 0
              && resource.data.owner == request.auth.uid
              && get(/databases/$(database)/documents/members/$(request.auth.uid)).data.active;
          }
        }
      }
      """

    let turns: Int
    let directory: String

    func run(_ result: inout SuiteResult) async throws {
      let database = try await Database.open(at: directory + "/access")
      var options = Server.Options()
      (options.firestorePort, options.authPort) = (0, 0)
      options.logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let ready = AsyncStream.makeStream(of: Server.Addresses.self)
      let running = Task { try await server.run { _ = ready.continuation.yield($0) } }
      var addresses = ready.stream.makeAsyncIterator()
      guard let address = await addresses.next(), let auth = address.auth,
        let port = Int(address.firestore.split(separator: ":")[1])
      else { return }
      let accounts = try await Accounts.open(in: database, options: options.accounts)
      let (uid, token) = try await signUp(at: auth)
      try await fill(database, of: uid)
      _ = try await ServerRules.deploy(RulesTexts(firestore: Self.rules), to: database)
      result = try await Client.with(port: port) { [self, result] client in
        var (result, client) = (result, client)
        client.metadata = ["authorization": "Bearer \(token)"]
        let person = client
        client.metadata = ["authorization": "Bearer owner"]
        try await measureLists(person, administrator: client, uid, &result)
        return result
      }
      try await measureSignIns(at: auth, accounts, &result)
      server.shutDown()
      try await running.value
      try await database.close()
    }

    private func fill(_ database: Database, of uid: String) async throws {
      for collection in ["own", "rooms"] {
        for start in stride(from: 0, to: Self.documents, by: 1_000) {
          let batch = database.batch()
          for number in start..<start + 1_000 {
            try batch.setData(
              ["owner": uid, "number": number, "text": String(repeating: "abcdefgh", count: 40)],
              forDocument: database.document("\(collection)/d\(number)"))
          }
          try await batch.commit()
        }
      }
      try await database.document("members/\(uid)").setData(["active": true])
    }

    // MARK: - Lists

    private func list(_ client: Client, _ collection: String, of owner: String?) async throws {
      let count = try await client.count(
        WireRunQueryRequest.with {
          $0.parent = "projects/bench/databases/(default)/documents"
          $0.structuredQuery.from = [.with { $0.collectionID = collection }]
          guard let owner else { return }
          $0.structuredQuery.where.fieldFilter.field.fieldPath = "owner"
          $0.structuredQuery.where.fieldFilter.op = .equal
          $0.structuredQuery.where.fieldFilter.value.stringValue = owner
        })
      guard count == Self.documents else {
        throw ChildFailure(description: "\(count) documents came instead of \(Self.documents)")
      }
    }

    private func measureLists(
      _ person: Client, administrator: Client, _ uid: String, _ result: inout SuiteResult
    ) async throws {
      var times: [Workload: [Double]] = [:]
      for _ in 0..<max(5, turns / 4) {
        let lists: [(Workload, Client, String, String?)] = [
          (.adminsQuery, administrator, "own", uid), (.ownersQuery, person, "own", uid),
          (.adminsList, administrator, "rooms", nil), (.ruledList, person, "rooms", nil),
        ]
        for (workload, client, collection, owner) in lists {
          let time = try await microseconds { try await list(client, collection, of: owner) }
          times[workload, default: []].append(time / Double(Self.documents))
        }
      }
      let all = times.mapValues { median($0) }
      func time(_ workload: Workload) -> Double { all[workload] ?? .nan }
      for workload in [Workload.adminsQuery, .ownersQuery, .adminsList, .ruledList] {
        result.note(workload, time(workload))
      }
      result.note(Workload.ownersByAdmins, time(.ownersQuery) / time(.adminsQuery))
      result.note(Workload.rule, time(.ruledList) - time(.adminsList))
    }

    // MARK: - Sign-ins

    private func signUp(at host: String) async throws -> (uid: String, token: String) {
      let answer = try await call("signUp", at: host)
      guard let uid = answer["localId"] as? String, let token = answer["idToken"] as? String else {
        throw ChildFailure(description: "nobody could sign up: \(answer)")
      }
      return (uid, token)
    }

    private func call(_ name: String, at host: String) async throws -> [String: Any] {
      let path = "http://\(host)/identitytoolkit.googleapis.com/v1/accounts:\(name)?key=bench"
      guard let url = URL(string: path) else { return [:] }
      var request = URLRequest(url: url)
      request.httpMethod = "POST"
      request.setValue("application/json", forHTTPHeaderField: "content-type")
      request.httpBody = try JSONSerialization.data(withJSONObject: [
        "email": Self.email, "password": Self.password,
      ])
      let (data, _) = try await URLSession.shared.data(for: request)
      return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }

    private func measureSignIns(
      at host: String, _ accounts: Accounts, _ result: inout SuiteResult
    ) async throws {
      var (embedded, served): ([Double], [Double]) = ([], [])
      for _ in 0..<max(5, turns / 2) {
        embedded.append(
          try await microseconds {
            _ = try await accounts.signIn(withEmail: Self.email, password: Self.password)
          })
        served.append(
          try await microseconds {
            guard try await call("signInWithPassword", at: host)["idToken"] != nil else {
              throw ChildFailure(description: "a sign-in was refused")
            }
          })
      }
      result.note(Workload.embeddedSignIn, median(embedded))
      result.note(Workload.signIn, median(served))
      result.note(Workload.signInByEmbedded, median(served) / median(embedded))
    }
  }
#endif
