// Damage to the meaning of rows, and to the bytes of contents.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

extension PlantedDamage {
  static let catalogs = [
    PlantedDamage("catalog, a row of no kind") { site in
      try await site.plant { _, _, batch in
        let value: [UInt8] = [1]
        batch.put(Keyspace.catalog.prefix + [0x7f, 1], value)
      }
      return Expected(kind: .catalog, text: "unknown kind")
    },
    PlantedDamage("catalog, a counter") { site in
      try await site.plant { _, rows, batch in
        guard let family = try rows.catalog.family("items", in: rows) else { return }
        var row = family.row
        row.nextMember = 1
        batch.put(CatalogKey.family("items"), row.bytes)
      }
      return Expected(kind: .catalog, collection: "items")
    },
    PlantedDamage("catalog, rows nobody has been given") { site in
      try await site.plant { _, _, batch in
        let value: [UInt8] = [1]
        batch.put(Keyspace(family: 900, member: 3).prefix, value)
      }
      return Expected(kind: .catalog, text: "not yet in use")
    },
    PlantedDamage("index definition") { site in
      try await site.plant { _, rows, batch in
        let entry = try DamageSite.entry("items", rows)
        let value: [UInt8] = [2, 0xFF, 0xFF]
        batch.put(CatalogKey.keyspace(entry.indexes[0].keyspace), value)
      }
      return Expected(kind: .catalog)
    },
    PlantedDamage("expiry of a collection") { site in
      try await site.plant { _, rows, batch in
        let entry = try DamageSite.entry("items", rows)
        let value: [UInt8] = [0xFF, 0xFF, 0xFF]
        batch.put(CatalogKey.timeToLive(entry.keyspace), value)
      }
      return Expected(kind: .catalog)
    },
    PlantedDamage("name of a field") { site in
      try await site.plant { _, rows, batch in
        let entry = try DamageSite.entry("items", rows)
        let value: [UInt8] = Array("ghost".utf8)
        batch.put(CatalogKey.symbol(900, of: entry.keyspace), value)
      }
      return Expected(kind: .catalog, text: "field name")
    },
  ]

  static let mirrors = [
    PlantedDamage("mirror, a row lost") { site in
      try await site.plant { _, rows, batch in
        let entry = try DamageSite.entry("items", rows)
        batch.delete(CatalogKey.mirrored(CatalogKey.symbol(2, of: entry.keyspace)))
      }
      return Expected(kind: .mirror, text: "lacks the row of keyspace")
    },
    PlantedDamage("mirror, a row of its own") { site in
      try await site.plant { _, _, batch in
        let value: [UInt8] = [0]
        batch.put(CatalogKey.mirrored(CatalogKey.group("ghosts")), value)
      }
      return Expected(kind: .mirror, text: "the catalog lacks")
    },
    PlantedDamage("mirror, another name of a field") { site in
      try await site.plant { _, rows, batch in
        let entry = try DamageSite.entry("items", rows)
        let name = Array("ghost".utf8)
        batch.put(CatalogKey.mirrored(CatalogKey.symbol(2, of: entry.keyspace)), name)
      }
      return Expected(kind: .mirror, text: "another row of keyspace")
    },
  ]

