// Throughput of multiply-add instructions: those of the vector units, and mma.sync on the tensor cores.
//
// KIND: 0 fp64, 1 fp32, 2 fp16 (pairs), 5 int8 (dp4a); with MMA defined, those and 3 bf16, 4 fp8 (E4M3), 6 tf32 through
// mma.sync. All numbers in play are exactly representable, so the result of every thread is known exactly.

typedef unsigned long long Word;

#ifndef KIND
#define KIND 1
#endif

#define CHAINS 8

#ifndef MMA

// x = x * 0.5 + 1 stays at 2 once it is there; dp4a adds 4 each time.
extern "C" __global__ void throughput(int rounds, Word *wrong) {
#if KIND == 0
    double x[CHAINS];
    const double half = 0.5 + (blockIdx.x > 1u << 30), one = 1.0;
    for (int c = 0; c < CHAINS; ++c) x[c] = 2.0;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = fma(x[c], half, one);
    bool right = true;
    for (int c = 0; c < CHAINS; ++c) right = right && x[c] == 2.0;
#elif KIND == 1
    float x[CHAINS];
    const float half = 0.5f + (blockIdx.x > 1u << 30), one = 1.0f;
    for (int c = 0; c < CHAINS; ++c) x[c] = 2.0f;
#pragma unroll 8
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = fmaf(x[c], half, one);
    bool right = true;
    for (int c = 0; c < CHAINS; ++c) right = right && x[c] == 2.0f;
#elif KIND == 2
    unsigned x[CHAINS];
    const unsigned half = 0x38003800u + (blockIdx.x > 1u << 30), one = 0x3C003C00u;
    for (int c = 0; c < CHAINS; ++c) x[c] = 0x40004000u;
#pragma unroll 8
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x[c]) : "r"(half), "r"(one));
    bool right = true;
    for (int c = 0; c < CHAINS; ++c) right = right && x[c] == 0x40004000u;
#else
    int x[CHAINS];
    const int ones = 0x01010101 + (blockIdx.x > 1u << 30);
    for (int c = 0; c < CHAINS; ++c) x[c] = c;
#pragma unroll 8
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) asm volatile("dp4a.s32.s32 %0, %1, %1, %0;" : "+r"(x[c]) : "r"(ones));
    bool right = true;
    for (int c = 0; c < CHAINS; ++c) right = right && x[c] == c + 4 * rounds;
#endif
    if (!right) atomicAdd(wrong, 1ull);
}

#else

// Operands of ones: each product adds K to every element of the accumulator.
extern "C" __global__ void throughput(int rounds, Word *wrong) {
    bool right = true;
#if KIND == 0
    double d[CHAINS][2] = {};
    const double one = 1.0 + (blockIdx.x > 1u << 30);
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%2}, {%0, %1};"
                         : "+d"(d[c][0]), "+d"(d[c][1])
                         : "d"(one));
    for (int c = 0; c < CHAINS; ++c) right = right && d[c][0] == 4.0 * rounds && d[c][1] == 4.0 * rounds;
#elif KIND == 5
    int d[CHAINS][4] = {};
    const unsigned ones = 0x01010101u + (blockIdx.x > 1u << 30);
#pragma unroll 2
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c)
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
                         "{%0, %1, %2, %3};"
                         : "+r"(d[c][0]), "+r"(d[c][1]), "+r"(d[c][2]), "+r"(d[c][3])
                         : "r"(ones));
    for (int c = 0; c < CHAINS; ++c)
        for (int i = 0; i < 4; ++i) right = right && d[c][i] == 32 * rounds;
#else
#if KIND == 2
#define SHAPE "m16n8k16.row.col.f32.f16.f16.f32"
#define DEPTH 16
#define ONES 0x3C003C00u
#elif KIND == 3
#define SHAPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#define DEPTH 16
#define ONES 0x3F803F80u
#elif KIND == 4
#define SHAPE "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#define DEPTH 32
#define ONES 0x38383838u
#else
#define SHAPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#define DEPTH 8
#define ONES 0x3F800000u
#endif
    float d[CHAINS][4] = {};
    const unsigned ones = ONES + (blockIdx.x > 1u << 30);
#pragma unroll 2
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c)
            asm volatile("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
                         : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
                         : "r"(ones));
    for (int c = 0; c < CHAINS; ++c)
        for (int i = 0; i < 4; ++i) right = right && d[c][i] == (float)DEPTH * (float)rounds;
#endif
    if (!right) atomicAdd(wrong, 1ull);
}

#endif
