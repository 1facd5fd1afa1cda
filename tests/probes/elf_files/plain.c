extern int elsewhere(int);
extern int perhaps_elsewhere(int) __attribute__((weak));
int answer(int x) { return perhaps_elsewhere ? perhaps_elsewhere(x) : elsewhere(x); }
