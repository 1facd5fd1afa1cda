// Device-memory bandwidth: read, write, copy and triad over buffers many times the size of the L2 cache.
//
// Buffers hold the pattern word(i) = i * STEP + seed (64 bits, wrapping), so that every copied word can be compared
// and the sum of all words read is known in closed form.

typedef unsigned long long Word;

#define STEP 0x9E3779B97F4A7C15ull

#ifndef UNROLL
#define UNROLL 4
#endif

struct alignas(16) Pair {
    Word low, high;
};

static __device__ __forceinline__ Word word(Word index, Word seed) { return index * STEP + seed; }

#if __CUDA_ARCH__ >= 700
#define LOAD "ld.global.nc.L1::no_allocate.v2.u64"
#else
#define LOAD "ld.global.nc.v2.u64"
#endif

static __device__ __forceinline__ Pair load(const Pair *from) {
    Pair value;
    asm volatile(LOAD " {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(from));
    return value;
}

static __device__ __forceinline__ void store(Pair *to, Pair value) {
    asm volatile("st.global.cs.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(value.low), "l"(value.high) : "memory");
}

// A block handles a tile of blockDim.x * UNROLL pairs at a time and goes on by the size of the grid.
#define FOR_EACH_TILE(first, pairs)                                                          \
    for (long long first = (long long)blockIdx.x * blockDim.x * UNROLL + threadIdx.x;        \
         first < (pairs); first += (long long)gridDim.x * blockDim.x * UNROLL)

extern "C" __global__ void fill(Pair *to, long long pairs, Word seed) {
    FOR_EACH_TILE(first, pairs) {
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) store(to + i, Pair{word(2 * i, seed), word(2 * i + 1, seed)});
        }
    }
}

extern "C" __global__ void write(Pair *to, long long pairs, Word seed) {
    FOR_EACH_TILE(first, pairs) {
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) store(to + i, Pair{seed ^ (Word)i, seed});
        }
    }
}

extern "C" __global__ void copy(Pair *to, const Pair *from, long long pairs) {
    FOR_EACH_TILE(first, pairs) {
        Pair held[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) held[k] = load(from + i);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) store(to + i, held[k]);
        }
    }
}

// Adds the sum of all words to *total.
extern "C" __global__ void read(const Pair *from, long long pairs, Word *total) {
    Word sum = 0;
    FOR_EACH_TILE(first, pairs) {
        Pair held[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            held[k] = i < pairs ? load(from + i) : Pair{0, 0};
        }
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sum += held[k].low + held[k].high;
    }
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, sum);
}

// to = left + 3 * right in FP64, as STREAM has it: two reads and a write for each element.
extern "C" __global__ void triad(double2 *to, const double2 *left, const double2 *right, long long pairs) {
    FOR_EACH_TILE(first, pairs) {
        double2 a[UNROLL], b[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) {
                a[k] = __ldcs(left + i);
                b[k] = __ldcs(right + i);
            }
        }
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) __stcs(to + i, make_double2(a[k].x + 3.0 * b[k].x, a[k].y + 3.0 * b[k].y));
        }
    }
}

// Whole numbers that FP64 holds exactly, so that the triad's result is exact too.
extern "C" __global__ void fill_double(double2 *to, long long pairs, int seed) {
    FOR_EACH_TILE(first, pairs) {
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) to[i] = make_double2((double)(2 * i + seed), (double)(2 * i + 1 + seed));
        }
    }
}

static __device__ void count(Word *wrong, Word found) {
    if (found) atomicAdd(wrong, found);
}

extern "C" __global__ void check_fill(const Pair *from, long long pairs, Word seed, Word *wrong) {
    Word found = 0;
    FOR_EACH_TILE(first, pairs) {
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) found += (from[i].low != word(2 * i, seed)) + (from[i].high != word(2 * i + 1, seed));
        }
    }
    count(wrong, found);
}

extern "C" __global__ void check_write(const Pair *from, long long pairs, Word seed, Word *wrong) {
    Word found = 0;
    FOR_EACH_TILE(first, pairs) {
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i < pairs) found += (from[i].low != (seed ^ (Word)i)) + (from[i].high != seed);
        }
    }
    count(wrong, found);
}

extern "C" __global__ void check_triad(const double2 *from, long long pairs, int left, int right, Word *wrong) {
    Word found = 0;
    FOR_EACH_TILE(first, pairs) {
        for (int k = 0; k < UNROLL; ++k) {
            const long long i = first + (long long)k * blockDim.x;
            if (i >= pairs) continue;
            const double x = (double)(2 * i), y = x + 1.0;
            found += (from[i].x != (x + left) + 3.0 * (x + right)) + (from[i].y != (y + left) + 3.0 * (y + right));
        }
    }
    count(wrong, found);
}
