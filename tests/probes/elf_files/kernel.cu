__global__ void axpy(float a, float const* x, float* y) { y[threadIdx.x] += a * x[threadIdx.x]; }
