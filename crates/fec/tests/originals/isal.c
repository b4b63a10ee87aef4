/* Digests of the two matrices of ISA-L: see README.md. */
#include <isa-l/erasure_code.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static uint64_t next(void) {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

static uint64_t digest;

static void add(unsigned char octet) { digest = (digest ^ octet) * 0x100000001B3; }

static void run(int is_cauchy) {
  static unsigned char matrix[256 * 256], inverse[256 * 256], tables[32 * 256 * 256];
  static unsigned char bytes[256][64];
  unsigned char *shards[256];
  state = 1;
  digest = 0xCBF29CE484222325;
  for (int i = 1; i <= 100000; i++) {
    static const int limits[4] = {10, 20, 40, 64};
    int most = i % 32 == 0 ? 255 : limits[i % 4];
    int k = 1 + next() % most;
    int m = k + 1 + next() % (most < 256 - k ? most : 256 - k);
    int width = 1 + next() % 8;
    uint64_t seed = next() | 1;
    for (int j = 0; j < 256; j++) shards[j] = bytes[j];
    for (uint64_t at = 0; at < (uint64_t)k * width; at++)
      shards[at / width][at % width] = seed * (at + 1) >> 56;
    if (is_cauchy) gf_gen_cauchy1_matrix(matrix, m, k);
    else gf_gen_rs_matrix(matrix, m, k);
    ec_init_tables(k, m - k, matrix + k * k, tables);
    ec_encode_data_base(width, k, m - k, tables, shards, shards + k);
    for (int j = k; j < m; j++)
      for (int at = 0; at < width; at++) add(shards[j][at]);
    /* In place, so it is the last use of the matrix. */
    if (!is_cauchy && k <= 64) add(gf_invert_matrix(matrix + k * (m - k), inverse, k) == 0);
    if (i == 1000 || i == 100000)
      printf("%s %d %#018llx\n", is_cauchy ? "cauchy1" : "rs", i, (unsigned long long)digest);
  }
}

int main(void) {
  run(1);
  run(0);
}
