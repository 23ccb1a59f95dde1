// The folders keep their order, and the rule that enforces it can fail: a house of three files gets
// one planted breach after another.

import Testing

@Suite struct `The floors stand on one another` {
  @Test(arguments: FloorPlan.all.map(\.module))
  func `A folder leans only on those before it`(_ module: String) {
    for plan in FloorPlan.all where plan.module == module {
      for finding in plan.findings(in: .shared) { Issue.record("\(finding)") }
    }
  }

  private static let page = """
    ## Floors

    ### House

    | folder | what is here |
    |---|---|
    | Cellar | what all need |
    | Attic | the rest |

    ### Other

    | folder | what is here |
    |---|---|
    | Roof | |
    """

  private func findings(
    _ house: FloorPlan = FloorPlan(module: "House"), page: String = page, cellar: String = "",
    attic: String = "struct Chest { var shelf: Shelf }", extra: (String, String)? = nil
  ) -> [String] {
    let files = [
      (FloorPlan.page, page), ("Sources/House/Attic/Chest.swift", attic),
      ("Sources/House/Cellar/Shelf.swift", "struct Shelf {}\n" + cellar),
    ]
    let tree = SourceTree(files: (files + [extra].compactMap { $0 }).map(SourceFile.init))
    return house.findings(in: tree).map(\.description)
  }

  @Test func `Downward dependencies are permitted`() {
    #expect(findings() == [])
  }

  @Test func `Upward dependencies are found at their place`() {
    #expect(
      findings(cellar: "\nfunc open(_ chest: Chest) {}")
        == ["Sources/House/Cellar/Shelf.swift:3: names Chest, which is above it in Attic/"])
  }

  @Test func `Prose may name higher floors, and so may free types`() {
    #expect(findings(cellar: "// Chest\nlet a = \"Chest\"") == [])
    #expect(findings(FloorPlan(module: "House", anywhere: ["Chest"]), cellar: "let a: Chest") == [])
  }

  @Test func `A name that is declared twice says nothing`() {
    #expect(findings(cellar: "enum Chest {}") == [])
  }

  @Test func `An exception covers one file's one name, as long as it is needed`() {
    let house = FloorPlan(
      module: "House",
      exceptions: [.init(file: "Cellar/Shelf.swift", type: "Chest", reason: "it stands there")])
    #expect(findings(house, cellar: "let a: Chest") == [])
    #expect(
      findings(house)
        == ["Sources/House/Cellar/Shelf.swift:1: no exception is needed any more for Chest"])
  }

  @Test func `The table and the folders are the same`() {
    let lost = "Sources/House/Barn/Hay.swift"
    #expect(
      findings(extra: (lost, ""))
        == ["\(lost):1: its folder is none of House's floors in \(FloorPlan.page)"])
    #expect(
      findings(page: Self.page.replacing("| Attic |", with: "| Attic | |\n| Barn |"))
        == ["\(FloorPlan.page):3: House has no folder Barn"])
    #expect(findings(page: "") == ["\(FloorPlan.page):1: no table of House's floors"])
  }

  @Test func `Every exception has its reason`() {
    for exception in FloorPlan.all.flatMap(\.exceptions) {
      #expect(exception.reason.split(separator: " ").count >= 3, "\(exception)")
    }
  }
}
