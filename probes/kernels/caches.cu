// Bandwidth and latency of what lies on the chip: L2 cache, shared memory, the texture path, and atomic operations.

typedef unsigned long long Word;

// Each block reads all of the buffer, beginning at a place of its own, past the L1 cache.
extern "C" __global__ void l2_read(const uint4 *from, int count, int rounds, Word *total) {
    Word sum = 0;
    const int start = (int)(((long long)blockIdx.x * count) / gridDim.x);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll 4
        for (int i = threadIdx.x; i < count; i += blockDim.x) {
            const int place = start + i < count ? start + i : start + i - count;
            uint4 value;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "l"(from + place));
            sum += (Word)value.x + value.y + value.z + value.w;
        }
    }
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, sum);
}

extern "C" __global__ void count_up(unsigned *to, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) to[i] = (unsigned)i;
}

#define SHARED_WORDS 4096

// Every thread reads 16 bytes of shared memory in each of `rounds` steps, without bank conflicts.
extern "C" __global__ void shared_read(int rounds, Word *total) {
    __shared__ uint4 held[SHARED_WORDS / 4];
    for (int i = threadIdx.x; i < SHARED_WORDS / 4; i += blockDim.x)
        held[i] = make_uint4(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(held);
    unsigned sum = 0;
    unsigned place = threadIdx.x % (SHARED_WORDS / 4);
#pragma unroll 8
    for (int round = 0; round < rounds; ++round) {
        uint4 value;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(base + place * 16));
        sum += value.x ^ value.y ^ value.z ^ value.w;
        place = (place + blockDim.x) % (SHARED_WORDS / 4);
    }
    atomicAdd(total, (Word)sum);
}

// A chain through all lines of the buffer: line i leads to (LCG_A * i + LCG_C) mod lines, a full cycle for a power of two.
#define LCG_A 1664525u
#define LCG_C 1013904223u

extern "C" __global__ void make_chain(unsigned *to, unsigned lines, unsigned stride) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
        to[(Word)i * stride] = ((LCG_A * i + LCG_C) & (lines - 1)) * stride;
}

// One thread follows the chain from where it stood last, so that no run finds in a cache what an earlier one fetched.
extern "C" __global__ void chase(const unsigned *from, int steps, int through_l1, unsigned *end) {
    unsigned place = *end;
    if (through_l1) {
        for (int i = 0; i < steps; ++i)
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(place) : "l"(from + place) : "memory");
    } else {
        for (int i = 0; i < steps; ++i)
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(place) : "l"(from + place) : "memory");
    }
    *end = place;
}

// Every thread fetches `rounds` texels of 16 bytes from linear memory through the texture path.
extern "C" __global__ void texture_fetch(Word texture, int texels, int rounds, Word *total) {
    unsigned sum = 0;
    int place = (int)((blockIdx.x * blockDim.x + threadIdx.x) % texels);
#pragma unroll 4
    for (int round = 0; round < rounds; ++round) {
        unsigned x, y, z, w;
        asm volatile("tex.1d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                     : "l"(texture), "r"(place));
        sum += x ^ y ^ z ^ w;
        place += blockDim.x;
        if (place >= texels) place -= texels;
    }
    atomicAdd(total, (Word)sum);
}

// Each thread adds one, `rounds` times, to counters that no other thread of its warp uses at the same time.
extern "C" __global__ void atomics(unsigned *counters, int count, int rounds) {
    int place = (int)((blockIdx.x * blockDim.x + threadIdx.x) % count);
    for (int round = 0; round < rounds; ++round) {
        atomicAdd(counters + place, 1u);
        place += 32;
        if (place >= count) place -= count;
    }
}

extern "C" __global__ void nothing() {}
