// The floating-point mode while the model runs: round to nearest, subnormal numbers kept, no traps. A program may run with
// another one (some libraries turn flush-to-zero on when they are loaded), and would then get other bits.
#ifndef MLC_FLOAT_MODE_H
#define MLC_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE__)

static inline uint64_t float_mode_enter(void)
{
    uint64_t before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80u);
    return before;
}

static inline void float_mode_leave(uint64_t before) { __builtin_ia32_ldmxcsr((uint32_t)before); }

#elif defined(__aarch64__)

static inline uint64_t float_mode_enter(void)
{
    uint64_t before, plain = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain) : "memory");
    return before;
}

static inline void float_mode_leave(uint64_t before) { __asm__ volatile("msr fpcr, %0" : : "r"(before) : "memory"); }

#else

static inline uint64_t float_mode_enter(void) { return 0; }
static inline void float_mode_leave(uint64_t before) { (void)before; }

#endif

#endif
