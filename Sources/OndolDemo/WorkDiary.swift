// A diary of working hours: each person has settings in one document, and below it one document for
// each day. The main screen reads a week by its dates, a write gets an answer, and small merges
// move a day through its states.

import ArgumentParser
import Ondol

struct WorkDiary: DemoApp {
  static let configuration = CommandConfiguration(
    commandName: "workdiary",
    abstract: "A diary of working hours: subcollections, an index, merges, write results.")

  static let name = "workdiary"

  @OptionGroup var options: DemoOptions
}

/// One day in the diary.
struct WorkDay: Codable, Equatable {
  var workDate: String
  var status: String
  var planStartTime: String
  var planEndTime: String
  var actualStartTime: String?
  var actualEndTime: String?
}

extension WorkDiary {
  private static let person = "민지"
  /// A Monday to a Sunday.
  private static let week = (4...10).map { date(month: 5, day: $0) }

  static func tell(at place: String, killing: Bool) async throws {
    Story.chapter("A diary of working hours", in: place)
    let database = try await Database.open(at: place)
    let settings = database.collection("workInfo").document(person)
    let diary = settings.collection("workHistory")
    try await settings.setData(["name": person, "weeklyHours": 40, "zone": "Asia/Seoul"])
    try await diary.createIndex(on: ["workDate"])
    try await fill(diary, killing: killing)
    try await showWeek(diary)
    try await work(diary)
    try await watch(diary)
    try await database.close()
    Story.next(name, at: place == "demo/workdiary.ondol" ? nil : place)
  }

  /// Writes half a year of days, a document each, with its date as the id.
  private static func fill(_ diary: CollectionReference, killing: Bool) async throws {
    let days = (1...6).flatMap { month in
      (1...daysOfMonth[month - 1]).map { date(month: month, day: $0) }
    }
    let found = try await diary.getDocuments().count
    if found > 0 {
      Story.say("Found \(found) of \(days.count) days from an earlier run.")
    }
    // Existing days are written again: a day that was half-way through its states starts again.
    let start = found < days.count ? found : 0
    var acknowledged = Acknowledgements(killing: killing, done: start, total: days.count)
    for day in days[start...] {
      let plan = WorkDay(
        workDate: day, status: "prepare", planStartTime: "09:00", planEndTime: "18:00")
      try await diary.document(day).setData(from: plan)
      acknowledged.add()
    }
    Story.say("The diary has \(days.count) days, from \(days[0]) to \(days[days.count - 1]).")
  }

  private static func showWeek(_ diary: CollectionReference) async throws {
    let clock = ContinuousClock()
    let start = clock.now
    let query = diary.whereField("workDate", in: week).order(by: "workDate")
    let found = try await query.getDocuments()
    let duration = clock.now - start
    let plan = try await query.explain(analyze: true)
    Story.say(
      "One week of them, by `in` over seven dates: \(found.documents.count) days in"
        + " \(Story.milliseconds(duration)). The query read \(plan.entriesVisited ?? 0) entries of"
        + " the index on \(plan.indexName ?? "nothing"):")
    for document in found.documents {
      let day = try document.data(as: WorkDay.self)
      Story.show("\(day.workDate)  \(day.planStartTime)-\(day.planEndTime)  \(day.status)")
    }
    let byID = try await diary.whereField(FieldPath.documentID(), in: week).getDocuments()
    Story.say(
      "The same by the documents' ids, without a field that repeats them:"
        + " \(byID.documents.count) days."
    )
    Story.elsewhere("Firestore takes 30 values in an `in`. Here it may be any number.")
  }

  /// Moves one day through its states. Each merge keeps the other fields, and returns the new
  /// document.
  private static func work(_ diary: CollectionReference) async throws {
    let today = diary.document(week[1])
    Story.say("\(week[1]): work begins. The write answers with the day as it is now:")
    let begun = try await today.setData(
      [
        "status": "working", "actualStartTime": "08:57",
        "history": FieldValue.arrayUnion([["at": "08:57", "event": "start"]]),
      ], merge: true, returning: .after)
    try describe(begun)
    Story.say("Work ends:")
    let ended = try await today.updateData(
      [
        "status": "ended", "actualEndTime": "18:12",
        "history": FieldValue.arrayUnion([["at": "18:12", "event": "end"]]),
      ], returning: .after)
    try describe(ended)
    let done = try await diary.whereField("status", isEqualTo: "ended").getDocuments()
    Story.say("Days that have ended: \(done.documents.map(\.documentID).joined(separator: ", ")).")
  }

  /// Shows three views of one screen, each with a query of its own. One commit changes all of them,
  /// and none shows half of it.
  private static func watch(_ diary: CollectionReference) async throws {
    let today = diary.document(week[2])
    let ended = diary.whereField("status", isEqualTo: "ended")
    var weeks = diary.whereField("workDate", in: week).snapshots.makeAsyncIterator()
    var days = today.snapshots.makeAsyncIterator()
    var counts = ended.count.snapshots.makeAsyncIterator()
    let before = (
      try await weeks.next(), try await days.next(), try await counts.next()?.count ?? 0
    )
    Story.say(
      "A screen shows the week (\(before.0?.count ?? 0) days), a day of it"
        + " (\(before.1?.get("status") ?? "none")) and a count (\(before.2) ended). One commit ends"
        + " that day and has the next begin at ten:")
    let batch = diary.database.batch()
    try batch.updateData(["status": "ended", "actualEndTime": "18:01"], forDocument: today)
    try batch.updateData(["planStartTime": "10:00"], forDocument: diary.document(week[3]))
    try await batch.commit()
    guard let shownWeek = try await weeks.next(), let shownDay = try await days.next(),
      let count = try await counts.next()?.count
    else { return }
    let versions = Set(shownWeek.documentChanges.map(\.document.version) + [shownDay.version])
    let changed = shownWeek.documentChanges.map(\.document.documentID).joined(separator: " and ")
    Story.show("the week: \(changed) have changed")
    Story.show("the day: \(shownDay.get("status") ?? "none")")
    Story.show("the count: \(count) ended")
    Story.say(
      "Do all three show the same commit? \(versions.count == 1 ? "Yes" : "No"). None of them ever"
        + " showed half of it."
    )
    Story.elsewhere("three listeners hear of one change at three different moments.")
    // Restored, so that the story can run again.
    try await today.updateData(["status": "prepare", "actualEndTime": FieldValue.delete()])
  }

  private static func describe(_ result: WriteResult) throws {
    guard let day = try result.after?.data(as: WorkDay.self) else { return }
    Story.show(
      "\(day.status), from \(day.actualStartTime ?? "?")"
        + (day.actualEndTime.map { " to \($0)" } ?? "")
        + ", planned \(day.planStartTime)-\(day.planEndTime); version \(result.version)")
  }

  // 2026.
  private static let daysOfMonth = [31, 28, 31, 30, 31, 30]

  private static func date(month: Int, day: Int) -> String {
    "2026-0\(month)-\(day < 10 ? "0" : "")\(day)"
  }
}
