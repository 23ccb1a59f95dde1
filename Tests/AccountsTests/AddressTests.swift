// Which addresses are equal, and that accounts of versions that distinguished them by case all stay
// reachable.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct AddressTests {
  @Test(arguments: [
    ("minji@EXAMPLE.com", "minji@example.com", true),
    ("Minji@example.com", "minji@example.com", true),
    ("MINJI.K@example.com", "minji.k@example.com", true),
    // Composed and decomposed.
    ("caf\u{E9}@example.com", "CAFE\u{301}@example.com", true),
    ("a@b\u{FC}cher.de", "a@BU\u{308}CHER.de", true),
    // Compatibility forms: full width, ligatures, digits in circles.
    ("\u{FF4D}\u{FF49}\u{FF4E}@b.kr", "min@b.kr", true),
    ("\u{FB01}t@b.kr", "FIT@b.kr", true),
    ("a@\u{FF45}\u{FF58}\u{FF41}\u{FF4D}\u{FF50}\u{FF4C}\u{FF45}.com", "a@example.com", true),
    // Letters without a capital of their own, or with two small letters.
    ("\u{3BF}\u{3B4}\u{3BF}\u{3C2}@b.kr", "\u{39F}\u{394}\u{39F}\u{3A3}@b.kr", true),
    ("gro\u{DF}@b.kr", "GROSS@b.kr", true),
    ("\u{131}@b.kr", "i@b.kr", false),
    // Invisible characters.
    ("a@so\u{AD}ft.de", "a@soft.de", true),
    // Dots of other scripts.
    ("a@b\u{3002}kr", "a@b.kr", true), ("a@b\u{FF0E}kr", "a@b.kr", true),
    ("a@b\u{FF61}kr", "a@b.kr", true),
    // Domains in ASCII and in Unicode.
    ("a@xn--bcher-kva.de", "a@B\u{DC}CHER.de", true),
    ("a@XN--3E0B707E.kr", "a@\u{D55C}\u{AD6D}.kr", true),
    ("a@xn--ihqwcrb4cv8a8dqg056pqjye.cn", "a@他们为什么不说中文.cn", true),
    ("a@xn--strae-oqa.de", "a@stra\u{DF}e.de", true),
    // Domains keep distinctions that the local part folds: these belong to two people.
    ("a@stra\u{DF}e.de", "a@strasse.de", false),
    // Encodings that nobody would write, and invalid ones.
    ("a@xn--a-.de", "a@a.de", false), ("a@xn--zzzzzzzzzzzzzzzzzz.de", "a@z.de", false),
    ("a@xn--BCHER-KVA.de", "a@bcher.de", false),
    ("a.b@c.kr", "a-b@c.kr", false), ("a.b@c.kr", "ab@c.kr", false),
    ("a+b@c.kr", "a@c.kr", false),
  ])
  func `Addresses are compared without case, in one form`(
    _ one: String, _ other: String, _ areSame: Bool
  ) throws {
    let (one, other) = (try? EmailAddress(one), try? EmailAddress(other))
    #expect((one != nil && one?.key == other?.key) == areSame)
  }

  @Test func `An address is shown as it was typed`() throws {
    let address = try EmailAddress(" Minji@Example.COM ")
    #expect(address.text == "Minji@Example.COM")
    #expect(address.key == "minji@example.com")
  }

  @Test(arguments: [
    "", "@", "a@", "@b.kr", "a b@c.kr", "a@b..kr", "a@-b.kr", "a@b.kr\n@c.kr", "a\u{0}@b.kr",
    ".a@b.kr", "a@b.kr,c@d.kr", "<a@b.kr>", "a\u{202E}@b.kr", "a@b_c.kr", "a@b\u{3002}\u{3002}kr",
    "a@\u{2100}.kr", "a@xn--.de", "a@\u{AD}.de",
    String(repeating: "a", count: 65) + "@b.kr",
  ])
  func `An invalid address is refused`(_ text: String) throws {
    let error = #expect(throws: AuthError.self) { _ = try EmailAddress(text) }
    #expect(error?.code == .invalidEmail)
  }

  @Test(arguments: [
    // Labels that map to nothing, an invalid encoding, and one that grows twenty times when it is
    // mapped.
    "a@\u{2488}com", "\u{3164}@\u{3164}.kr", "a@xn--zzzzzzzzzzzzzzzzzz.de", "a@b.xn--a",
    String(repeating: "\u{FDFA}", count: 21) + "@b.kr", "a\u{FF20}b@c.kr",
  ])
  func `Addresses that earlier versions accepted are still valid`(_ text: String) throws {
    let address = try EmailAddress(text)
    #expect(!address.key.isEmpty && address.key.utf8.count < 512)
    #expect(address.exactKey == text)
  }

  @Test func `Random labels in ASCII have one key each, and always the same one`() throws {
    var random = SeededRandom(seed: 1)
    let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789-")
    for _ in 0..<2_000 {
      let label = String((0..<(1 + random.below(59))).map { _ in random.pick(letters) })
      guard let address = try? EmailAddress("a@xn--\(label).kr") else { continue }
      #expect(try EmailAddress(address.key).key == address.key, "\(label)")
    }
  }

  // MARK: - Accounts of earlier versions

  /// People of a version that distinguished addresses by case, in the order of their sign-up.
  private struct Earlier {
    let trial: Trial
    var uids: [String] = []

    /// - Parameter addresses: the first belongs to the oldest account.
    init(_ addresses: [String], seed: UInt64 = 1) async throws {
      trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      for (number, address) in addresses.enumerated() {
        let session = try await accounts.createUser(
          withEmail: "\(number)@b.kr", password: "rattan lamp \(number)")
        let uid = session.account.uid
        uids.append(uid)
        try await database.collection("accounts").document(uid).updateData([
          "email": address, "emailKey": try EmailAddress(address).exactKey,
        ])
        await trial.clock.advance(by: .seconds(1))
      }
      try await database.document("accountSettings/current")
        .updateData(["addressForm": FieldValue.delete()])
      try await database.close()
    }

    /// Returns the account that an address and the password of the account with the number sign in.
    func signIn(_ accounts: Accounts, _ address: String, _ number: Int) async throws -> String {
      try await accounts.signIn(withEmail: address, password: "rattan lamp \(number)")
        .account.uid
    }
  }

  @Test func `An account of an earlier version is found by every spelling`() async throws {
    let earlier = try await Earlier(["Minji@Example.com"])
    let database = try await earlier.trial.database()
    let accounts = try await earlier.trial.accounts(in: database)
    for spelling in ["Minji@Example.com", "minji@example.com", "MINJI@EXAMPLE.COM"] {
      #expect(try await earlier.signIn(accounts, spelling, 0) == earlier.uids[0])
      let taken = await code {
        _ = try await accounts.createUser(withEmail: spelling, password: Trial.password)
      }
      #expect(taken == .emailAlreadyInUse)
    }
    #expect(try await accounts.addressConflicts().isEmpty)
    try await database.close()
  }

  @Test(arguments: [
    ["Minji@b.kr", "minji@b.kr", "MINJI@b.kr"], ["minji@b.kr", "MINJI@b.kr", "Minji@b.kr"],
    ["MINJI@b.kr", "Minji@b.kr", "minji@b.kr"],
  ])
  func `Of accounts whose addresses are one the oldest has it, and all sign in as before`(
    _ addresses: [String]
  ) async throws {
    let earlier = try await Earlier(addresses)
    let database = try await earlier.trial.database()
    let accounts = try await earlier.trial.accounts(in: database)
    for (number, address) in addresses.enumerated() {
      #expect(try await earlier.signIn(accounts, address, number) == earlier.uids[number])
    }
    #expect(try await earlier.signIn(accounts, "mINJI@b.kr", 0) == earlier.uids[0])
    let conflicts = try await accounts.addressConflicts()
    #expect(Set(conflicts.map(\.uid)) == Set(earlier.uids[1...]))
    #expect(Set(conflicts.map(\.email)) == Set(addresses[1...]))
    #expect(
      conflicts.allSatisfy { $0.holder == earlier.uids[0] && $0.holderEmail == addresses[0] })
    let taken = await code {
      _ = try await accounts.createUser(withEmail: "mINJI@b.kr", password: Trial.password)
    }
    #expect(taken == .emailAlreadyInUse)
    try await database.close()
  }

  @Test func `An account that shares an address gets it once the older one releases it`()
    async throws
  {
    let earlier = try await Earlier(["Minji@b.kr", "minji@b.kr", "MINJI@b.kr"])
    let database = try await earlier.trial.database()
    let accounts = try await earlier.trial.accounts(in: database)
    let sessions = try await [
      accounts.signIn(withEmail: "Minji@b.kr", password: "rattan lamp 0"),
      accounts.signIn(withEmail: "minji@b.kr", password: "rattan lamp 1"),
      accounts.signIn(withEmail: "MINJI@b.kr", password: "rattan lamp 2"),
    ]
    // A spelling of a shared address that belongs to another account is taken.
    #expect(
      await code {
        _ = try await accounts.updateEmail(token: sessions[0].token, to: "minji@b.kr")
      } == .emailAlreadyInUse)
    #expect(
      await code {
        _ = try await accounts.updateEmail(token: sessions[1].token, to: "mINJI@b.kr")
      } == .emailAlreadyInUse)
    // A spelling of one's own belongs to nobody else.
    _ = try await accounts.updateEmail(token: sessions[0].token, to: "minJI@b.kr")
    _ = try await accounts.updateEmail(token: sessions[1].token, to: "minji@B.kr")
    #expect(try await earlier.signIn(accounts, "minji@b.kr", 1) == earlier.uids[1])
    #expect(try await accounts.addressConflicts().count == 2)

    _ = try await accounts.updateEmail(token: sessions[0].token, to: "kim@b.kr")
    #expect(try await earlier.signIn(accounts, "mINJI@b.kr", 1) == earlier.uids[1])
    #expect(try await accounts.addressConflicts().map(\.uid) == [earlier.uids[2]])
    try await accounts.delete(token: sessions[1].token)
    #expect(try await earlier.signIn(accounts, "mINJI@b.kr", 2) == earlier.uids[2])
    #expect(try await accounts.addressConflicts().isEmpty)
    #expect(try await earlier.signIn(accounts, "kim@b.kr", 0) == earlier.uids[0])
    try await database.close()
  }

  @Test func `Another address ends the conflict`() async throws {
    let earlier = try await Earlier(["Minji@b.kr", "minji@b.kr"])
    let database = try await earlier.trial.database()
    let accounts = try await earlier.trial.accounts(in: database)
    let session = try await accounts.signIn(withEmail: "minji@b.kr", password: "rattan lamp 1")
    _ = try await accounts.updateEmail(token: session.token, to: "Lee@b.kr")
    #expect(try await accounts.addressConflicts().isEmpty)
    #expect(try await earlier.signIn(accounts, "minji@b.kr", 0) == earlier.uids[0])
    #expect(try await earlier.signIn(accounts, "lee@b.kr", 1) == earlier.uids[1])
    try await database.close()
  }

  @Test func `Hundreds of accounts get their keys, despite any power cut`() async throws {
    func open(_ earlier: Earlier, _ database: Database) async throws -> Accounts {
      try await earlier.trial.accounts(in: database)
    }
    /// Returns people beside the two, as bare documents.
    func people(seed: UInt64) async throws -> Earlier {
      let earlier = try await Earlier(["Minji@b.kr", "minji@b.kr"], seed: seed)
      let database = try await earlier.trial.database()
      let model = try await database.collection("accounts").document(earlier.uids[0]).getDocument()
      let batch = database.batch()
      for number in 0..<250 {
        var fields = model.data()
        fields["email"] = .string("Person\(number)@B.kr")
        fields["emailKey"] = .string("Person\(number)@b.kr")
        try batch.setData(fields, forDocument: database.document("accounts/person\(number)"))
      }
      try await batch.commit()
      try await database.close()
      return earlier
    }
    let first = try await people(seed: 1)
    var database = try await first.trial.database()
    let before = first.trial.device.operations
    _ = try await open(first, database)
    let needed = first.trial.device.operations - before
    #expect(needed > 0)
    for step in stride(from: 0, to: needed, by: max(1, needed / 12)) {
      let earlier = try await people(seed: UInt64(step + 2))
      database = try await earlier.trial.database()
      earlier.trial.device.powerCut(after: step)
      _ = try? await open(earlier, database)
      earlier.trial.device.powerCut()
      database = try await earlier.trial.database()
      let accounts = try await open(earlier, database)
      let keys = try await database.collection("accounts").getDocuments().documents
        .compactMap { $0["emailKey"] as String? }
      #expect(keys.count == 252, "\(step)")
      #expect(keys.count { $0.hasPrefix("person") } == 250, "\(step)")
      #expect(try await accounts.addressConflicts().map(\.uid) == [earlier.uids[1]], "\(step)")
      #expect(try await earlier.signIn(accounts, "minji@b.kr", 1) == earlier.uids[1], "\(step)")
      #expect(try await earlier.signIn(accounts, "MINJI@b.kr", 0) == earlier.uids[0], "\(step)")
      try await database.close()
    }
  }
}
