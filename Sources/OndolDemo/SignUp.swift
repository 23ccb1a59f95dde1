// Signing up with an address of e-mail that nobody else may have. The address is the key, as it is:
// `a.b@c.kr` and `a-b@c.kr` are two people. Claim and profile are one commit, so a race has one
// winner and nothing is left of who lost.

import ArgumentParser
import Ondol

struct SignUp: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "signup", abstract: "Sign-up with unique addresses: tree and documents together.")

  @OptionGroup var options: DemoOptions

  func run() async throws {
    try await Self.tell(options)
  }
}

/// What is stored of a person.
struct Profile: Codable, Equatable, Sendable {
  var email: String
  var firstName: String
  var lastName: String
}

extension SignUp {
  static func tell(_ options: DemoOptions) async throws {
    Story.chapter("Sign-up, in \(options.directory)")
    let database = try await Database.open(at: options.directory)
    try await database.tree.child("emails").removeValue()
    let people = [
      Profile(email: "a.b@c.kr", firstName: "민지", lastName: "김"),
      Profile(email: "a-b@c.kr", firstName: "하준", lastName: "이"),
      Profile(email: "a.b@c.kr", firstName: "서연", lastName: "박"),
    ]
    for person in people {
      do {
        let id = try await signUp(person, in: database)
        Story.say("\(person.email): \(person.lastName)\(person.firstName) is in, as \(id).")
      } catch let error as DatabaseError where error.code == .alreadyExists {
        Story.say("\(person.email): \(person.lastName)\(person.firstName) is refused: \(error)")
      }
    }
    let results = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          let person = Profile(email: "race@c.kr", firstName: "\(number)", lastName: "선수")
          return (try? await signUp(person, in: database)) != nil
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    Story.say("Eight at once for race@c.kr: \(results) got it.")
    try await database.close()
  }

  /// Claims the address and stores the profile, or neither.
  private static func signUp(_ person: Profile, in database: Database) async throws -> String {
    let claim = database.tree.child("emails").child(key: person.email)
    let users = database.collection("users")
    return try await database.runTransaction { transaction in
      guard try !transaction.getData(claim).exists else {
        throw DatabaseError(
          .alreadyExists, "the address is taken; sign in, or use another", path: person.email)
      }
      let user = users.document()
      try transaction.setValue(user.documentID, at: claim)
      try transaction.create(from: person, forDocument: user)
      return user.documentID
    }
  }
}
