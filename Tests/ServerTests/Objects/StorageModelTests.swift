// Storage's calls against a model: objects in a dictionary. Random calls with and without
// conditions have the same outcome in both, and lists are what sorting the names gives.

#if Server
  import Crypto
  import Foundation
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct `Objects against a model` {
    private struct Stored: Hashable {
      var bytes: [UInt8]
      var generation: Int64
      var metageneration: Int64
      var custom: [String: String] = [:]
    }

    private typealias Objects = [String: Stored]

    private static let names = [
      "a", "a-b", "a/b", "a/b/c", "a b", "a.b", "a/b-c", "a0", "ab", "b", "b/é", "b/é/x", "b/e",
      "á/x", "á-x", "á", "a/b/c/d/e", "a,b/c", "a!b", "z/🙂/q", "z/🙂-q", "a%2Fb", "..a", "a..",
      "a/../b", "x+y", "x y?&#=",
    ]

    /// A condition, and whether it holds.
    private func condition(
      _ random: inout SeededRandom, _ object: Stored?
    ) -> (query: String, holds: Bool) {
      let generation = random.pick([0, object?.generation ?? 0, 17])
      let metageneration = random.pick([object?.metageneration ?? 1, 1, 9])
      let present = (object?.generation ?? 0, object?.metageneration ?? 0)
      switch random.below(10) {
      case 0: return ("&ifGenerationMatch=\(generation)", present.0 == generation)
      case 1: return ("&ifGenerationNotMatch=\(generation)", present.0 != generation)
      case 2: return ("&ifMetagenerationMatch=\(metageneration)", present.1 == metageneration)
      case 3: return ("&ifMetagenerationNotMatch=\(metageneration)", present.1 != metageneration)
      default: return ("", true)
      }
    }

    @Test func `Random calls have the outcome that the model has`() async throws {
      for seed in Seeds.first(12) {
        let stage = try await StorageStage(seed: seed)
        var random = SeededRandom(seed: seed)
        var model: Objects = [:]
        var last: Int64 = 0
        for step in 0..<120 {
          let place: Comment = "SEED=\(seed) step \(step)"
          let name = random.pick(Self.names)
          let (query, holds) = condition(&random, model[name])
          switch random.below(12) {
          case 0..<4:
            let bytes = someBytes(random.below(3_000), random.next())
            let answer = try await stage.put(name, bytes, query: query)
            #expect(answer.status == (holds ? 200 : 412), place)
            guard holds else { continue }
            model[name] = try stored(answer, bytes, after: &last, place)
          case 4:
            let answer = try await stage.call(
              "DELETE", "\(StorageStage.path(name))?x=1\(query)")
            #expect(answer.status == (model[name] == nil ? 404 : holds ? 204 : 412), place)
            if holds { model[name] = nil }
          case 5, 6:
            let target = random.pick(Self.names)
            let (query, holds) = condition(&random, model[target])
            let path = "\(StorageStage.path(name))/copyTo/b/\(StorageStage.bucket)/o/"
            let answer = try await stage.call(
              "POST", "\(path)\(StorageMetadata.encoded(target))?x=1\(query)")
            let source = model[name]
            #expect(answer.status == (source == nil ? 404 : holds ? 200 : 412), place)
            guard holds, let source else { continue }
            model[target] = try stored(answer, source.bytes, after: &last, place)
            model[target]?.custom = source.custom
          case 7:
            let sources = (0..<(1 + random.below(4))).map { _ in random.pick(Self.names) }
            let body: Value = [
              "sourceObjects": .array(sources.map { ["name": .string($0)] }),
              "destination": ["contentType": "text/plain"],
            ]
            let answer = try await stage.call(
              "POST", "\(StorageStage.path(name))/compose?x=1\(query)", StorageStage.json(body))
            let isMissing = sources.contains { model[$0] == nil }
            #expect(answer.status == (isMissing ? 404 : holds ? 200 : 412), place)
            guard holds, !isMissing else { continue }
            let bytes = sources.flatMap { model[$0]?.bytes ?? [] }
            model[name] = try stored(answer, bytes, after: &last, place)
          case 8:
            let value = "\(random.below(100))"
            let answer = try await stage.call(
              "PATCH", "\(StorageStage.path(name))?x=1\(query)",
              StorageStage.json([
                "metadata": ["k\(random.below(3))": .string(value), "gone": .null]
              ]))
            #expect(answer.status == (model[name] == nil ? 404 : holds ? 200 : 412), place)
            guard holds, var object = model[name] else { continue }
            object.metageneration += 1
            let custom = answer["metadata"]?.map?.compactMapValues(\.string) ?? [:]
            #expect(object.custom.allSatisfy { custom[$0.key] != nil }, place)
            #expect(custom.values.contains(value), place)
            object.custom = custom
            model[name] = object
          case 9: try await list(stage, model, &random, place)
          default: try await read(stage, name, model[name], &random, place)
          }
        }
        for name in Self.names { try await read(stage, name, model[name], &random, "SEED=\(seed)") }
        #expect(try await stage.database.verify(depth: .full) == [])
        try await stage.database.close()
      }
    }

    private func stored(
      _ answer: StorageStage.Answer, _ bytes: [UInt8], after last: inout Int64, _ place: Comment
    ) throws -> Stored {
      let generation = try #require(Int64(answer.text("generation")), place)
      #expect(generation > last, place)
      last = generation
      #expect(answer["size"] == .string("\(bytes.count)"), place)
      let md5 = Data(Insecure.MD5.hash(data: bytes)).base64EncodedString()
      #expect(answer.text("md5Hash") == md5, place)
      return Stored(bytes: bytes, generation: generation, metageneration: 1)
    }

    private func read(
      _ stage: StorageStage, _ name: String, _ object: Stored?, _ random: inout SeededRandom,
      _ place: Comment
    ) async throws {
      let metadata = try await stage.get(name)
      let whole = try await stage.download(name)
      guard let object else {
        #expect(metadata.status == 404 && whole.status == 404, place)
        return
      }
      #expect(metadata.text("generation") == "\(object.generation)", place)
      #expect(metadata.text("metageneration") == "\(object.metageneration)", place)
      #expect(whole.status == 200 && whole.bytes == object.bytes, place)
      let (first, last) = (random.below(3_000), random.below(3_000))
      let part = try await stage.download(name, headers: ["range": "bytes=\(first)-\(last)"])
      if last < first {
        #expect(part.status == 200 && part.bytes == object.bytes, place)
      } else if first < object.bytes.count {
        let wanted = object.bytes[first..<min(object.bytes.count, last + 1)]
        #expect(part.status == 206 && part.bytes.elementsEqual(wanted), place)
      } else {
        #expect(part.status == 416, place)
      }
    }

    // MARK: - Lists

    private func list(
      _ stage: StorageStage, _ model: Objects, _ random: inout SeededRandom, _ place: Comment
    ) async throws {
      let prefix = random.pick(["", "", "a", "a/", "a/b", "á", "z/🙂", "b/", "a-", "q"])
      let delimiter = random.pick(["", "/", "/", "b", "-"])
      let start = random.pick(["", "", "a/", "a-b", "a/b", "b", "b/é", "z"])
      let end = random.pick(["", "", "a/", "a0", "b", "zz"])
      let size = 1 + random.below(5)
      var parameters = "prefix=\(escaped(prefix))&delimiter=\(escaped(delimiter))"
      parameters += "&startOffset=\(escaped(start))&endOffset=\(escaped(end))&maxResults=\(size)"
      var (items, prefixes, token, pages) = ([String](), [String](), "", 0)
      repeat {
        let answer = try await stage.call(
          "GET", "/storage/v1/b/\(StorageStage.bucket)/o?\(parameters)&pageToken=\(token)")
        #expect(answer.status == 200, place)
        let page = answer["items"]?.array?.compactMap { $0["name"]?.string } ?? []
        let groups = answer["prefixes"]?.array?.compactMap(\.string) ?? []
        #expect(page.count + groups.count <= size, place)
        items += page
        prefixes += groups
        token = answer.text("nextPageToken")
        pages += 1
      } while !token.isEmpty && pages < 100
      let wanted = Self.listed(Array(model.keys), prefix, delimiter, start, end)
      let words = "prefix \(prefix) delimiter \(delimiter) from \(start) to \(end) by \(size)"
      #expect(exact(items) == exact(wanted.items), "\(place) \(words)")
      #expect(exact(prefixes) == exact(wanted.prefixes), "\(place) \(words)")
    }

    private func exact(_ names: [String]) -> [[UInt8]] { names.map { Array($0.utf8) } }

    private func escaped(_ text: String) -> String { StorageMetadata.encoded(text) }

    /// What a list has, by sorting all names.
    private static func listed(
      _ names: [String], _ prefix: String, _ delimiter: String, _ start: String, _ end: String
    ) -> (items: [String], prefixes: [String]) {
      var (items, prefixes) = ([String](), [String]())
      for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
        guard name.utf8.starts(with: prefix.utf8), !name.utf8.lexicographicallyPrecedes(start.utf8),
          end.isEmpty || name.utf8.lexicographicallyPrecedes(end.utf8)
        else { continue }
        let rest = String(decoding: name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
        if !delimiter.isEmpty, let found = rest.firstRange(of: delimiter) {
          let group = prefix + rest[..<found.upperBound]
          if prefixes.last != group { prefixes.append(group) }
        } else {
          items.append(name)
        }
      }
      return (items, prefixes)
    }

    @Test func `Lists are in the order of names, whatever names there are`() async throws {
      for seed in Seeds.first(30) {
        let stage = try await StorageStage(seed: seed)
        var random = SeededRandom(seed: seed)
        let characters = ["a", "-", "/", "0", " ", "é", ".", "~"]
        var model: Objects = [:]
        for _ in 0..<40 {
          let length = 1 + random.below(7)
          let text = (0..<length).map { _ in random.pick(characters) }.joined()
          guard StoragePath.problem(with: text) == nil else { continue }
          #expect(try await stage.put(text, [1]).status == 200)
          model[text] = Stored(bytes: [1], generation: 0, metageneration: 1)
        }
        let places = Array(model.keys).sorted() + ["", "a/", "-/", "a/a", "~"]
        for _ in 0..<40 {
          let prefix = String(random.pick(places).prefix(random.below(4)))
          let delimiter = random.pick(["", "/", "/", "-"])
          let (start, end) = (random.pick(places), random.pick(["", "", random.pick(places)]))
          let wanted = Self.listed(Array(model.keys), prefix, delimiter, start, end)
          var listing = ObjectListing()
          listing.prefix = prefix
          listing.delimiter = delimiter
          listing.start = start
          listing.end = end.isEmpty ? nil : end
          listing.limit = 1 + random.below(6)
          var (items, prefixes) = ([String](), [String]())
          repeat {
            let page = try await stage.database.storage.page(of: listing)
            items += page.items.map(\.path)
            prefixes += page.prefixes
            listing.last = page.next
          } while listing.last != nil && items.count + prefixes.count < 200
          let words = "SEED=\(seed) prefix \(prefix) by \(delimiter) from \(start) to \(end)"
          #expect(exact(items) == exact(wanted.items), "\(words)")
          #expect(exact(prefixes) == exact(wanted.prefixes), "\(words)")
        }
        try await stage.database.close()
      }
    }
  }
#endif
