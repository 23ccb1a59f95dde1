// The part of scrypt (RFC 7914) that takes the time and the memory: sections 3 to 5. It is in C
// because it must be fast in an app's debug build as well, where Swift would take ten seconds for a
// passphrase.

#include "COndol.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 16 };

static inline uint32_t rotated(uint32_t word, int places) {
  return word << places | word >> (32 - places);
}

// One step of a quarter round: `a` takes in the sum of two others.
#define STEP(a, b, c, places) x[a] ^= rotated(x[b] + x[c], places)
#define QUARTER(a, b, c, d) \
  STEP(b, a, d, 7);         \
  STEP(c, b, a, 9);         \
  STEP(d, c, b, 13);        \
  STEP(a, d, c, 18)

static void salsa20_8(uint32_t block[WORDS]) {
  uint32_t x[WORDS];
  memcpy(x, block, sizeof x);
  for (int round = 0; round < 8; round += 2) {
    QUARTER(0, 4, 8, 12);
    QUARTER(5, 9, 13, 1);
    QUARTER(10, 14, 2, 6);
    QUARTER(15, 3, 7, 11);
    QUARTER(0, 1, 2, 3);
    QUARTER(5, 6, 7, 4);
    QUARTER(10, 11, 8, 9);
    QUARTER(15, 12, 13, 14);
  }
  for (int i = 0; i < WORDS; i++) block[i] += x[i];
}

static void add_bits(uint32_t *restrict into, const uint32_t *restrict words, size_t count) {
  for (size_t i = 0; i < count; i++) into[i] ^= words[i];
}

// scryptBlockMix: `block` has 2 r pieces; those of even numbers go to the front.
static void mix_block(uint32_t *restrict block, uint32_t *restrict spare, size_t r) {
  uint32_t x[WORDS];
  memcpy(x, block + (2 * r - 1) * WORDS, sizeof x);
  for (size_t i = 0; i < 2 * r; i++) {
    add_bits(x, block + i * WORDS, WORDS);
    salsa20_8(x);
    memcpy(spare + (i / 2 + i % 2 * r) * WORDS, x, sizeof x);
  }
  memcpy(block, spare, 2 * r * sizeof x);
}

// The compiler does not remove it, although nothing reads the written bytes.
static void forget(void *bytes, size_t count) {
  volatile unsigned char *place = bytes;
  while (count--) *place++ = 0;
}

static uint32_t word_at(const uint8_t *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

int ondol_scrypt_mix(uint8_t *bytes, size_t r, size_t n) {
  if (r == 0 || n < 2 || (n & (n - 1)) != 0 || n > UINT32_MAX) return 0;
  const size_t words = 2 * r * WORDS;
  if (words / (2 * WORDS) != r || n > SIZE_MAX / sizeof(uint32_t) / words - 2) return 0;
  uint32_t *table = malloc((n + 2) * words * sizeof *table);
  if (!table) return 0;
  uint32_t *block = table + n * words, *spare = block + words;
  for (size_t i = 0; i < words; i++) block[i] = word_at(bytes + 4 * i);
  for (size_t i = 0; i < n; i++) {
    memcpy(table + i * words, block, words * sizeof *table);
    mix_block(block, spare, r);
  }
  for (size_t i = 0; i < n; i++) {
    // Integerify: the low word is enough, since n fits into one.
    size_t place = block[(2 * r - 1) * WORDS] & (n - 1);
    add_bits(block, table + place * words, words);
    mix_block(block, spare, r);
  }
  for (size_t i = 0; i < words; i++)
    for (int byte = 0; byte < 4; byte++) bytes[4 * i + byte] = (uint8_t)(block[i] >> 8 * byte);
  forget(table, (n + 2) * words * sizeof *table);
  free(table);
  return 1;
}
