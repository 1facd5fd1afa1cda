#include <math.h>
#include <stdio.h>

extern int elsewhere(int);
extern int perhaps_elsewhere(int) __attribute__((weak));

__asm__(".symver first_version, answer@DEMO_1.0");
__asm__(".symver second_version, answer@@DEMO_2.0");

int first_version(int x) { return x; }
int second_version(int x) { return perhaps_elsewhere ? perhaps_elsewhere(x) : elsewhere(x); }
void show(double x) { printf("%f\n", cos(x)); }
