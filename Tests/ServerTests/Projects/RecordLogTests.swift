// The framing of Firestore's exports. Records come back as they were, whatever their lengths are.
// LevelDB's own test of its checksum is in RFC 3720: 32 zeros have the CRC-32C 8A9136AA.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct RecordLogTests {
    private func records(_ bytes: [UInt8]) throws -> [[UInt8]] {
      let folder = try TestFolder()
      try folder.write("log", bytes: bytes)
      var reader = try RecordLogReader("\(folder.path)/log")
      var found: [[UInt8]] = []
      while let record = try reader.next() { found.append(record) }
      return found
    }

    /// Lengths around the ends of blocks, and others.
    private func random(_ random: inout SeededRandom) -> [[UInt8]] {
      (0..<random.below(6)).map { _ in
        let near = 32_768 * (1 + random.below(3)) - 7
        let length = [random.below(30), random.below(300), near - 20 + random.below(40)][
          random.below(3)]
        return (0..<length).map { _ in UInt8(truncatingIfNeeded: random.below(256)) }
      }
    }

    @Test func `Records come back as they were`() throws {
      for seed in Seeds.first(60) {
        var random = SeededRandom(seed: seed)
        let expected = self.random(&random)
        var log = RecordLogWriter()
        for record in expected { _ = log.append(record) }
        #expect(try records(log.bytes) == expected, "SEED=\(seed)")
        #expect(log.length == log.bytes.count)
      }
    }

    @Test func `The frame of a record is LevelDB's`() {
      var log = RecordLogWriter()
      _ = log.append(Array("3".utf8))
      // As in exports of the emulator: the first record of their metadata.
      #expect(log.bytes == [0xB8, 0x6D, 0x44, 0x4E, 1, 0, 1, 0x33])
    }

    @Test func `A damaged byte is noticed, and no record is another one`() throws {
      for seed in Seeds.first(40) {
        var random = SeededRandom(seed: seed)
        let expected = self.random(&random)
        var log = RecordLogWriter()
        for record in expected { _ = log.append(record) }
        guard !log.bytes.isEmpty else { continue }
        var damaged = log.bytes
        let place = random.below(damaged.count)
        damaged[place] ^= UInt8(1 << random.below(8))
        let fault = #expect(throws: ProjectFault.self, "SEED=\(seed)") {
          try records(damaged)
        }
        #expect(fault?.place?.hasPrefix("offset ") == true)
      }
    }

    @Test func `A file that ends early has the records before, or is noticed`() throws {
      for seed in Seeds.first(40) {
        var random = SeededRandom(seed: seed)
        let expected = self.random(&random)
        var log = RecordLogWriter()
        for record in expected { _ = log.append(record) }
        let short = Array(log.bytes.prefix(random.below(log.bytes.count + 1)))
        guard let found = try? records(short) else { continue }
        #expect(found.elementsEqual(expected.prefix(found.count)), "SEED=\(seed)")
      }
    }

    @Test func `A record that is too long is refused on both sides`() {
      var log = RecordLogWriter()
      let isTaken = log.append([UInt8](repeating: 0, count: 64 << 20 + 1))
      #expect(!isTaken && log.bytes.isEmpty)
    }
  }
#endif
