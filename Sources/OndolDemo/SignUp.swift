// Signing up with an address of e-mail that nobody else may have. The address is the key, as it is:
// `a.b@c.kr` and `a-b@c.kr` are two people. Claim, profile and picture are one commit, so a race
// has one winner and nothing is left of who lost, not even a picture.

import ArgumentParser
import Foundation
import Ondol

struct SignUp: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "signup",
    abstract: "Sign-up with unique addresses: tree, document and picture together.")

  @OptionGroup var options: DemoOptions
  @OptionGroup var pictures: PictureOptions

  func run() async throws {
    try await Self.tell(options, try Pictures(pictures))
  }
}

/// What is stored of a person.
struct Profile: Codable, Equatable, Sendable {
  var email: String
  var firstName: String
  var lastName: String
  var picture: BlobReference?
}

extension SignUp {
  static func tell(_ options: DemoOptions, _ pictures: Pictures?) async throws {
    Story.chapter("Sign-up, in \(options.directory)")
    let database = try await Database.open(at: options.directory)
    try await database.tree.child("emails").removeValue()
    for user in try await database.collection("users").getDocuments().documents {
      try await user.reference.delete()
    }
    let portraits = database.storage.reference(withPath: "portraits")
    for portrait in try await portraits.listAll().items { try await portrait.delete() }
    let people = [
      Profile(email: "a.b@c.kr", firstName: "민지", lastName: "김"),
      Profile(email: "a-b@c.kr", firstName: "하준", lastName: "이"),
      Profile(email: "a.b@c.kr", firstName: "서연", lastName: "박"),
    ]
    for (number, person) in people.enumerated() {
      do {
        let id = try await signUp(person, try pictures?.data(number), in: database)
        Story.say("\(person.email): \(person.lastName)\(person.firstName) is in, as \(id).")
      } catch let error as DatabaseError where error.code == .alreadyExists {
        Story.say("\(person.email): \(person.lastName)\(person.firstName) is refused: \(error)")
      }
    }
    let winners = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          let person = Profile(email: "race@c.kr", firstName: "\(number)", lastName: "선수")
          let picture = try? pictures?.data(number)
          return (try? await signUp(person, picture, in: database)) != nil
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    Story.say("Eight at once for race@c.kr: \(winners) got it.")
    let held = try await portraits.listAll().items
    let users = try await database.collection("users").getDocuments().documents
    Story.say("\(users.count) people have signed up, and \(held.count) portraits are stored.")
    try await database.close()
  }

  /// Claims the address and stores the profile and the picture, or nothing of it.
  private static func signUp(
    _ person: Profile, _ picture: Data?, in database: Database
  ) async throws -> String {
    let claim = database.tree.child("emails").child(key: person.email)
    let users = database.collection("users")
    return try await database.runTransaction { transaction in
      guard try !transaction.getData(claim).exists else {
        throw DatabaseError(
          .alreadyExists, "the address is taken; sign in, or use another", path: person.email)
      }
      let user = users.document()
      var person = person
      if let picture {
        person.picture = try await transaction.putData(picture, at: "portraits/\(user.documentID)")
      }
      try transaction.setValue(user.documentID, at: claim)
      try transaction.create(from: person, forDocument: user)
      return user.documentID
    }
  }
}
