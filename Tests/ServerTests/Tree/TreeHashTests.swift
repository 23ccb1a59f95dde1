// Hashes of nodes beside known ones, which were computed from the protocol's description with
// another program's SHA-1.

#if Server
  import Foundation
  import Ondol
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct `Hashes of nodes` {
    private func hash(_ value: Value) async throws -> String {
      let database = try await Database.inMemory()
      try await database.tree.child("x").setValue(value)
      return TreeHash.hash(of: try await database.tree.child("x").getData().nodeData)
    }

    @Test(arguments: [
      (
        #"true"#,
        "E5z61QM0lN/U2WsOnusszCTkR8M="
      ),
      (
        #""text""#,
        "x7g2SlseqW4tQc4+nDsWMcKEh5c="
      ),
      (
        #"1"#,
        "YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="
      ),
      (
        #"0.1"#,
        "wtQjBi5TBE+ZcdekL6INiSeCSQI="
      ),
      (
        #"1e300"#,
        "PATxuxN46FZOmKG2i19P8ZCsqpw="
      ),
      (
        #""한글 \u0000""#,
        "32JNGg/CjzDWnPm6aIiZEyaV/3Y="
      ),
      (
        #"{"a":1,"b":{"c":"d"}}"#,
        "AKwTLrWLbJfTq49ftqwp26P0WGg="
      ),
      (
        #"{"10":1,"9":2,"a":3,"-5":4,"01":5}"#,
        "RNFQC+KwnNmxKd2MXL0tz1dGnDM="
      ),
      (
        #"{".value":7,".priority":"p"}"#,
        "HUjGWAyfoh2ATfkeO6NEU7lTWsU="
      ),
      (
        #"{"x":{".value":1,".priority":2},"y":{".value":1,".priority":1},"z":1,".priority":"q"}"#,
        "P8hu4cz/NKbzj7bp+t1VHC075ts="
      ),
      (
        """
        {"a":{".value":true,".priority":"\u{1F600}"},"b":{".value":true,".priority":"\u{FF5E}"},\
        "c":{".value":true,".priority":3.5}}
        """,
        "NrqGs9TM83kY4XqSg/hRpyOrRkY="
      ),
    ])
    func `A known hash`(json: String, expected: String) async throws {
      let value = try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8)).value
      #expect(try await hash(value) == expected)
    }

    @Test func `Integers and doubles of the same number have the same hash`() async throws {
      #expect(try await hash(.integer(3)) == hash(.double(3)))
      #expect(try await hash(.double(0)) != hash(.double(-0.0)))
    }

    @Test func `Each part of a node counts`() async throws {
      let nodes: [Value] = [
        .null, .boolean(true), .boolean(false), .integer(1), .string("1"), .string("true"),
        .map(["a": .integer(1)]), .map(["b": .integer(1)]), .map(["a": .map(["a": .integer(1)])]),
        .map([".value": .integer(1), ".priority": .integer(1)]),
        .map([".value": .integer(1), ".priority": .string("1")]),
        .map(["a": .integer(1), ".priority": .integer(1)]),
        .map(["a": .map([".value": .integer(1), ".priority": .integer(1)])]),
      ]
      var hashes: Set<String> = []
      for node in nodes { hashes.insert(try await hash(node)) }
      #expect(hashes.count == nodes.count)
    }
  }
#endif
