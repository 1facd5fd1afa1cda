// Random operands for collective operations, and a check of every element that each GPU received.
//
// An operand is a hash of the seed, the rank that sends it and its index: so each GPU knows what all others sent. Values are
// exact in their type: fp32 has 24 random bits, fp16 11 and bf16 8, in [-1, 1); int32 takes every value, and its sums wrap.

typedef unsigned long long Word;

static __device__ Word mixed(Word x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

static __device__ Word drawn(Word seed, int rank, Word index) { return mixed(mixed(seed + (Word)rank) ^ index); }

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

struct Fp32 {
    typedef float Stored;
    static __device__ double number(Word hash) { return ((double)(hash >> 40) - 8388608.0) / 8388608.0; }
    static __device__ Stored stored(double value) { return (float)value; }
    static __device__ double read(Stored element) { return element; }
};

struct Fp16 {
    typedef unsigned short Stored;
    static __device__ double number(Word hash) { return ((double)(hash >> 53) - 1024.0) / 1024.0; }
    static __device__ Stored stored(double value) { return float_to_half((float)value); }
    static __device__ double read(Stored element) { return half_to_float(element); }
};

struct Bf16 {
    typedef unsigned short Stored;
    static __device__ double number(Word hash) { return ((double)(hash >> 56) - 128.0) / 128.0; }
    static __device__ Stored stored(double value) { return (unsigned short)(__float_as_uint((float)value) >> 16); }
    static __device__ double read(Stored element) { return __uint_as_float((unsigned)element << 16); }
};

template <typename Kind>
static __device__ void filled(typename Kind::Stored* out, Word count, Word seed, int rank) {
    Word step = (Word)gridDim.x * blockDim.x;
    for (Word i = (Word)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = Kind::stored(Kind::number(drawn(seed, rank, i)));
}

// found[0] counts the elements that are wrong; found[1] holds the greatest error, relative to the sum of the operands' sizes,
// as the bits of a double. Where a sum is due, element i is that of all ranks' elements offset + i; else it is an element of
// one rank: of rank i / chunk the element offset + i % chunk, or, without chunks, of the rank `source` the element offset + i.

template <typename Kind>
static __device__ void compared(const typename Kind::Stored* in, Word count, Word seed, int ranks, int sum, int source,
                                Word chunk, Word offset, double tolerance, Word* found) {
    Word step = (Word)gridDim.x * blockDim.x;
    Word wrong = 0;
    double worst = 0;
    for (Word i = (Word)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        double due = 0, size = 0;
        if (sum) {
            for (int rank = 0; rank < ranks; rank++) {
                double value = Kind::number(drawn(seed, rank, offset + i));
                due += value;
                size += fabs(value);
            }
        } else {
            int rank = chunk ? (int)(i / chunk) : source;
            due = Kind::number(drawn(seed, rank, offset + (chunk ? i % chunk : i)));
            size = fabs(due);
        }
        double error = fabs(Kind::read(in[i]) - due);
        if (!(error <= (sum ? tolerance * size : 0.0))) wrong++;
        double share = size > 0 ? error / size : (error > 0 ? 1.0 : 0.0);
        if (!(share <= worst)) worst = share == share ? share : 1e300;
    }
    if (wrong) atomicAdd(&found[0], wrong);
    if (worst > 0) atomicMax(&found[1], (Word)__double_as_longlong(worst));
}

#define KIND(name, Kind)                                                                                                   \
    extern "C" __global__ void fill_##name(Kind::Stored* out, Word count, Word seed, int rank) {                           \
        filled<Kind>(out, count, seed, rank);                                                                              \
    }                                                                                                                      \
    extern "C" __global__ void check_##name(const Kind::Stored* in, Word count, Word seed, int ranks, int sum, int source, \
                                            Word chunk, Word offset, double tolerance, Word* found) {                      \
        compared<Kind>(in, count, seed, ranks, sum, source, chunk, offset, tolerance, found);                              \
    }

KIND(fp32, Fp32)
KIND(fp16, Fp16)
KIND(bf16, Bf16)

extern "C" __global__ void fill_int32(unsigned* out, Word count, Word seed, int rank) {
    Word step = (Word)gridDim.x * blockDim.x;
    for (Word i = (Word)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = (unsigned)(drawn(seed, rank, i) >> 32);
}

extern "C" __global__ void check_int32(const unsigned* in, Word count, Word seed, int ranks, int sum, int source, Word chunk,
                                       Word offset, double, Word* found) {
    Word step = (Word)gridDim.x * blockDim.x;
    Word wrong = 0;
    for (Word i = (Word)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        unsigned due = 0;
        if (sum) {
            for (int rank = 0; rank < ranks; rank++) due += (unsigned)(drawn(seed, rank, offset + i) >> 32);
        } else {
            int rank = chunk ? (int)(i / chunk) : source;
            due = (unsigned)(drawn(seed, rank, offset + (chunk ? i % chunk : i)) >> 32);
        }
        if (in[i] != due) wrong++;
    }
    if (wrong) atomicAdd(&found[0], wrong);
}
