// Random operands for matrix products, and a check of every element of a result.
//
// Operands are filled from a hash of their index: uniform in [-1, 1), rounded to the type. Right is N x K with K contiguous,
// left is M x K with K contiguous (layout TN) or with M contiguous (NN); the result is column by column, result[i + j * M].
// KIND chooses the operands' type: 0 fp64, 1 fp32, 2 fp16, 3 bf16, 4 fp8 (E4M3), 5 int8.
// RESULT chooses the result's: 0 fp64, 1 fp32, 2 fp16, 3 bf16, 5 int32.

typedef unsigned long long Word;

#ifndef KIND
#define KIND 1
#endif
#ifndef RESULT
#define RESULT 1
#endif

#define TILE 32

static __device__ Word mixed(Word x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

static __device__ float half_to_float(unsigned short bits) {
    float value;
    asm("{.reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "h"(bits));
    return value;
}

static __device__ unsigned short float_to_half(float value) {
    unsigned short bits;
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h;}" : "=h"(bits) : "f"(value));
    return bits;
}

static __device__ float brain_to_float(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

#if KIND == 0
typedef double Element;
static __device__ double random_element(Word hash) { return (double)(long long)hash * (1.0 / 9223372036854775808.0); }
static __device__ double value_of(double element) { return element; }
#elif KIND == 1
typedef float Element;
static __device__ float random_element(Word hash) { return (float)(int)(hash >> 32) * (1.0f / 2147483648.0f); }
static __device__ float value_of(float element) { return element; }
#elif KIND == 2
typedef unsigned short Element;
static __device__ unsigned short random_element(Word hash) {
    return float_to_half((float)(int)(hash >> 32) * (1.0f / 2147483648.0f));
}
static __device__ float value_of(unsigned short element) { return half_to_float(element); }
#elif KIND == 3
typedef unsigned short Element;
static __device__ unsigned short random_element(Word hash) {
    return (unsigned short)(__float_as_uint((float)(int)(hash >> 32) * (1.0f / 2147483648.0f)) >> 16);
}
static __device__ float value_of(unsigned short element) { return brain_to_float(element); }
#elif KIND == 4
typedef unsigned char Element;
// E4M3: a sign, an exponent (bias 7) from the bits of a number in [0, 1), three random bits of mantissa.
static __device__ unsigned char random_element(Word hash) {
    const int below = __clz((int)(hash >> 32) | 0x04000000);
    const unsigned exponent = below > 5 ? 1u : 6u - (unsigned)below;
    return (unsigned char)((hash & 0x80u) | (exponent << 3) | (hash & 7u));
}
static __device__ float value_of(unsigned char bits) {
    const int exponent = (bits >> 3) & 15;
    const float mantissa = (float)(bits & 7) * 0.125f;
    const float size = exponent ? (1.0f + mantissa) * exp2f((float)(exponent - 7)) : mantissa * exp2f(-6.0f);
    return bits & 0x80 ? -size : size;
}
#else
typedef signed char Element;
static __device__ signed char random_element(Word hash) { return (signed char)(hash >> 56); }
static __device__ int value_of(signed char element) { return (int)element; }
#endif

#if RESULT == 0
typedef double Result;
static __device__ double result_of(double result) { return result; }
#elif RESULT == 1
typedef float Result;
static __device__ double result_of(float result) { return (double)result; }
#elif RESULT == 2
typedef unsigned short Result;
static __device__ double result_of(unsigned short result) { return (double)half_to_float(result); }
#elif RESULT == 3
typedef unsigned short Result;
static __device__ double result_of(unsigned short result) { return (double)brain_to_float(result); }
#else
typedef int Result;
static __device__ double result_of(int result) { return (double)result; }
#endif

extern "C" __global__ void fill_random(Element *to, long long count, Word seed) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (long long)gridDim.x * blockDim.x)
        to[i] = random_element(mixed((Word)i ^ seed));
}

// Counts the elements of the result that are further from the product than slope * |exact| + floor. Products of
// short chunks are added in the operands' own type (exact, or within a few units in the last place of FP32), chunks
// in FP64, so that a GPU with few FP64 units checks about as fast as one with many. Blocks of TILE x TILE threads.
extern "C" __global__ void check_product(const Element *left, const Element *right, const Result *result, long long m,
                                         long long n, long long k, int rows_apart, double slope, double floor,
                                         Word *wrong) {
    __shared__ Element rows[TILE][TILE + 1], columns[TILE][TILE + 1];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const long long row = (long long)blockIdx.x * TILE + x, column = (long long)blockIdx.y * TILE + y;
    double total = 0.0;
    for (long long start = 0; start < k; start += TILE) {
        const long long inner = start + x;
        if (rows_apart) {
            const long long mine = (long long)blockIdx.x * TILE + y;
            rows[y][x] = mine < m && inner < k ? left[mine * k + inner] : (Element)0;
        } else {
            rows[x][y] = row < m && start + y < k ? left[row + (start + y) * m] : (Element)0;
        }
        columns[y][x] = column < n && inner < k ? right[column * k + inner] : (Element)0;
        __syncthreads();
        auto part = value_of(rows[x][0]) * value_of(columns[y][0]);
#pragma unroll
        for (int i = 1; i < TILE; ++i) part += value_of(rows[x][i]) * value_of(columns[y][i]);
        total += (double)part;
        __syncthreads();
    }
    if (row >= m || column >= n) return;
    const double found = result_of(result[row + column * m]);
    if (!(fabs(found - total) <= slope * fabs(total) + floor)) atomicAdd(wrong, 1ull);
}