  static let indexes = [
    PlantedDamage("index, a row lost") { site in
      try await site.plant { database, rows, batch in
        let found = try await DamageSite.index("n,-name", of: "i15", database, rows)
        batch.delete(found.rows[0].key)
      }
      return Expected(kind: .index, collection: "items", id: "i15", text: "lacks a row")
    },
    PlantedDamage("index, a row of a missing document") { site in
      try await site.plant { database, rows, batch in
        let (index, _) = try await DamageSite.index("n,-name", of: "i15", database, rows)
        batch.put(index.rows(of: ["n": 5, "name": "ghost"], ancestors: [], id: "ghost")[0])
      }
      return Expected(kind: .index, collection: "items", id: "ghost", text: "no such document")
    },
    PlantedDamage("index, an extra row") { site in
      try await site.plant { database, rows, batch in
        let (index, _) = try await DamageSite.index("n,-name", of: "i15", database, rows)
        batch.put(index.rows(of: ["n": 999, "name": "x"], ancestors: [], id: "i15")[0])
      }
      return Expected(kind: .index, collection: "items", id: "i15", text: "does not have")
    },
    PlantedDamage("index, a row in a wrong place") { site in
      try await site.plant { database, rows, batch in
        let (index, found) = try await DamageSite.index("n,-name", of: "i15", database, rows)
        batch.delete(found[0].key)
        batch.put(index.rows(of: ["n": 999, "name": "x"], ancestors: [], id: "i15")[0])
      }
      return Expected(kind: .index, collection: "items", id: "i15", text: "lacks a row")
    },
    PlantedDamage("array index, a row lost") { site in
      try await site.plant { database, rows, batch in
        let found = try await DamageSite.index("tags[]", of: "i15", database, rows)
        batch.delete(found.rows[0].key)
      }
      return Expected(kind: .index, collection: "items", id: "i15", text: "'tags[]' lacks a row")
    },
    PlantedDamage("unique claim that leads elsewhere") { site in
      try await site.plant { database, rows, batch in
        let one = try await DamageSite.index("code unique", of: "i15", database, rows)
        let other = try await DamageSite.index("code unique", of: "i20", database, rows)
        batch.put(one.rows[0].key, other.rows[0].value)
      }
      return Expected(kind: .index, collection: "items", id: "i15", text: "leads elsewhere")
    },
    PlantedDamage("group index, a row lost") { site in
      try await site.plant { _, rows, batch in
        let index = try DamageSite.entry("items/notes", rows).indexes[0]
        batch.delete(index.rows(of: ["stars": 3], ancestors: ["i15"], id: "a1")[0].key)
      }
      return Expected(kind: .index, collection: "items/i15/notes", id: "a1")
    },
    PlantedDamage("link field, a row lost") { site in
      try await site.plant { _, rows, batch in
        let index = try DamageSite.entry("diary", rows).links[0]
        batch.delete(index.rows(of: ["file": "images/a.txt"], ancestors: [], id: "d")[0].key)
      }
      return Expected(kind: .index, collection: "diary", id: "d")
    },
  ]

  static let documents = [
    PlantedDamage("document, bytes") { site in
      try await site.plant { _, rows, batch in
        let key = try DamageSite.key("items/i15", rows)
        guard var row = try rows.row(key) else { return }
        row[24] = 0x77
        batch.put(key, row)
      }
      return Expected(kind: .document, collection: "items", id: "i15")
    },
    PlantedDamage("document of no commit") { site in
      try await site.plant { _, rows, batch in
        let key = try DamageSite.key("items/i15", rows)
        guard var row = try rows.row(key) else { return }
        row[5] = 1
        batch.put(key, row)
      }
      return Expected(kind: .document, collection: "items", id: "i15", text: "commit")
    },
    PlantedDamage("key of no document") { site in
      try await site.plant { _, rows, batch in
        let value = [UInt8](repeating: 0, count: 30)
        batch.put(try DamageSite.entry("items", rows).keyspace.prefix + [0x38, 0x00], value)
      }
      return Expected(kind: .document, collection: "items", text: "key")
    },
  ]

  // MARK: - Contents

  private static let packed = ContentHasher.digest(of: DamageSite.content(5_000))

