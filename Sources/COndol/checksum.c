// CRC32C by instruction (SSE4.2, ARMv8), or by a table without it.
//
// One stream of the instruction has a latency of three cycles a step. So long inputs run as three
// independent streams, whose results are joined by shifting the first two over the bytes that
// follow them: a multiplication by x^(8n) modulo the polynomial, with a table that is made once for
// each length.

#include "COndol.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u  // Castagnoli, bit-reversed
#define LANE 336                // bytes of each of the three lanes: 1008 bytes a round

static uint32_t byte_table[256];
static uint32_t shift_one_lane[4][256];
static uint32_t shift_two_lanes[4][256];
static int has_instruction;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t table_step(uint32_t crc, const uint8_t *p, size_t n) {
  while (n--) crc = byte_table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#define TARGET __attribute__((target("sse4.2")))
#define STEP8(crc, v) ((uint32_t)_mm_crc32_u64((crc), (v)))
#define STEP1(crc, v) _mm_crc32_u8((crc), (v))
static int detect(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define TARGET
#define STEP8(crc, v) __crc32cd((crc), (v))
#define STEP1(crc, v) __crc32cb((crc), (v))
static int detect(void) { return 1; }
#else
#define TARGET
#define STEP8(crc, v) (crc)
#define STEP1(crc, v) (crc)
static int detect(void) { return 0; }
#endif

/// The state after feeding `zeros` zero bytes to `state`, without the inversions at either end.
static uint32_t feed_zeros(uint32_t state, size_t zeros) {
  while (zeros--) state = byte_table[state & 0xff] ^ (state >> 8);
  return state;
}

static void make_shift(uint32_t table[4][256], size_t zeros) {
  for (int byte = 0; byte < 4; byte++)
    for (uint32_t v = 0; v < 256; v++) table[byte][v] = feed_zeros(v << (8 * byte), zeros);
}

static void prepare(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
    byte_table[i] = crc;
  }
  make_shift(shift_one_lane, LANE);
  make_shift(shift_two_lanes, 2 * LANE);
  has_instruction = detect();
}

static uint32_t shift(uint32_t table[4][256], uint32_t crc) {
  return table[0][crc & 0xff] ^ table[1][(crc >> 8) & 0xff] ^ table[2][(crc >> 16) & 0xff] ^
         table[3][crc >> 24];
}

static inline uint64_t load8(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

TARGET static uint32_t instruction_step(uint32_t crc, const uint8_t *p, size_t n) {
  while (n >= 3 * LANE) {
    uint32_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < LANE; i += 8) {
      a = STEP8(a, load8(p + i));
      b = STEP8(b, load8(p + LANE + i));
      c = STEP8(c, load8(p + 2 * LANE + i));
    }
    crc = shift(shift_two_lanes, a) ^ shift(shift_one_lane, b) ^ c;
    p += 3 * LANE;
    n -= 3 * LANE;
  }
  for (; n >= 8; p += 8, n -= 8) crc = STEP8(crc, load8(p));
  for (; n; p++, n--) crc = STEP1(crc, *p);
  return crc;
}

uint32_t ondol_crc32c(uint32_t crc, const void *bytes, size_t length) {
  pthread_once(&once, prepare);
  crc = ~crc;
  crc = has_instruction ? instruction_step(crc, bytes, length) : table_step(crc, bytes, length);
  return ~crc;
}
