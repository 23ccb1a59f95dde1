// Mathematics, and distances on the earth: the functions that need the C library, which Foundation
// has on every platform.

#if Server
  import Foundation

  extension RuleEvaluation {
    func mathematics(
      _ builtin: RuleBuiltin, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      if builtin == .abs, case .int(let value) = arguments[0] {
        guard value != .min else { throw .overflow }
        return .int(Swift.abs(value))
      }
      guard let number = arguments[0].double else { throw .wrongType(builtin.rawValue) }
      switch builtin {
      case .abs: return .float(Swift.abs(number))
      case .ceil: return .int(try whole(arguments[0], .up))
      case .floor: return .int(try whole(arguments[0], .down))
      case .round: return .int(try whole(arguments[0], .toNearestOrAwayFromZero))
      case .isInfinite: return .bool(number.isInfinite)
      case .isNaN: return .bool(number.isNaN)
      case .sqrt: return .float(number.squareRoot())
      case .pow:
        guard let exponent = arguments[1].double else { throw .wrongType("math.pow") }
        return .float(Foundation.pow(number, exponent))
      default: throw .wrongType(builtin.rawValue)
      }
    }

    private func whole(
      _ value: RuleValue, _ rule: FloatingPointRoundingRule
    ) throws(RuleFailure) -> Int64 {
      if case .int(let value) = value { return value }
      return try integer((value.double ?? .nan).rounded(rule))
    }
  }

  extension RuleLatLng {
    /// The distance along the earth's surface in metres, with the earth as a sphere.
    func distance(to other: RuleLatLng) -> Double {
      let radiusMetres = 6_371_010.0
      let radians = Double.pi / 180
      let north = (other.latitude - latitude) * radians
      let east = (other.longitude - longitude) * radians
      let half =
        pow(sin(north / 2), 2)
        + cos(latitude * radians) * cos(other.latitude * radians) * pow(sin(east / 2), 2)
      return 2 * radiusMetres * asin(min(1, half.squareRoot()))
    }
  }
#endif