  static let contents = [
    PlantedDamage("holder, a row lost") { site in
      try await site.plant { _, rows, batch in
        batch.delete(ContentKey.holder(packed, try DamageSite.key("albums/a1", rows)))
      }
      return Expected(kind: .holder, collection: "albums", id: "a1", text: packed.hex)
    },
    PlantedDamage("holder, an extra row") { site in
      try await site.plant { _, rows, batch in
        let nothing: [UInt8] = []
        batch.put(ContentKey.holder(packed, try DamageSite.key("items/i15", rows)), nothing)
      }
      return Expected(kind: .holder, collection: "items", id: "i15", text: "does not")
    },
    PlantedDamage("holder, dangling") { site in
      try await site.plant { _, rows, batch in
        let nothing: [UInt8] = []
        batch.put(ContentKey.holder(packed, try DamageSite.key("items/i15", rows) + [1]), nothing)
      }
      return Expected(kind: .holder)
    },
    PlantedDamage("held content that is not stored") { site in
      try await site.plant { _, _, batch in batch.delete(ContentKey.location(packed)) }
      return Expected(kind: .holder, collection: "albums", id: "a1", text: "not stored")
    },
    PlantedDamage("storage path whose content is missing") { site in
      try await site.plant { _, _, batch in
        batch.delete(ContentKey.location(ContentHasher.digest(of: Array("hello".utf8))))
      }
      return Expected(kind: .holder, storagePath: "images/a.txt", text: "not stored")
    },
    PlantedDamage("linked path without an object") { site in
      try await site.plant { _, rows, batch in
        guard let key = try rows.objectKey("images/a.txt") else { return }
        batch.delete(key)
      }
      return Expected(kind: .holder, collection: "diary", id: "d")
    },
    PlantedDamage("derived content without its parent") { site in
      try await site.plant { _, _, batch in
        let parent = ContentHasher.digest(of: Array("nobody".utf8))
        let child = try BlobReference(digest: packed, length: 5_000)
        batch.put(DerivedRows.key(parent, "small"), DerivedRows.value(child))
      }
      return Expected(kind: .holder, text: "derived")
    },
    PlantedDamage("place of a content") { site in
      try await site.plant { _, _, batch in
        let value: [UInt8] = [0xFF, 1]
        batch.put(ContentKey.location(packed), value)
      }
      return Expected(kind: .content, text: packed.hex)
    },
    PlantedDamage("content nobody holds") { site in
      let bytes = Array("abandoned".utf8)
      try await site.plant { _, rows, batch in
        guard let place = try rows.row(ContentKey.location(packed)) else { return }
        batch.put(ContentKey.location(ContentHasher.digest(of: bytes)), place)
      }
      return Expected(kind: .content, text: "not those that it is called by")
    },
    PlantedDamage("pack, a frame") { site in
      let name = try site.file(".pack")
      try site.sample.flip(name, at: 64 + 56 + 8 + 100)
      return Expected(kind: .content, file: name, text: "albums/a1")
    },
    PlantedDamage("pack, cut short") { site in
      let name = try site.file(".pack")
      let bytes = try site.sample.bytes(of: name)
      try site.sample.replace(name, with: Array(bytes.prefix(1_000)))
      return Expected(kind: .content, file: name)
    },
    PlantedDamage("pack, missing") { site in
      let name = try site.file(".pack")
      try site.remove(name)
      return Expected(kind: .content, file: name)
    },
    PlantedDamage("pack, header") { site in
      let name = try site.file(".pack")
      try site.sample.flip(name, at: 24)
      return Expected(kind: .content, file: name, text: "header")
    },
    PlantedDamage("pack, an entry's head") { site in
      let name = try site.file(".pack")
      try site.sample.flip(name, at: 64 + 20)
      return Expected(kind: .content, file: name, offset: 64)
    },
    PlantedDamage("content file, a frame") { site in
      let name = try site.file(".content")
      try site.sample.flip(name, at: 100_000)
      return Expected(kind: .content, file: name, text: "albums/a2")
    },
    PlantedDamage("content file, missing") { site in
      let name = try site.file(".content")
      try site.remove(name)
      return Expected(kind: .content, file: name)
    },
    PlantedDamage("content file, cut short") { site in
      let name = try site.file(".content")
      try site.cut(name)
      return Expected(kind: .content, file: name)
    },
    PlantedDamage("content file that nothing is in") { site in
      let file = try site.sample.directory().create("900.content")
      let bytes: [UInt8] = [1, 2, 3]
      try file.write(bytes.bytes, at: 0)
      return Expected(kind: .content, severity: .warning, file: "900.content")
    },
  ]

  // MARK: - The tree

  private static func node(_ names: String...) -> [UInt8] {
    names.reduce(TreeKey.root) { $0 + TreeKey.component($1) }
  }

  static let trees = [
    PlantedDamage("tree, a row that is no value") { site in
      try await site.plant { _, _, batch in
        let value: [UInt8] = [1, 0xEE, 0xEE]
        batch.put(node("flags", "b"), value)
      }
      return Expected(kind: .tree, id: "/flags/b", text: "damaged")
    },
    PlantedDamage("tree, something below a leaf") { site in
      try await site.plant { _, rows, batch in
        guard let leaf = try rows.row(node("scores", "kim", "points")) else { return }
        batch.put(node("scores", "kim", "points", "x"), leaf)
      }
      return Expected(kind: .tree, id: "/scores/kim/points/x", text: "below a leaf")
    },
    PlantedDamage("tree, an index's row lost") { site in
      try await site.plant { _, rows, batch in
        for index in try TreeIndexDefinition.all(in: rows) {
          var walk = RangeWalk(rows, [KeyRange(prefix: index.prefix)])
          if try walk.next() { batch.delete(walk.cursor.key.array) }
        }
      }
      return Expected(kind: .tree, id: "/scores", text: "index has 1 rows")
    },
    PlantedDamage("tree, a priority's row lost") { site in
      try await site.plant { _, rows, batch in
        let prefix = node("flags") + [TreeKey.Tag.priorities]
        var walk = RangeWalk(rows, [KeyRange(prefix: prefix)])
        if try walk.next() { batch.delete(walk.cursor.key.array) }
      }
      return Expected(kind: .tree, id: "/flags/a", text: "no row that orders it")
    },
  ]
}
