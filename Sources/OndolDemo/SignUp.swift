// Signing up: an address that nobody else may have, a password, a profile and a picture, as one
// commit. A race has one winner, and the loser leaves nothing, not even a picture. OndolAccounts
// does the work; the story shows what an app sees of it.

import ArgumentParser
import Foundation
import Ondol
import OndolAccounts

struct SignUp: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "signup",
    abstract: "Sign-up and sign-in: accounts, profiles and pictures in one commit.")

  @OptionGroup var options: DemoOptions
  @OptionGroup var pictures: PictureOptions

  func run() async throws {
    try await Self.tell(at: try options.database(of: "signup"), try Pictures(pictures))
  }
}

/// A person's stored profile.
struct Profile: Codable, Equatable, Sendable {
  var firstName: String
  var lastName: String
  var picture: BlobReference?
}

extension SignUp {
  private static let password = "rattan lamp 7"

  static func tell(at place: String, _ pictures: Pictures?) async throws {
    Story.chapter("Signing up and in", in: place)
    var options = Database.Options()
    options.blobGracePeriod = .zero
    let database = try await Database.open(at: place, options: options)
    try await clear(database)
    // In memory, so that the story starts with no user signed in.
    var accountOptions = Accounts.Options()
    // A small scrypt: a build without optimisation needs a second for the one that apps use.
    accountOptions.hashing = PasswordHashing(unchecked: 1 << 12, 8, 1)
    let accounts = try await Accounts.open(in: database, options: accountOptions)
    let auth = try await Auth.open(accounts, tokens: MemoryTokenStore())
    try await signUp(auth, pictures)
    try await race(accounts, pictures)
    try await guess(auth)
    try await keepApart(accounts)
    try await leave(auth, database, at: place)
    try await database.close()
    Story.elsewhere(
      "account, profile and picture are in three products, and each of them can fail alone.")
    Story.next("signup", at: place == "demo/signup.ondol" ? nil : place)
  }

  /// Removes the data of an earlier run, so that the story can run again.
  private static func clear(_ database: Database) async throws {
    for account in try await database.collection("accounts").getDocuments().documents {
      try await database.document("privateData/\(account.documentID)").delete(recursive: true)
    }
    try await database.document("publicData/all").delete(recursive: true)
    for name in ["accounts", "accountSessions", "accountTries", "users"] {
      try await database.collection(name).deleteDocuments()
    }
  }

  private static func signUp(_ auth: Auth, _ pictures: Pictures?) async throws {
    let people = [
      ("a.b@c.kr", Profile(firstName: "민지", lastName: "김")),
      ("a-b@c.kr", Profile(firstName: "하준", lastName: "이")),
      ("a.b@C.KR", Profile(firstName: "서연", lastName: "박")),
    ]
    Story.say("Three people sign up, each with a profile and a picture, in one commit each:")
    for (number, (email, profile)) in people.enumerated() {
      do {
        let user = try await auth.createUser(
          withEmail: email, password: password, profile: profile,
          picture: try pictures?.data(number))
        Story.show("\(email): \(profile.lastName)\(profile.firstName) is in, as \(user.uid).")
      } catch let error as AuthError where error.code == .emailAlreadyInUse {
        Story.show(
          "\(email): \(profile.lastName)\(profile.firstName) is refused: \(error.message).")
      }
    }
  }

  private static func race(_ accounts: Accounts, _ pictures: Pictures?) async throws {
    let picture = try pictures?.data(3)
    let winners = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          let profile = Profile(firstName: "\(number)", lastName: "선수")
          let session = try? await accounts.createUser(
            withEmail: "race@c.kr", password: password, profile: profile, picture: picture)
          return session != nil
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    let profiles = try await accounts.database.collection("users").getDocuments().count
    Story.say(
      "Eight people sign up as race@c.kr at the same moment. It works for \(winners) of them. There"
        + " are \(profiles) profiles now; who was refused has left nothing.")
  }

  private static func guess(_ auth: Auth) async throws {
    Story.say(
      "Somebody tries a password for a.b@c.kr, and then for nobody@c.kr, whom nobody knows:")
    for email in ["a.b@c.kr", "nobody@c.kr"] {
      let clock = ContinuousClock()
      let start = clock.now
      do {
        try await auth.signIn(withEmail: email, password: "a wrong password")
      } catch {
        Story.show("\(email): \(error) (after \(Story.milliseconds(clock.now - start)))")
      }
    }
    Story.show("The same answer after the same work: trying does not tell who has an account.")
    let user = try await auth.signIn(withEmail: "a.b@c.kr", password: password)
    Story.say("\(user.email ?? user.uid) signs in with the right password.")
  }

  private static func keepApart(_ accounts: Accounts) async throws {
    let minji = try await accounts.signIn(withEmail: "a.b@c.kr", password: password)
    let hajun = try await accounts.signIn(withEmail: "a-b@c.kr", password: password)
    let note = accounts.privateDatabase(for: minji).document("notes/today")
    try await note.setData(["text": "차 사기"])
    let his = accounts.privateDatabase(for: hajun).document("notes/today")
    let isSeen = try await his.getDocument().exists
    Story.say(
      "민지 writes a private note. Does 하준 see it at the same path? \(isSeen ? "Yes" : "No").")
    try await accounts.publicDatabase(for: minji).document("posts/hello").setData(["text": "안녕"])
    do {
      try await accounts.publicDatabase(for: hajun).document("posts/hello").delete()
    } catch {
      Story.say("민지 posts something for everybody. 하준 tries to delete it:")
      Story.show("\(error)")
    }
  }

  /// Deletes the account with all of its data.
  private static func leave(_ auth: Auth, _ database: Database, at place: String) async throws {
    guard let user = auth.currentUser else { return }
    let picture =
      try await database.collection("users").document(user.uid).getDocument()["picture"]
      as BlobReference?
    let before = try await StoredPictures(database, at: place)
    try await user.delete()
    Story.say("민지 deletes her account. Profile, picture, note and sessions go with it:")
    let isThere = try await database.collection("users").document(user.uid).getDocument().exists
    Story.show("profile: \(isThere ? "still there" : "gone")")
    if let picture {
      try await StoredPictures.giveUp(database, at: place, since: before)
      let canRead = try await StoredPictures.canRead(picture, in: database)
      Story.show(
        "Can the picture still be read? \(canRead ? "Yes: somebody else has it, too" : "No").")
    }
  }
}
