// The parent's side. It starts a process for each engine, run and phase, removes their files, and
// compares their reads with the reference.

import BenchmarkKit
import Foundation
import Peers

/// The task of a child process.
struct ChildTask: Codable {
  var engine: String
  var plan: Plan
  var phase: Phase?
  /// The shape of sustained writes, which replace a phase.
  var sustained: SustainedShape?
  var directory: String
}

struct Comparison {
  let plan: Plan
  let engines: [String]
  let runs: Int
  let directory: String

  /// Runs every phase of every engine, engines taking turns.
  func perform() throws -> Report {
    let dataset = Dataset(valueLength: plan.valueLength, keyOrder: plan.keyOrder)
    let reference = Reference(plan, dataset)
    var report = Report(plan: plan, runs: runs, directory: directory)
    var group: MemoryGroup?
    if plan.includes(.getEqual) {
      do throws(MemoryGroup.Unavailable) {
        group = try MemoryGroup(limit: Plan.equalMemoryBytes)
      } catch {
        report.noEqualMemory = error.reason
      }
    }
    defer { group?.remove() }
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    for round in 1...runs {
      report.deviceFloors.append(try deviceFloor())
      for engine in engines {
        progress("run \(round) of \(runs): \(engine)")
        do {
          guard let result = try run(engine, round: round, group) else { continue }
          report.errors += mismatches(in: result, reference)
          report.results.append(result)
        } catch {
          report.errors.append("\(error)")
        }
      }
    }
    progress("")
    return report
  }

  /// Runs sustained writes, once for every engine.
  func sustain() throws -> SustainedReport {
    var report = SustainedReport(plan: plan)
    for engine in engines {
      for shape in SustainedShape.all {
        progress("\(engine), \(shape.writers) × commits of \(shape.documentsPerWrite)")
        do {
          report.results += try inFreshDirectory(engine) { place in
            [
              try runChild(
                ChildTask(engine: engine, plan: plan, sustained: shape, directory: place))
            ]
          }
        } catch {
          report.errors.append("\(error)")
        }
      }
    }
    progress("")
    return report
  }

  /// Runs the phases of one engine's run, one after another; nil if it has none this time.
  private func run(
    _ engine: String, round: Int, _ group: MemoryGroup?
  ) throws -> RunResult? {
    try inFreshDirectory(engine) { place in
      var whole: RunResult?
      for phase in plan.phases(engine: engine, round: round) {
        if phase == .readEqual {
          guard group != nil else { continue }
          // The child is not charged for pages that another process has read.
          forgetPages(below: place)
        }
        let part = try runChild(
          ChildTask(engine: engine, plan: plan, phase: phase, directory: place),
          under: phase == .readEqual ? group?.command ?? [] : [])
        if whole == nil {
          whole = part
        } else {
          whole?.measurements += part.measurements
        }
      }
      return whole
    }
  }

  private func inFreshDirectory<R>(_ engine: String, _ body: (String) throws -> R) throws -> R {
    try BenchmarkKit.inFreshDirectory(directory + "/" + engine, body)
  }

  private func runChild(_ task: ChildTask, under command: [String] = []) throws -> RunResult {
    try BenchmarkKit.runChild(
      task, named: "\(task.engine): \(task.phase?.rawValue ?? "sustained")", under: command)
  }

  /// The device's time for a synced write of one document's bytes, at this moment.
  private func deviceFloor() throws -> Double {
    let times = 200
    let device = try Device(
      lengthBytes: KeyList.keyLength + plan.valueLength, times: times, in: directory)
    for _ in 0..<times { try device.write() }
    return device.medianMicroseconds
  }

  private func mismatches(in result: RunResult, _ reference: Reference) -> [String] {
    result.measurements.compactMap { measurement in
      guard let found = measurement.checksum,
        let wanted = reference.checksums[measurement.workload], found != wanted
      else { return nil }
      return
        "\(result.engine): \(measurement.workload.rawValue): read other bytes than were written "
        + "(checksum \(found) instead of \(wanted))"
    }
  }
}
